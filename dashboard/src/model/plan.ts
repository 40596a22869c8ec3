/** A plan: its parts in their order, what each needs, and how it would run. */

import type { Task } from "./types";

export interface PlanPart {
  task: Task;
  number: number;
  needs: string[];
  prompt: string;
  /** `after 2 and 3`, `starts at once` */
  after: string;
}

export function readParts(children: Task[]): PlanPart[] {
  const sorted = children.toSorted((a, b) => a.position - b.position || (a.id < b.id ? -1 : 1));
  const numbers = new Map(sorted.map((task, at) => [task.id, at + 1]));
  const isChain = sorted.every((task) => !task.blocked_by.some((need) => numbers.has(need)));
  return sorted.map((task, at) => {
    const needs = task.blocked_by.filter((need) => numbers.has(need));
    const waits = isChain ? (at ? [at] : []) : needs.map((need) => numbers.get(need)!).sort((a, b) => a - b);
    return {
      task,
      number: at + 1,
      needs,
      prompt: promptOf(task),
      after: waits.length ? `after ${joinWords(waits.map(String))}` : "starts at once",
    };
  });
}

function promptOf(task: Task): string {
  const { payload } = task;
  if (payload && typeof payload === "object" && "prompt" in payload && typeof payload.prompt === "string") {
    return payload.prompt;
  }
  return "";
}

export function joinWords(words: string[]): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

export function moveTo<T>(list: T[], from: number, to: number): T[] {
  const moved = [...list];
  const [taken] = moved.splice(from, 1);
  if (taken !== undefined) moved.splice(to, 0, taken);
  return moved;
}

/** What finalizing would do, in sentences. */
export function describePlan(parts: PlanPart[]): string[] {
  const first = parts.filter((part) => part.after === "starts at once").map((part) => String(part.number));
  const rest = parts.filter((part) => part.after !== "starts at once").map((part) => `${part.number} ${part.after}`);
  return [
    `${first.length === 1 ? "Part" : "Parts"} ${joinWords(first)} ${first.length === 1 ? "starts" : "start"} at once`,
    ...(rest.length ? [`Queued and blocked: ${joinWords(rest)}`] : []),
  ];
}

export interface Wire {
  from: number;
  to: number;
  lane: number;
}

/** From each part to the parts that need it; a wire takes the innermost lane that is free over its length. */
export function routeWires(parts: PlanPart[]): Wire[] {
  const at = new Map(parts.map((part, index) => [part.task.id, index]));
  const links = parts.flatMap((part, to) =>
    part.needs.flatMap((need) => {
      const from = at.get(need);
      return from === undefined ? [] : [{ from, to }];
    }),
  );
  const lanes: { start: number; end: number }[][] = [];
  return links
    .sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from))
    .map(({ from, to }) => {
      const [start, end] = [Math.min(from, to), Math.max(from, to)];
      let lane = lanes.findIndex((taken) => taken.every((each) => each.end <= start || each.start >= end));
      if (lane < 0) lane = lanes.push([]) - 1;
      lanes[lane]!.push({ start, end });
      return { from, to, lane };
    });
}
