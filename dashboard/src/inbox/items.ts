/** The items of the inbox: what needs a person, of all runs and tasks. */

import type { MarkName } from "../model/marks";
import type { Run, Statistics, Task, Worker } from "../model/types";
import { describeFailure, describeValue, nameRun, plural } from "../model/words";

export interface InboxItem {
  id: string;
  kind: "approval" | "question" | "budget" | "failed" | "unserved" | "limit";
  mark: MarkName;
  title: string;
  line: string;
  since: string | undefined;
  task?: Task;
  run?: Run;
  agent?: string;
}

/** Failures older than this are not news. */
const FAILED_FOR = 24 * 3_600_000;

export interface Found {
  running: Run[];
  failed: Run[];
  queued: Task[];
  statistics: Statistics | undefined;
  workers: Worker[] | undefined;
  now: number;
}

export function collectItems(found: Found): InboxItem[] {
  const items: InboxItem[] = [];
  for (const run of found.running) {
    for (const task of run.needs_you ?? []) items.push(itemOfTask(task, run));
    if (run.holds.includes("budget")) items.push(itemOfBudget(run));
  }
  for (const task of found.queued) {
    if (task.run_id || task.blocked_by.length) continue;
    if (task.holds.includes("approval") || task.holds.includes("question")) items.push(itemOfTask(task));
  }
  items.sort((a, b) => Date.parse(a.since ?? "") - Date.parse(b.since ?? ""));
  for (const run of found.failed) {
    if (run.finished_at && found.now - Date.parse(run.finished_at) < FAILED_FOR) items.push(itemOfFailure(run));
  }
  return [...items, ...itemsOfUnserved(found), ...itemsOfLimits(found.queued)];
}

function itemOfTask(task: Task, run?: Run): InboxItem {
  const isQuestion = task.holds.includes("question");
  const where = run ? nameRun(run) : task.id;
  const place = task.address?.split(":").slice(1).join(":") || task.step || task.title;
  const isAsked = !isQuestion && task.kind !== "approval";
  return {
    id: task.id,
    kind: isQuestion ? "question" : "approval",
    mark: "person",
    title: isQuestion
      ? describeValue(task.question)
      : isAsked
        ? `${place} failed: one more try?`
        : task.title,
    line: `${isQuestion ? "Question" : "Approval"} · ${where} · ${place}`,
    since: task.finished_at ?? task.started_at ?? task.created_at,
    task,
    ...(run ? { run } : {}),
  };
}

function itemOfBudget(run: Run): InboxItem {
  const { budget } = run;
  const used =
    budget?.usd !== undefined
      ? `$${(budget.used?.usd ?? 0).toFixed(2)} of $${budget.usd}`
      : `${budget?.used?.attempts ?? 0} of ${budget?.attempts ?? 0} attempts`;
  return {
    id: run.id,
    kind: "budget",
    mark: "person",
    title: `Budget used up: ${used}`,
    line: `Budget · ${nameRun(run)} · ${run.workflow}`,
    since: run.created_at,
    run,
  };
}

function itemOfFailure(run: Run): InboxItem {
  return {
    id: run.id,
    kind: "failed",
    mark: "failed",
    title: `${nameRun(run)} failed`,
    line: `Failed · ${run.workflow} · ${describeFailure(run.error)}`,
    since: run.finished_at,
    run,
  };
}

function itemsOfUnserved({ statistics, workers }: Found): InboxItem[] {
  if (!statistics || !workers) return [];
  return Object.entries(statistics.agents).flatMap(([agent, states]) => {
    const ready = states["ready"] ?? 0;
    const served = workers.some((worker) => worker.agents.includes("*") || worker.agents.includes(agent));
    if (!ready || served) return [];
    return [
      {
        id: `agent:${agent}`,
        kind: "unserved" as const,
        mark: "held" as const,
        title: `Nobody serves “${agent}”`,
        line: `${plural(ready, "task")} ${ready === 1 ? "waits" : "wait"} · ${plural(workers.length, "live worker")}`,
        since: undefined,
        agent,
      },
    ];
  });
}

function itemsOfLimits(queued: Task[]): InboxItem[] {
  const byAgent = new Map<string, Task[]>();
  for (const task of queued) {
    if (!task.holds.includes("limit")) continue;
    byAgent.set(task.agent, [...(byAgent.get(task.agent) ?? []), task]);
  }
  return [...byAgent].map(([agent, tasks]) => ({
    id: `limit:${agent}`,
    kind: "limit" as const,
    mark: "held" as const,
    title: `${agent} has reached its usage limit`,
    line: `Limit · ${plural(tasks.length, "task")} ${tasks.length === 1 ? "waits" : "wait"} · it lifts by itself`,
    since: undefined,
    task: tasks[0]!,
    agent,
  }));
}
