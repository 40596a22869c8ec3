import { expect, test } from "vitest";

import { findErrorLine, parseLine, plainText, splitLines } from "./log";

test("lines end at line breaks, and a progress bar is what it was last", () => {
  expect(splitLines("a\nb\r\n10%\r50%\r100%\nlast")).toEqual(["a", "b", "100%", "last"]);
  expect(splitLines("whole\n")).toEqual(["whole"]);
});

test("colours become classes", () => {
  expect(parseLine("\u001b[31mred\u001b[0m and \u001b[1;32mbold\u001b[0m")).toEqual([
    { text: "red", className: "a-red" },
    { text: " and ", className: "" },
    { text: "bold", className: "a-green a-bold" },
  ]);
});

test("markup is text", () => {
  expect(parseLine("<img src=x onerror=alert(1)>")).toEqual([{ text: "<img src=x onerror=alert(1)>", className: "" }]);
  expect(plainText("\u001b[31m<b>\u001b[0m&amp;")).toBe("<b>&amp;");
});

test("escapes that are no colours are dropped, and other control characters are shown", () => {
  expect(plainText("\u001b]0;a title\u0007\u001b]8;;http://evil\u001b\\link\u001b]8;;\u001b\\")).toBe("link");
  expect(plainText("\u001b[2J\u001b[10;20Hhome")).toBe("home");
  expect(plainText("bell\u0007 back\u0008 left\u202eright")).toBe("bell␛ back␛ left␛right");
});

test("a failed attempt is opened at its last line that says so, a colour before the word or not", () => {
  expect(findErrorLine(["Error: first", "fine", "\u001b[1;31mError: card_declined\u001b[0m", "bye"])).toBe(2);
  expect(findErrorLine(["all is well"])).toBe(-1);
});

test("a megabyte without a line break is parsed in a moment", () => {
  const began = performance.now();
  parseLine("x\u001b[31m".repeat(1_000) + "y".repeat(1_000_000));
  expect(performance.now() - began).toBeLessThan(2_000);
});
