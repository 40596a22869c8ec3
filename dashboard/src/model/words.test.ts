import { expect, test } from "vitest";

import { describeAge, describeDuration, describeMoney, describeUntil, nameRun, plural, shortenId } from "./words";

test.each([
  [0, "1 ms"],
  [940, "940 ms"],
  [2_100, "2.1s"],
  [48_700, "48s"],
  [235_000, "3m 55s"],
  [7_500_000, "2h 05m"],
  [277_200_000, "3d 5h"],
])("a duration of %i milliseconds is %s", (ms, words) => {
  expect(describeDuration(ms)).toBe(words);
});

test("an age has one part", () => {
  expect([4_000, 1_320_000, 3_700_000, 200_000_000].map(describeAge)).toEqual(["4s", "22m", "1h", "2d"]);
});

test("a moment to come is told by what is left, and a past one by its age", () => {
  const now = Date.parse("2026-11-18T13:00:00Z");
  expect(describeUntil("2026-11-18T15:05:00Z", now)).toBe("in 2h 05m");
  expect(describeUntil("2026-11-18T12:59:00Z", now)).toBe("1m ago");
});

test("a cost that is not known is no zero", () => {
  expect([describeMoney(undefined), describeMoney(0), describeMoney(0.4123), describeMoney(0.0004)]).toEqual([
    "–",
    "$0.00",
    "$0.41",
    "$0.0004",
  ]);
});

test("a run is called by its title, its key, its first text, its workflow, in this order", () => {
  const input = { repo: "", count: 3, task: "Add SSO\nwith SAML" };
  expect(nameRun({ workflow: "feature", input })).toBe("Add SSO");
  expect(nameRun({ workflow: "feature", input, key: "monday" })).toBe("monday");
  expect(nameRun({ workflow: "feature", input, key: "monday", title: "SSO" })).toBe("SSO");
  expect(nameRun({ workflow: "feature", input: { count: 3 } })).toBe("feature");
});

test("a number has its noun and separators", () => {
  expect([plural(1, "run"), plural(2_418, "run"), plural(0, "entry", "entries")]).toEqual([
    "1 run",
    "2,418 runs",
    "0 entries",
  ]);
});

test("a short id keeps the kind and the end, which differs most", () => {
  expect(shortenId("t_01m7v1yvby54mxnqf3jk")).toBe("t_nqf3jk");
});
