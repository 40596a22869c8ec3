/** What can be done to a run, each with its consequence and its command-line form. */

import { useQueryClient } from "@tanstack/react-query";

import { change, previewChange } from "../api/client";
import { commandOf } from "../model/commands";
import type { Run } from "../model/types";
import { nameRun } from "../model/words";
import { useActions } from "../parts/actions";
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
            does: [],
            preview: () => previewChange(`/runs/${id}/retry`),
            note: "budgets are fresh; what is done stays",
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
          does: [],
          preview: () => previewChange(`/runs/${id}/cancel`),
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
