/** The log of an attempt: bytes into lines, each with its colours. Nothing of it is ever HTML. */

import Anser from "anser";

export interface Piece {
  text: string;
  className: string;
}

/** Lines beyond this are cut until somebody asks for all of it. */
export const LONG_LINE = 4_000;

const COLOURS: Record<string, string> = {
  "ansi-black": "a-dim",
  "ansi-red": "a-red",
  "ansi-green": "a-green",
  "ansi-yellow": "a-yellow",
  "ansi-blue": "a-blue",
  "ansi-magenta": "a-magenta",
  "ansi-cyan": "a-cyan",
  "ansi-white": "",
  "ansi-bright-black": "a-dim",
  "ansi-bright-red": "a-red",
  "ansi-bright-green": "a-green",
  "ansi-bright-yellow": "a-yellow",
  "ansi-bright-blue": "a-blue",
  "ansi-bright-magenta": "a-magenta",
  "ansi-bright-cyan": "a-cyan",
  "ansi-bright-white": "",
};

/** Split text into lines; the last one may not be whole yet. */
export function splitLines(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  // A carriage return writes over what stands before it: a progress bar has one last state.
  return lines.map((line) => {
    const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
    const back = whole.lastIndexOf("\r");
    return back < 0 ? whole : whole.slice(back + 1);
  });
}

// Escapes that are no colours: titles and links (OSC), and movements of the cursor (CSI).
const OTHER_ESCAPES = /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\[[0-9;?]*[ -/]*[@-ln-~]|[@-Z\\^_])/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g;

export function parseLine(line: string): Piece[] {
  const shown = line.replace(OTHER_ESCAPES, "").replace(CONTROLS, "␛");
  if (!shown.includes("\u001b")) return [{ text: shown, className: "" }];
  return Anser.ansiToJson(shown, { use_classes: true, remove_empty: true }).map((part) => {
    const names = [COLOURS[part.fg ?? ""] ?? ""];
    for (const each of part.decorations ?? []) {
      if (each === "bold") names.push("a-bold");
      if (each === "dim") names.push("a-dim");
    }
    return { text: part.content.replace(/\u001b/g, "␛"), className: names.filter(Boolean).join(" ") };
  });
}

/** A line without its colours, for search. */
export function plainText(line: string): string {
  return parseLine(line)
    .map((piece) => piece.text)
    .join("");
}

const ERROR = /\b(?:error|exception|traceback|failed|fatal|panic)\b/i;

/** The line to open a failed attempt at: the last that says so. */
export function findErrorLine(lines: string[]): number {
  const from = Math.max(0, lines.length - 2_000);
  for (let i = lines.length - 1; i >= from; i -= 1) {
    const line = lines[i]!;
    // A colour right before the word would hide where it begins.
    if (line.length < LONG_LINE && ERROR.test(plainText(line))) return i;
  }
  return -1;
}
