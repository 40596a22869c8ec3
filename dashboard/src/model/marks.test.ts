import { expect, test } from "vitest";

import { markRun, markTask, matchesFilter, needsPerson } from "./marks";
import { sampleRun, sampleTask } from "./samples";

test.each([
  [{ status: "done", skipped: true }, "skipped", "skipped"],
  [{ status: "failed" }, "failed", "failed"],
  [{ state: "blocked" }, "waiting", "blocked"],
  [{ state: "stalled" }, "failed", "stalled"],
  [{ state: "in progress 2/5", kind: "group" }, "open", "in progress 2/5"],
  [{ state: "held", holds: ["limit"] }, "held", "held: limit"],
  [{ state: "held", holds: ["budget"] }, "person", "held: budget"],
  [{ state: "ready", kind: "approval" }, "person", "needs you"],
  [{ state: "held", holds: ["question"] }, "person", "needs you"],
])("a task that is %o has the mark %s", (given, name, word) => {
  expect(markTask(sampleTask({ id: "t_1", ...given }))).toEqual({ name, word });
});

test("an approval needs nobody before its needs are done", () => {
  expect(needsPerson(sampleTask({ id: "t_1", kind: "approval", state: "blocked", blocked_by: ["t_0"] }))).toBe(false);
});

test("a run that somebody has to answer is told as that, before its other holds", () => {
  const waiting = sampleTask({ id: "t_1", kind: "approval" });
  expect(markRun(sampleRun({ needs_you: [waiting], holds: ["paused"] })).word).toBe("needs you");
  expect(markRun(sampleRun({ holds: ["paused"] }))).toEqual({ name: "held", word: "held" });
  expect(markRun(sampleRun({ holds: ["scheduled"] })).name).toBe("scheduled");
  expect(markRun(sampleRun({ status: "completed" })).word).toBe("completed");
});

test("a filter of attempts finds what was lost or rejected, whatever became of it", () => {
  const task = sampleTask({ id: "t_1", status: "done", lost: 1, round: 2 });
  expect((["done", "lost", "rejected", "failed"] as const).filter((each) => matchesFilter(task, each))).toEqual([
    "done",
    "lost",
    "rejected",
  ]);
});
