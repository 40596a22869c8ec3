/** Tasks and events for tests, as the API answers them. */

import type { Event, Run, Task } from "./types";

export function sampleTask(given: Partial<Task> & { id: string }): Task {
  return {
    kind: "work",
    title: given.step ?? given.id,
    agent: "default",
    status: "queued",
    state: given.status === undefined || given.status === "queued" ? "ready" : given.status,
    planning_phase: "none",
    blocked_by: [],
    holds: [],
    skipped: false,
    attempt: 0,
    failures: 0,
    max_attempts: 3,
    lost: 0,
    max_lost: 5,
    generation: 1,
    priority: 0,
    position: 0,
    tags: [],
    version: 1,
    created_at: "2026-11-18T13:41:00.000Z",
    ...given,
  };
}

export function sampleRun(given: Partial<Run> = {}): Run {
  return {
    id: "r_1",
    workflow: "feature",
    workflow_version: "e420c4",
    status: "running",
    holds: [],
    version: 1,
    generation: 1,
    created_at: "2026-11-18T13:41:00.000Z",
    ...given,
  };
}

let seq = 0;

/** An event `second` seconds after the run began. */
export function sampleEvent(second: number, type: string, given: Partial<Event> = {}): Event {
  seq += 1;
  return {
    seq,
    type,
    run_id: "r_1",
    version: 1,
    attempt: 0,
    actor: "worker-1",
    at: new Date(Date.UTC(2026, 10, 18, 13, 41, 0) + second * 1_000).toISOString(),
    ...given,
  };
}
