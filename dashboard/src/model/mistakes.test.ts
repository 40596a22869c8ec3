import { expect, test } from "vitest";

import { placeMistakes } from "./mistakes";

test("a mistake stands below its line, which is shown between its neighbours", () => {
  const text = "name: bad\nsteps:\n  - {id: a}\n  - {id: b, needs: [aa]}\n  - {id: c}\n  - {id: d}";
  const mistakes = [
    { line: 4, column: 21, message: "step 'b' needs 'aa', which is not a step" },
    { line: 4, column: 5, message: "this step says nothing to do" },
  ];
  expect(placeMistakes(text, mistakes).map((line) => [line.number, line.mistakes.length])).toEqual([
    [3, 0],
    [4, 2],
    [5, 0],
  ]);
});
