import { expect, test } from "vitest";

import { diffLines } from "./lines-diff";

test("equal lines keep both numbers, others are removed and added", () => {
  expect(diffLines("a\nb\nc\nd", "a\nx\nc\ny\nd").map((line) => [line.kind, line.text, line.before, line.after])).toEqual([
    ["same", "a", 1, 1],
    ["del", "b", 2, undefined],
    ["add", "x", undefined, 2],
    ["same", "c", 3, 3],
    ["add", "y", undefined, 4],
    ["same", "d", 4, 5],
  ]);
});

test("applying a difference gives back both texts", () => {
  const words = ["a", "b", "c", "d"];
  for (let seed = 1; seed < 200; seed += 1) {
    const make = (salt: number) =>
      Array.from({ length: (seed * salt) % 9 }, (_, at) => words[(seed * salt * (at + 1) * 7919) % 4]).join("\n");
    const [before, after] = [make(3), make(5)];
    const lines = diffLines(before, after);
    const join = (kind: string) =>
      lines
        .filter((line) => line.kind !== kind)
        .map((line) => line.text)
        .join("\n");
    expect([join("add"), join("del")]).toEqual([before, after]);
  }
});
