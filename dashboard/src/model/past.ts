/** A run as it was: its events folded up to one of them. */

import type { Event, Run, Task } from "./types";

/** The tasks that existed then, each with the status and attempt that it had. */
export function foldTasks(tasks: Task[], events: Event[], upTo: number): Task[] {
  const then = new Map<string, { status: string; attempt: number; blocked: boolean; held: boolean }>();
  for (const event of events) {
    if (event.seq > upTo) break;
    if (!event.task_id) continue;
    const before = then.get(event.task_id);
    const data = event.data ?? {};
    then.set(event.task_id, {
      status: event.to ?? before?.status ?? "queued",
      attempt: event.attempt,
      blocked: typeof data["blocked"] === "boolean" ? data["blocked"] : (before?.blocked ?? false),
      held: typeof data["holds"] === "number" ? data["holds"] > 0 : (before?.held ?? false),
    });
  }
  const newest = new Map<string, string>();
  for (const task of tasks) {
    if (then.has(task.id) && (newest.get(placeOf(task)) ?? "") < task.id) newest.set(placeOf(task), task.id);
  }
  return tasks.flatMap((task) => {
    const known = then.get(task.id);
    if (!known) return [];
    const waiting = known.blocked ? "blocked" : known.held ? "held" : "ready";
    const state = known.status === "queued" ? waiting : known.status;
    return [
      {
        ...task,
        status: known.status,
        state,
        attempt: known.attempt,
        blocked_by: known.blocked ? task.blocked_by : [],
        holds: [],
        skipped: task.skipped && known.status === "done",
        finished_at: undefined,
        // An item of an older epoch counted until the newer one was created.
        superseded: newest.get(placeOf(task)) !== task.id,
      },
    ];
  });
}

/** Where a task stands in its run: an item that replaces another has the same place. */
function placeOf(task: Task): string {
  return task.item === undefined || task.kind !== "group" ? task.id : `${task.parent_id} ${task.step} ${task.item}`;
}

export function foldRun(run: Run, events: Event[], upTo: number): Run {
  let status = run.status;
  for (const event of events) {
    if (event.seq > upTo) break;
    if (!event.task_id && event.to) status = event.to;
  }
  return { ...run, status, holds: [], needs_you: undefined };
}
