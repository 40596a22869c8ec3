/** Marks: the shape, the word and the hue of each status, the same as on the command line. */

import type { Run, Task } from "./types";

export type MarkName =
  | "done"
  | "failed"
  | "running"
  | "verifying"
  | "waiting"
  | "ready"
  | "scheduled"
  | "held"
  | "person"
  | "lost"
  | "rejected"
  | "cancelled"
  | "skipped"
  | "open"
  | "folded";

export interface Mark {
  name: MarkName;
  word: string;
}

const PERSON_HOLDS = new Set(["approval", "question", "budget"]);

export function needsPerson(task: Task): boolean {
  if (task.holds.some((hold) => hold === "approval" || hold === "question")) {
    return task.status === "queued" && task.blocked_by.length === 0;
  }
  return task.kind === "approval" && task.state === "ready";
}

export function markTask(task: Task): Mark {
  if (task.skipped && task.status === "done") return { name: "skipped", word: "skipped" };
  if (needsPerson(task)) return { name: "person", word: "needs you" };
  const word = task.state;
  if (word.startsWith("in progress")) return { name: "open", word };
  switch (word) {
    case "done":
    case "failed":
    case "cancelled":
    case "running":
    case "verifying":
    case "ready":
    case "scheduled":
      return { name: word, word };
    case "stalled":
      return { name: "failed", word };
    case "held":
      return {
        name: task.holds.some((hold) => PERSON_HOLDS.has(hold)) ? "person" : "held",
        word: task.holds.length ? `held: ${task.holds.join(", ")}` : "held",
      };
    default:
      return { name: "waiting", word };
  }
}

export function markRun(run: Run): Mark {
  if (run.status === "completed") return { name: "done", word: "completed" };
  if (run.status === "failed" || run.status === "cancelled") {
    return { name: run.status, word: run.status };
  }
  if (run.needs_you?.length) return { name: "person", word: "needs you" };
  const holds = run.holds.filter((hold) => hold !== "scheduled");
  if (holds.includes("failing")) return { name: "failed", word: "failing" };
  if (holds.length) {
    return { name: holds.some((hold) => PERSON_HOLDS.has(hold)) ? "person" : "held", word: "held" };
  }
  if (run.holds.includes("scheduled")) return { name: "scheduled", word: "scheduled" };
  return { name: "running", word: "running" };
}

const OUTCOMES: Record<string, MarkName> = {
  completed: "done",
  failed: "failed",
  released: "waiting",
  lost: "lost",
  cancelled: "cancelled",
  rejected: "rejected",
  superseded: "rejected",
};

export function markOutcome(outcome: string | undefined): Mark {
  if (outcome === undefined) return { name: "running", word: "running" };
  return { name: OUTCOMES[outcome] ?? "waiting", word: outcome };
}

/** The class of a status that a status node, bar or row is painted with. */
export function toneOf(mark: MarkName): "running" | "failed" | "held" | "waiting" | "done" {
  switch (mark) {
    case "running":
    case "verifying":
    case "open":
      return "running";
    case "failed":
      return "failed";
    case "held":
    case "person":
      return "held";
    case "done":
      return "done";
    default:
      return "waiting";
  }
}

/** The filters of a run: which tasks count as what. */
export const FILTERS = ["done", "running", "waiting", "held", "failed", "lost", "rejected"] as const;
export type Filter = (typeof FILTERS)[number];

export function matchesFilter(task: Task, filter: Filter): boolean {
  if (filter === "lost") return task.lost > 0;
  if (filter === "rejected") return (task.round ?? 0) > 1;
  const { name } = markTask(task);
  switch (filter) {
    case "done":
      return name === "done" || name === "skipped";
    case "running":
      return name === "running" || name === "verifying" || name === "open";
    case "failed":
      return name === "failed" || name === "cancelled";
    case "held":
      return name === "held" || name === "person";
    case "waiting":
      return name === "waiting" || name === "ready" || name === "scheduled";
  }
}
