import { expect, test } from "vitest";

import { sampleRun, sampleTask } from "./samples";
import { buildTree, countBelow, flatten, keepMatching, listTasks } from "./tree";

const TASKS = [
  sampleTask({ id: "t_plan", step: "plan", status: "done" }),
  sampleTask({ id: "t_build", step: "build", kind: "group", state: "in progress 1/2" }),
  sampleTask({ id: "t_b2", step: "build", kind: "group", item: 1, parent_id: "t_build", title: "build.2", payload: { title: "SAML" } }),
  sampleTask({ id: "t_b1", step: "build", kind: "group", item: 0, parent_id: "t_build", title: "Login form", status: "done" }),
  sampleTask({ id: "t_b1i", step: "implement", item: 0, parent_id: "t_b1", status: "done" }),
  sampleTask({ id: "t_old", step: "build", kind: "group", item: 0, parent_id: "t_build", superseded: true }),
  sampleTask({ id: "t_oldi", step: "implement", item: 0, parent_id: "t_old" }),
];

test("items stand in their order, with the names of the command line and the titles of people", () => {
  expect(flatten(buildTree(TASKS)).map((row) => [row.depth, row.name, row.label])).toEqual([
    [0, "plan", "plan"],
    [0, "build", "build"],
    [1, "build.1", "1 Login form"],
    [2, "build.1.implement", "implement"],
    [1, "build.2", "2 SAML"],
  ]);
});

test("what is superseded is left out, and all below it", () => {
  const shown = flatten(buildTree(TASKS)).map((row) => row.task.id);
  expect(shown).not.toContain("t_old");
  expect(shown).not.toContain("t_oldi");
});

test("a folded group keeps its row", () => {
  expect(flatten(buildTree(TASKS), new Set(["t_build"])).map((row) => row.name)).toEqual(["plan", "build"]);
});

test("what matches is kept with the groups that it is in", () => {
  const kept = keepMatching(buildTree(TASKS), (row) => row.label === "implement");
  expect(flatten(kept).map((row) => row.name)).toEqual(["build", "build.1", "build.1.implement"]);
});

test("a group counts what is right below it", () => {
  const build = buildTree(TASKS)[1]!;
  expect(countBelow(build)).toEqual({ done: 1, running: 0, failed: 0, total: 2 });
});

test("the tasks of a run that was called stand below the task that called it", () => {
  const child = sampleRun({ id: "r_2", tasks: [sampleTask({ id: "t_inner", step: "inner" })] });
  const tasks = [sampleTask({ id: "t_call", step: "call", calls: "other", child })];
  expect(flatten(buildTree(tasks)).map((row) => row.name)).toEqual(["call", "call.inner"]);
  expect(listTasks(tasks).map((task) => task.id)).toEqual(["t_call", "t_inner"]);
});
