/** What can be done to a task, each with its consequence and its command-line form. */

import { useQueryClient } from "@tanstack/react-query";

import { change, previewChange } from "../api/client";
import { commandOf } from "../model/commands";
import { needsPerson } from "../model/marks";
import type { Run, Task } from "../model/types";
import { plural } from "../model/words";
import { useActions } from "../parts/actions";
import { useSession } from "../shell/session";

export interface TaskAction {
  name: string;
  label: string;
  keys?: string;
  primary?: boolean;
  danger?: boolean;
  /** What it does, said before it is done. */
  does: string;
  command: string;
  /** `text` is the reason, note, answer or message. */
  act: (text?: string) => void;
}

const TERMINAL = new Set(["done", "failed", "cancelled"]);

export function useTaskActions(task: Task | undefined, run?: Run): TaskAction[] {
  const { ask, run: act } = useActions();
  const { maySteer } = useSession();
  const queries = useQueryClient();
  if (!task || !maySteer) return [];
  const { id } = task;
  const name = task.title || task.step || id;
  const refresh = () => queries.invalidateQueries();
  const post = async (verb: string, body?: unknown) => {
    await change(`/tasks/${id}/${verb}`, body);
    await refresh();
  };
  const actions: TaskAction[] = [];

  if (needsPerson(task)) {
    const isQuestion = task.holds.includes("question");
    if (isQuestion) {
      actions.push({
        name: "answer",
        label: "Answer",
        keys: "e",
        primary: true,
        does: "The step goes on with the answer.",
        command: commandOf("answer", id, "TEXT"),
        act: (text) =>
          text
            ? void act(() => post("answer", { answer: text }), `Answered: ${name} goes on`)
            : ask({
                title: `Answer ${name}`,
                does: [{ mark: "ready", text: "The step goes on with the answer" }],
                text: { label: "Answer", required: true },
                command: commandOf("answer", id, "TEXT"),
                button: "Answer",
                act: async (said) => {
                  await post("answer", { answer: said });
                  return `Answered: ${name} goes on`;
                },
              }),
      });
    } else {
      const again = task.kind !== "approval";
      const rejected = describeRejection(task, run);
      actions.push(
        {
          name: "approve",
          label: again ? "Approve one more try" : "Approve",
          keys: "a",
          primary: true,
          does: again ? "It runs once more." : "What waits for it starts at once.",
          command: commandOf("approve", id),
          act: (text) => void act(() => post("approve", text ? { note: text } : undefined), `Approved: ${name}`),
        },
        {
          name: "reject",
          label: "Reject…",
          keys: "r",
          danger: true,
          does: rejected,
          command: commandOf("reject", id),
          act: (text) =>
            ask({
              title: `Reject “${name}”?`,
              does: [{ mark: "rejected", text: rejected }],
              preview: () => previewChange(`/tasks/${id}/reject`, text ? { reason: text } : undefined),
              text: { label: "Reason, or feedback for the agent", placeholder: text ?? "" },
              command: commandOf("reject", id, "--reason", "TEXT"),
              button: "Reject",
              danger: true,
              act: async (said) => {
                const reason = said || text;
                await post("reject", reason ? { reason } : undefined);
                return `Rejected: ${name}`;
              },
            }),
        },
      );
    }
  }

  if (task.status === "failed" || task.status === "cancelled") {
    actions.push({
      name: "retry",
      label: "Retry…",
      keys: "t",
      primary: true,
      does: "It is queued at once, with fresh budgets, and with it all that failed in its run.",
      command: commandOf("retry", id),
      act: () =>
        ask({
          title: `Retry ${name}?`,
          does: [],
          preview: () => previewChange(`/tasks/${id}/retry`),
          note: "budgets are fresh; what is done stays",
          command: commandOf("retry", id),
          button: "Retry",
          act: async () => {
            await post("retry");
            return `Retried: ${name}`;
          },
        }),
    });
  }
  if (TERMINAL.has(task.status) && task.kind === "work") {
    actions.push({
      name: "continue",
      label: "Continue…",
      does: "It is done once more with a message to who did it, and so is everything that needs it.",
      command: commandOf("continue", id, "TEXT"),
      act: () =>
        ask({
          title: `Continue ${name}`,
          does: [
            { mark: "ready", text: "It is queued again, with your message as its feedback" },
            { mark: "rejected", text: "Everything that needs it is done again" },
          ],
          text: { label: "What is to be done now", required: true },
          command: commandOf("continue", id, "TEXT"),
          button: "Continue",
          act: async (message) => {
            await post("continue", { message });
            return `${name} goes on with your message`;
          },
        }),
    });
  }
  if (task.run_id && task.step && TERMINAL.has(task.status)) {
    const step = task.address?.split(":").slice(1).join(":") || task.step;
    actions.push({
      name: "retry-from",
      label: "Retry from here…",
      does: "This step and everything that needs it are done again.",
      command: commandOf("retry", task.run_id, "--from", step),
      act: () =>
        ask({
          title: `Retry from ${step}?`,
          does: [],
          preview: () => previewChange(`/runs/${task.run_id}/retry`, { step }),
          command: commandOf("retry", task.run_id, "--from", step),
          button: "Retry from here",
          act: async () => {
            await change(`/runs/${task.run_id}/retry`, { step });
            await refresh();
            return `Retried from ${step}`;
          },
        }),
    });
  }
  if (task.status === "idle" && task.planning_phase === "none") {
    actions.push({
      name: "enqueue",
      label: "Enqueue",
      primary: true,
      does: "It goes into the queue.",
      command: commandOf("task", "enqueue", id),
      act: () => void act(() => post("enqueue"), `${name} is queued`),
    });
  }
  if (!TERMINAL.has(task.status)) {
    const paused = task.holds.includes("paused");
    if (task.kind === "work" && task.status === "queued" && !task.blocked_by.length && !needsPerson(task)) {
      actions.push({
        name: "run-now",
        label: "Run now",
        does: "It is first in line.",
        command: commandOf("task", "run-now", id),
        act: () => void act(() => post("run-now"), `${name} is first in line`),
      });
    }
    actions.push(
      {
        name: paused ? "resume" : "pause",
        label: paused ? "Resume" : "Pause",
        keys: "p",
        does: paused ? "It may start again." : "An attempt that runs finishes; no other starts.",
        command: commandOf(paused ? "resume" : "pause", id),
        act: () => void act(() => post(paused ? "resume" : "pause"), `${name} is ${paused ? "resumed" : "paused"}`),
      },
      {
        name: "cancel",
        label: "Cancel…",
        keys: "c",
        danger: true,
        does: "It ends for good, and so does all below it.",
        command: commandOf("cancel", id),
        act: () =>
          ask({
            title: `Cancel “${name}”?`,
            does: [],
            preview: () => previewChange(`/tasks/${id}/cancel`),
            command: commandOf("cancel", id),
            note: "retry brings it back",
            button: "Cancel the task",
            danger: true,
            act: async () => {
              await post("cancel");
              return `Cancelled: ${name}`;
            },
          }),
      },
    );
  }
  return actions;
}

function describeRejection(task: Task, run: Run | undefined): string {
  if (task.kind !== "approval") return "It fails, and with it what waits for it.";
  const waiting = run?.tasks?.filter((each) => each.blocked_by.includes(task.id)).length ?? 0;
  const behind = waiting ? `; ${plural(waiting, "task")} behind it ${waiting === 1 ? "does" : "do"} not start` : "";
  return `It fails, or goes back to where its on_failure says, with your reason${behind}.`;
}
