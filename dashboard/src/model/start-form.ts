/** The start form of a workflow: a field for each input of its schema, read back as the API takes it. */

import { quote } from "./commands";
import type { JsonSchema } from "./types";

export interface FormField {
  name: string;
  schema: JsonSchema;
  required: boolean;
  kind: "text" | "long" | "number" | "choice" | "switch" | "json";
  hint: string;
}

export function listFields(schema: JsonSchema | undefined): FormField[] {
  const required = new Set(schema?.required ?? []);
  const fields = Object.entries(schema?.properties ?? {}).map(([name, own]) => ({
    name,
    schema: own,
    required: required.has(name),
    kind: kindOf(own),
    hint: describeType(own, required.has(name)),
  }));
  return [...fields.filter((field) => field.required), ...fields.filter((field) => !field.required)];
}

function typeOf(schema: JsonSchema): string {
  return (Array.isArray(schema.type) ? schema.type.find((each) => each !== "null") : schema.type) ?? "";
}

function kindOf(schema: JsonSchema): FormField["kind"] {
  if (schema.enum) return "choice";
  switch (typeOf(schema)) {
    case "boolean":
      return "switch";
    case "integer":
    case "number":
      return "number";
    case "string":
      return schema.format === "path" ? "text" : "long";
    default:
      return "json";
  }
}

function describeType(schema: JsonSchema, required: boolean): string {
  const type = schema.format ?? (schema.enum ? "one of" : typeOf(schema) || "any JSON");
  if (schema.default !== undefined) return `${type}, default ${JSON.stringify(schema.default)}`;
  return required ? type : `${type}, optional`;
}

/** What was typed, as the API takes it; text that is no JSON is sent as it is, for the server to refuse. */
export function readInput(fields: FormField[], typed: Record<string, string>): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  for (const field of fields) {
    const text = typed[field.name];
    if (text === undefined || (text === "" && (!field.required || field.kind !== "long"))) continue;
    input[field.name] = readValue(field, text);
  }
  return input;
}

function readValue(field: FormField, text: string): unknown {
  switch (field.kind) {
    case "switch":
      return text === "true";
    case "number": {
      const number = Number(text);
      return text.trim() !== "" && Number.isFinite(number) ? number : text;
    }
    case "json":
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return text;
      }
    case "choice":
      return field.schema.enum?.find((each) => String(each) === text) ?? text;
    default:
      return text;
  }
}

/** `customer=7 team=auth` */
export function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const word of text.split(/[\s,]+/).filter(Boolean)) {
    const at = word.indexOf("=");
    labels[at < 0 ? word : word.slice(0, at)] = at < 0 ? "" : word.slice(at + 1);
  }
  return labels;
}

export function writeCommand(
  workflow: string,
  input: Record<string, unknown>,
  key: string,
  labels: Record<string, string> = {},
): string {
  const words = ["holdfast", "run", quote(workflow)];
  for (const [name, value] of Object.entries(input)) {
    words.push("-i", quote(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`));
  }
  if (key) words.push("--key", quote(key));
  for (const [name, value] of Object.entries(labels)) words.push("--label", quote(`${name}=${value}`));
  return words.join(" ");
}
