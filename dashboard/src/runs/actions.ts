/** What can be done to a run, each with its consequence and its command-line form. */

import { useQueryClient } from "@tanstack/react-query";

import { change } from "../api/client";
import { commandOf } from "../model/commands";
import type { Run, Task } from "../model/types";
import { nameRun, plural } from "../model/words";
import { type Consequence, useActions } from "../parts/actions";
import { useSession } from "../shell/session";

export interface RunAction {
  name: "pause" | "resume" | "retry" | "cancel" | "signal";
  label: string;
  keys?: string;
  danger?: boolean;
  does: string;
  command: string;
  act: () => void;
}

export function useRunActions(run: Run | undefined): RunAction[] {
  const { ask, run: act } = useActions();
  const { maySteer } = useSession();
  const queries = useQueryClient();
  if (!run || !maySteer) return [];
  const { id } = run;
  const name = nameRun(run);
  const post = async (verb: string, body?: unknown) => {
    await change(`/runs/${id}/${verb}`, body);
    await queries.invalidateQueries();
  };
  if (run.status !== "running") {
    if (run.status === "completed") return [];
    return [
      {
        name: "retry",
        label: "Retry…",
        keys: "t",
        does: "What failed or was cancelled is queued again, with fresh budgets.",
        command: commandOf("retry", id),
        act: () =>
          ask({
            title: `Retry “${name}”?`,
            does: describeRetry(run),
            command: commandOf("retry", id),
            button: "Retry the run",
            act: async () => {
              await post("retry");
              return `Retried: ${name}`;
            },
          }),
      },
    ];
  }
  const stopped = run.holds.includes("paused") || run.holds.includes("budget");
  const actions: RunAction[] = [
    {
      name: stopped ? "resume" : "pause",
      label: stopped ? "Resume" : "Pause",
      keys: "p",
      does: stopped ? "It goes on." : "What runs finishes; nothing new starts.",
      command: commandOf(stopped ? "resume" : "pause", id),
      act: () => void act(() => post(stopped ? "resume" : "pause"), `${stopped ? "Resumed" : "Paused"}: ${name}`),
    },
    {
      name: "cancel",
      label: "Cancel…",
      keys: "c",
      danger: true,
      does: "Every open task of it ends, for good.",
      command: commandOf("cancel", id),
      act: () =>
        ask({
          title: `Cancel “${name}”?`,
          does: describeCancel(run),
          command: commandOf("cancel", id),
          note: "retry brings it back",
          button: "Cancel the run",
          danger: true,
          act: async () => {
            await post("cancel");
            return `Cancelled: ${name}`;
          },
        }),
    },
  ];
  return actions;
}

export function describeCancel(run: Run): Consequence[] {
  const tasks = run.tasks ?? [];
  const running = tasks.filter((task) => task.status === "running");
  const waiting = tasks.filter((task) => task.status === "queued" || task.status === "idle");
  const done = tasks.filter((task) => task.status === "done").length;
  return [
    ...running.slice(0, 4).map((task): Consequence => ({ mark: "cancelled", text: describeStop(task) })),
    ...(running.length > 4
      ? [{ mark: "cancelled" as const, text: `${running.length - 4} more running tasks stop` }]
      : []),
    ...(waiting.length
      ? [
          {
            mark: "cancelled" as const,
            text: `${plural(waiting.length, "waiting task")} ${waiting.length === 1 ? "is" : "are"} cancelled`,
          },
        ]
      : []),
    { mark: "done", text: `What is done stays: ${plural(done, "task")}` },
  ];
}

function describeStop(task: Task): string {
  const where = task.lease ? ` on ${task.lease.owner}` : "";
  return `${task.title} stops${where}, its process group is ended`;
}

function describeRetry(run: Run): Consequence[] {
  const ended = (run.tasks ?? []).filter((task) => task.status === "failed" || task.status === "cancelled");
  return [
    {
      mark: "ready",
      text: ended.length
        ? `${plural(ended.length, "failed or cancelled task")} ${ended.length === 1 ? "is" : "are"} queued again, due at once`
        : "What failed or was cancelled is queued again, due at once",
    },
    { mark: "done", text: "Budgets are fresh; what is done stays" },
  ];
}
