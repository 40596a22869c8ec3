/** What a dry run answers, in lines: which tasks become what. */

import { type MarkName, markTask } from "./marks";
import type { Task } from "./types";
import { plural } from "./words";

export interface Preview {
  id: string;
  tasks: (Task & { becomes?: string })[];
  made?: Task[];
  indirect?: number;
}

export interface PreviewLine {
  mark: MarkName;
  text: string;
}

const SHOWN = 6;

/** One line for each task that changes; those that change alike are counted when there are many. */
export function describePreview(preview: Preview, named = true): PreviewLine[] {
  const lines: PreviewLine[] = [];
  const byChange = new Map<string, (Task & { becomes?: string })[]>();
  for (const task of preview.tasks) {
    const change = `${stateOf(task)}, becomes ${task.becomes ?? "another"}`;
    byChange.set(change, [...(byChange.get(change) ?? []), task]);
  }
  const alone = named && preview.tasks.length <= SHOWN;
  for (const [change, tasks] of byChange) {
    const becomes = tasks[0]!.becomes ?? "";
    const mark = markOf(becomes);
    if (alone) {
      for (const task of tasks) lines.push({ mark, text: `${nameOf(task)}: ${change}${describeStop(task)}` });
    } else {
      lines.push({ mark, text: `${plural(tasks.length, "task")}: ${change}${tasks.length === 1 ? `, ${nameOf(tasks[0]!)}` : ""}` });
    }
  }
  if (preview.made?.length) lines.push({ mark: "waiting", text: `${plural(preview.made.length, "task")} would be created` });
  if (!lines.length) lines.push({ mark: "waiting", text: "No task changes" });
  return lines;
}

function stateOf(task: Task): string {
  return markTask(task).word === "needs you" ? "waits for you" : task.state;
}

function nameOf(task: Task): string {
  const place = task.address?.split(":").slice(1).join(":");
  return place || task.title || task.step || task.id;
}

function describeStop(task: Task & { becomes?: string }): string {
  if (task.status !== "running" || task.becomes === "running") return "";
  return `, its attempt ${task.attempt}${task.lease ? ` on ${task.lease.owner}` : ""} stops`;
}

function markOf(becomes: string): MarkName {
  if (becomes === "cancelled" || becomes === "failed" || becomes === "running" || becomes === "done" || becomes === "ready") {
    return becomes;
  }
  if (becomes === "held") return "held";
  if (becomes === "scheduled") return "scheduled";
  return "waiting";
}
