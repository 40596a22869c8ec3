import { expect, test } from "vitest";

import { listFields, readInput, readLabels, writeCommand } from "./start-form";
import type { JsonSchema } from "./types";

const SCHEMA: JsonSchema = {
  type: "object",
  required: ["task", "dry"],
  properties: {
    repo: { type: "string", format: "path", default: "." },
    task: { type: "string" },
    count: { type: "integer", default: 3 },
    mode: { enum: ["fast", 2] },
    dry: { type: "boolean" },
    parts: { type: "array" },
  },
};
const FIELDS = listFields(SCHEMA);

test("required fields come first, each with its kind and what it takes", () => {
  expect(FIELDS.map((field) => [field.name, field.kind, field.hint])).toEqual([
    ["task", "long", "string"],
    ["dry", "switch", "boolean"],
    ["repo", "text", 'path, default "."'],
    ["count", "number", "integer, default 3"],
    ["mode", "choice", "one of, optional"],
    ["parts", "json", "array, optional"],
  ]);
});

test("what is typed is sent as the type that is wanted, and what is left out is not sent", () => {
  const typed = { task: "Add SSO", dry: "true", count: "4", mode: "2", parts: '["a"]', repo: "" };
  expect(readInput(FIELDS, typed)).toEqual({ task: "Add SSO", dry: true, count: 4, mode: 2, parts: ["a"] });
});

test("what is no number and no JSON is sent as it is, for the server to refuse", () => {
  expect(readInput(FIELDS, { count: "four", parts: "[" })).toEqual({ count: "four", parts: "[" });
});

test("the command is what a shell takes", () => {
  expect(writeCommand("feature", { task: "Ada's SSO", count: 4 }, "monday", readLabels("customer=7, team=auth"))).toBe(
    `holdfast run feature -i 'task=Ada'"'"'s SSO' -i count=4 --key monday --label customer=7 --label team=auth`,
  );
});
