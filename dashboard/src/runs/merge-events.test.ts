import { expect, test } from "vitest";

import { sampleEvent } from "../model/samples";
import { mergeEvents } from "./merge-events";

test("history and stream together have each event once, in their order", () => {
  const events = [0, 1, 2, 3].map((second) => sampleEvent(second, "task.edited"));
  const [first, second, third, fourth] = events as [never, never, never, never];
  expect(mergeEvents([first, third], [third, second, fourth, second])).toEqual(events);
  expect(mergeEvents(events, [])).toBe(events);
  expect(mergeEvents(events, [second])).toBe(events);
});
