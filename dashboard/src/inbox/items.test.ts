import { expect, test } from "vitest";

import { sampleRun, sampleTask } from "../model/samples";
import type { Worker } from "../model/types";
import { collectItems, type Found } from "./items";

const NOW = Date.parse("2026-11-18T14:00:00Z");
const NOTHING: Found = { running: [], failed: [], queued: [], statistics: undefined, workers: undefined, now: NOW };
const shown = (found: Partial<Found>) => collectItems({ ...NOTHING, ...found }).map((item) => [item.kind, item.title]);

test("approvals, questions and last tries of runs are asked for in the order in which they wait", () => {
  const needs_you = [
    sampleTask({ id: "t_2", title: "Merge?", kind: "approval", created_at: "2026-11-18T13:50:00Z" }),
    sampleTask({ id: "t_1", holds: ["question"], question: "Skip rows?", created_at: "2026-11-18T13:40:00Z" }),
    sampleTask({ id: "t_3", step: "verify", holds: ["approval"], address: "r_1:build.2.verify", created_at: "2026-11-18T13:55:00Z" }),
  ];
  expect(shown({ running: [sampleRun({ needs_you })] })).toEqual([
    ["question", "Skip rows?"],
    ["approval", "Merge?"],
    ["approval", "build.2.verify failed: one more try?"],
  ]);
});

test("a run without budget says how much it has used", () => {
  const run = sampleRun({ holds: ["budget"], budget: { usd: 5, used: { usd: 5 } } });
  expect(shown({ running: [run] })).toEqual([["budget", "Budget used up: $5.00 of $5"]]);
});

test("a task of no run waits here too, and one that is blocked does not", () => {
  const queued = [
    sampleTask({ id: "t_1", holds: ["question"], question: "Why?" }),
    sampleTask({ id: "t_2", holds: ["approval"], blocked_by: ["t_1"] }),
    sampleTask({ id: "t_3", run_id: "r_1", holds: ["question"], question: "It is told with its run" }),
  ];
  expect(shown({ queued })).toEqual([["question", "Why?"]]);
});

test("failures are news for a day", () => {
  const failed = ["2026-11-18T13:00:00Z", "2026-11-16T13:00:00Z"].map((finished_at, at) =>
    sampleRun({ id: `r_${at}`, status: "failed", finished_at, error: "boom" }),
  );
  expect(shown({ failed })).toEqual([["failed", "feature failed"]]);
});

test("work that waits for an agent that nobody serves is told, and not where a worker takes all", () => {
  const statistics = { agents: { reviewer: { ready: 2 }, developer: { ready: 1 }, idle: { blocked: 3 } }, runs: {}, workers: 1, conflicts: 0 };
  const worker = { name: "w", agents: ["developer"] } as Worker;
  expect(shown({ statistics, workers: [worker] })).toEqual([["unserved", "Nobody serves “reviewer”"]]);
  expect(shown({ statistics, workers: [{ ...worker, agents: ["*"] }] })).toEqual([]);
});

test("tasks at a usage limit are one item for each agent", () => {
  const queued = [1, 2].map((at) => sampleTask({ id: `t_${at}`, agent: "claude", holds: ["limit"] }));
  expect(collectItems({ ...NOTHING, queued })[0]).toMatchObject({ kind: "limit", title: "claude has reached its usage limit", line: expect.stringContaining("2 tasks wait") });
});
