import { expect, test } from "vitest";

import { foldRun, foldTasks } from "./past";
import { sampleEvent, sampleRun, sampleTask } from "./samples";

const EVENTS = [
  sampleEvent(0, "run.started", { to: "running" }),
  sampleEvent(0, "task.created", { task_id: "t_1", to: "queued", data: { blocked: false } }),
  sampleEvent(0, "task.created", { task_id: "t_2", to: "queued", data: { blocked: true } }),
  sampleEvent(1, "task.running", { task_id: "t_1", attempt: 1, from: "queued", to: "running" }),
  sampleEvent(5, "task.done", { task_id: "t_1", attempt: 1, from: "running", to: "done" }),
  sampleEvent(5, "task.unblocked", { task_id: "t_2", from: "queued", to: "queued", data: { blocked: false } }),
  sampleEvent(9, "task.created", { task_id: "t_3", to: "queued", data: { blocked: false } }),
  sampleEvent(9, "run.completed", { from: "running", to: "completed" }),
];
const TASKS = ["t_1", "t_2", "t_3"].map((id) => sampleTask({ id, status: "done" }));

test("tasks are as the events up to one of them left them, and later ones do not exist", () => {
  const shown = (index: number) => foldTasks(TASKS, EVENTS, EVENTS[index]!.seq).map((task) => [task.id, task.state, task.attempt]);
  expect(shown(3)).toEqual([
    ["t_1", "running", 1],
    ["t_2", "blocked", 0],
  ]);
  expect(shown(5)).toEqual([
    ["t_1", "done", 1],
    ["t_2", "ready", 0],
  ]);
  expect(shown(7).map(([id]) => id)).toEqual(["t_1", "t_2", "t_3"]);
});

test("the run has the status that it had", () => {
  const now = sampleRun({ status: "completed" });
  expect(foldRun(now, EVENTS, EVENTS[3]!.seq).status).toBe("running");
  expect(foldRun(now, EVENTS, EVENTS[7]!.seq).status).toBe("completed");
});

test("an item counts until the one that replaces it exists", () => {
  const item = (id: string) => sampleTask({ id, kind: "group", step: "build", item: 0, parent_id: "t_b", superseded: id === "t_a" });
  const events = [
    sampleEvent(0, "task.created", { task_id: "t_a", to: "queued" }),
    sampleEvent(5, "task.created", { task_id: "t_c", to: "queued" }),
  ];
  const kept = (index: number) =>
    foldTasks([item("t_a"), item("t_c")], events, events[index]!.seq)
      .filter((task) => !task.superseded)
      .map((task) => task.id);
  expect([kept(0), kept(1)]).toEqual([["t_a"], ["t_c"]]);
});
