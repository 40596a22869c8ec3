import { expect, test } from "vitest";

import { buildGraph, layOut, shapeOf } from "./graph";
import { sampleTask } from "./samples";
import { buildTree } from "./tree";
import type { Step, Task } from "./types";

const STEPS: Step[] = [
  { id: "plan", needs: [] },
  { id: "build", needs: ["plan"], for_each: "steps.plan.stories", steps: [{ id: "implement" }, { id: "verify" }] },
  { id: "test", needs: ["build"], on_failure: ["goto", "build", 2] },
  { id: "approve", needs: ["test"], approval: "Merge?" },
];

function items(count: number, running: number): Task[] {
  return [
    sampleTask({ id: "t_plan", step: "plan", status: "done" }),
    sampleTask({ id: "t_build", step: "build", kind: "group", state: "in progress" }),
    ...Array.from({ length: count }, (_, item) => {
      const id = `t_${String(item).padStart(3, "0")}`;
      const status = item < running ? "done" : "queued";
      return [
        sampleTask({ id, step: "build", kind: "group", item, parent_id: "t_build", status, ...(item === running ? { state: "in progress 0/1" } : {}) }),
        sampleTask({ id: `${id}i`, step: "implement", item, parent_id: id, status: item === running ? "running" : status }),
      ];
    }).flat(),
  ];
}

test("a workflow has a node for each step, a frame for a loop, and an edge for each need", () => {
  const graph = buildGraph(STEPS, [], new Set());
  expect(graph.nodes.map((node) => [node.id, node.kind])).toEqual([
    ["plan", "work"],
    ["build", "loop"],
    ["test", "work"],
    ["approve", "approval"],
  ]);
  expect(graph.edges.map((edge) => [edge.from, edge.to, edge.kind])).toEqual([
    ["plan", "build", "needs"],
    ["build", "test", "needs"],
    ["test", "build", "goto"],
    ["test", "approve", "needs"],
  ]);
  expect(graph.edges[2]!.label).toBe("on failure: build again, at most 2 rounds");
});

test("an item that runs is open by itself, and one can be opened and folded by hand", () => {
  const rows = buildTree(items(3, 1));
  const open = (opened: string[]) => [...buildGraph(STEPS, rows, new Set(opened)).nodes[1]!.open];
  expect(open([])).toEqual(["t_001"]);
  expect(open(["t_000"])).toEqual(["t_000", "t_001"]);
  expect(open(["-t_001"])).toEqual([]);
});

test("a long loop shows what runs and the newest that is done, and counts the others", () => {
  const node = buildGraph(STEPS, buildTree(items(300, 212)), new Set()).nodes[1]!;
  expect(node.items.map((item) => item.task.item)).toEqual([211, 212]);
  expect(node.hidden).toBe(298);
});

test("an edge is past when its source is done, and now while its target runs", () => {
  const edges = buildGraph(STEPS, buildTree(items(3, 1)), new Set()).edges;
  expect(edges.map((edge) => edge.state)).toEqual(["now", "later", "later", "later"]);
});

test("nodes stand from left to right without lying on each other, wherever a status moves", () => {
  const graph = buildGraph(STEPS, buildTree(items(3, 1)), new Set());
  const placed = layOut(graph, "LR");
  const lefts = graph.nodes.map((node) => placed.get(node.id)!.x);
  graph.nodes.slice(1).forEach((_, at) => {
    expect(lefts[at + 1]!).toBeGreaterThanOrEqual(lefts[at]! + graph.nodes[at]!.width);
  });
  const later = buildGraph(STEPS, buildTree(items(3, 1).map((task) => ({ ...task, attempt: 9 }))), new Set());
  expect(shapeOf(later)).toBe(shapeOf(graph));
});

test("without a definition the tasks themselves are the nodes, linked by what blocks them", () => {
  const rows = buildTree([
    sampleTask({ id: "t_1", step: "a" }),
    sampleTask({ id: "t_2", step: "b", blocked_by: ["t_1"] }),
  ]);
  const graph = buildGraph([], rows, new Set());
  expect(graph.edges.map((edge) => [edge.from, edge.to])).toEqual([["a", "b"]]);
});
