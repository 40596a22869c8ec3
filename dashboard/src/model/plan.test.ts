import { expect, test } from "vitest";

import { describePlan, moveTo, readParts, routeWires } from "./plan";
import { sampleTask } from "./samples";

const part = (id: string, position: number, needs: string[] = []) =>
  sampleTask({ id, position, blocked_by: needs, payload: { prompt: `do ${id}` } });

test("parts without needs run one after the other, in their order", () => {
  const parts = readParts([part("t_b", 1), part("t_a", 0), part("t_c", 2)]);
  expect(parts.map((each) => [each.number, each.task.id, each.after, each.prompt])).toEqual([
    [1, "t_a", "starts at once", "do t_a"],
    [2, "t_b", "after 1", "do t_b"],
    [3, "t_c", "after 2", "do t_c"],
  ]);
});

test("where needs are drawn, each part waits for exactly these", () => {
  const parts = readParts([part("t_a", 0), part("t_b", 1, ["t_a"]), part("t_c", 2, ["t_a"]), part("t_d", 3, ["t_b", "t_c"])]);
  expect(parts.map((each) => each.after)).toEqual(["starts at once", "after 1", "after 1", "after 2 and 3"]);
  expect(describePlan(parts)).toEqual(["Part 1 starts at once", "Queued and blocked: 2 after 1, 3 after 1 and 4 after 2 and 3"]);
});

test("a part is moved to where another stands", () => {
  expect(moveTo(["a", "b", "c", "d"], 0, 2)).toEqual(["b", "c", "a", "d"]);
  expect(moveTo(["a", "b", "c", "d"], 3, 0)).toEqual(["d", "a", "b", "c"]);
});

test("wires that lie beside each other have lanes of their own", () => {
  const wires = routeWires(readParts([part("t_a", 0), part("t_b", 1, ["t_a"]), part("t_c", 2, ["t_a", "t_b"])]));
  expect(wires.map((wire) => [wire.from, wire.to, wire.lane])).toEqual([
    [0, 1, 0],
    [1, 2, 0],
    [0, 2, 1],
  ]);
});
