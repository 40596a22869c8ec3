/** Changes of many runs: of those that are selected, or of all that fit the filters. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { change } from "../api/client";
import type { RunFilters } from "../api/queries";
import { commandOf } from "../model/commands";
import { type MarkName, markRun } from "../model/marks";
import type { Run } from "../model/types";
import { describeCount, nameRun, plural } from "../model/words";
import { type Consequence, useActions } from "../parts/actions";
import { Glyph } from "../parts/marks";
import { Meter } from "../parts/pieces";
import { writeBulkFilters } from "./filters";

type Verb = "cancel" | "retry" | "pause" | "resume";
const LABELS: Record<Verb, string> = { cancel: "Cancel", retry: "Retry", pause: "Pause", resume: "Resume" };
const SHOWN = 6;

interface Bulk {
  id: string;
  verb: Verb;
  state: "waiting" | "running" | "done" | "stopped" | "failed";
  matched: number;
  changed: number;
  unchanged: number;
  refused: number;
  error?: string;
}

interface BulkPreview {
  matched: number;
  examples: Run[];
}

export function BulkBar(props: {
  selected: Run[];
  /** How many fit the filters; absent where a search narrows them down here. */
  matching: number | undefined;
  filters: RunFilters;
  clear: () => void;
}): ReactNode {
  const { selected, matching, filters, clear } = props;
  const [all, setAll] = useState(false);
  const [started, setStarted] = useState<string>();
  const { ask } = useActions();
  const queries = useQueryClient();
  const open = selected.filter((run) => run.status === "running");
  const ended = selected.filter((run) => run.status === "failed" || run.status === "cancelled");
  const paused = open.filter((run) => run.holds.includes("paused"));
  const going = open.filter((run) => !run.holds.includes("paused"));

  const changeSelected = (verb: Verb, runs: Run[]) =>
    ask({
      title: `${LABELS[verb]} ${plural(runs.length, "run")}?`,
      does: describeRuns(verb, runs, runs.length),
      command: commandOf(verb, ...runs.map((run) => run.id)),
      button: `${LABELS[verb]} ${plural(runs.length, "run")}`,
      danger: verb === "cancel",
      act: async () => {
        let refused = 0;
        for (const run of runs) {
          await change(`/runs/${run.id}/${verb}`).catch(() => {
            refused += 1;
          });
        }
        clear();
        await queries.invalidateQueries();
        return `${runs.length - refused} of ${runs.length} done${refused ? `, ${refused} refused` : ""}`;
      },
    });

  const changeAll = (verb: Verb) => {
    const body = writeBulkFilters(filters);
    ask({
      title: `${LABELS[verb]} all runs that fit?`,
      does: [],
      preview: async () => {
        const told = await change<BulkPreview>(`/runs/${verb}?dry_run=true`, body);
        return describeRuns(verb, told.examples, told.matched);
      },
      command: commandOf(verb, ...Object.entries(filters).flatMap(([name, value]) => [`--${name}`, String(value)]), ...(Object.keys(filters).length ? [] : ["--all"])),
      note: "set by set; it can be stopped",
      button: `${LABELS[verb]} all that fit`,
      danger: verb === "cancel",
      act: async () => {
        setStarted((await change<Bulk>(`/runs/${verb}`, body)).id);
      },
    });
  };

  if (started) {
    return (
      <Progress
        id={started}
        close={() => {
          setStarted(undefined);
          setAll(false);
          clear();
        }}
      />
    );
  }
  if (!selected.length) return null;
  const status = filters.status;
  return (
    <div className="bulk" role="region" aria-label="Selected runs">
      <div className="row">
        <b className="medium">{all ? `All ${describeCount(matching ?? 0)} that fit` : `${selected.length} selected`}</b>
        {!all && matching !== undefined && matching > selected.length ? (
          <button type="button" className="link" onClick={() => setAll(true)}>
            Select all {describeCount(matching)} that fit
          </button>
        ) : null}
        <span className="grow" />
        <button
          type="button"
          className="btn ghost"
          onClick={() => {
            setAll(false);
            clear();
          }}
        >
          Clear<kbd className="hide-s">esc</kbd>
        </button>
        {all ? (
          <>
            {status === undefined || status === "running" ? (
              <>
                <button type="button" className="btn" onClick={() => changeAll("pause")}>
                  Pause…
                </button>
                <button type="button" className="btn danger" onClick={() => changeAll("cancel")}>
                  Cancel…
                </button>
              </>
            ) : null}
            {status === undefined || status === "failed" || status === "cancelled" ? (
              <button type="button" className="btn primary" onClick={() => changeAll("retry")}>
                Retry…
              </button>
            ) : null}
          </>
        ) : (
          <>
            <Act verb="resume" runs={paused} act={changeSelected} />
            <Act verb="pause" runs={going} act={changeSelected} />
            <Act verb="cancel" runs={open} act={changeSelected} />
            <Act verb="retry" runs={ended} act={changeSelected} />
          </>
        )}
      </div>
    </div>
  );
}

function Act(props: { verb: Verb; runs: Run[]; act: (verb: Verb, runs: Run[]) => void }): ReactNode {
  const { verb, runs, act } = props;
  if (!runs.length) return null;
  const look = verb === "cancel" ? " danger" : verb === "retry" ? " primary" : "";
  return (
    <button type="button" className={`btn${look}`} onClick={() => act(verb, runs)}>
      {LABELS[verb]} {runs.length}…
    </button>
  );
}

function describeRuns(verb: Verb, runs: Run[], number: number): Consequence[] {
  const lines: Consequence[] = runs.slice(0, SHOWN).map((run) => ({
    // The examples of a preview are told briefly.
    mark: markRun({ ...run, holds: run.holds ?? [] }).name,
    text: `${nameRun(run)}, ${run.workflow}: ${describeEffect(verb, run)}`,
  }));
  if (number > lines.length) lines.push({ mark: "ready", text: `and ${plural(number - lines.length, "more run")}` });
  if (!number) lines.push({ mark: "waiting", text: "No run fits: nothing would change" });
  return lines;
}

function describeEffect(verb: Verb, run: Run): string {
  if (verb === "retry") return "goes back to running";
  if (verb === "pause") return "starts nothing new";
  if (verb === "resume") return "goes on";
  if (!run.progress) return "its open tasks end";
  const left = run.progress.total - run.progress.done;
  return `${plural(left, "open task")} ${left === 1 ? "ends" : "end"}`;
}

function Progress({ id, close }: { id: string; close: () => void }): ReactNode {
  const queries = useQueryClient();
  const bulk = useQuery({
    queryKey: ["bulk", id],
    queryFn: async () => {
      const response = await change<Bulk>(`/bulk/${id}`, undefined, "GET");
      if (isOver(response)) void queries.invalidateQueries({ queryKey: ["runs"] });
      return response;
    },
    refetchInterval: ({ state }) => (state.data && isOver(state.data) ? false : 400),
  }).data;
  if (!bulk) return null;
  const reached = bulk.changed + bulk.unchanged + bulk.refused;
  const mark: MarkName = bulk.state === "failed" ? "failed" : isOver(bulk) ? "done" : "running";
  return (
    <div className="bulk" role="status">
      <div className="row">
        <Glyph name={mark} />
        <span>
          {describeCount(bulk.changed)} of {describeCount(bulk.matched)} {DONE[bulk.verb]}
          {bulk.refused ? `, ${bulk.refused} refused` : ""}
          {bulk.state === "stopped" ? ", stopped" : ""}
          {bulk.error ? `: ${bulk.error}` : ""}
        </span>
        <Meter
          width={80}
          label={`${reached} of ${bulk.matched} reached`}
          parts={[{ kind: "done", share: bulk.matched ? Math.min(1, reached / bulk.matched) : 1 }]}
        />
        <span className="grow" />
        {isOver(bulk) ? (
          <button type="button" className="btn" onClick={close}>
            Close
          </button>
        ) : (
          <button type="button" className="btn" onClick={() => void change(`/bulk/${id}/stop`)}>
            Stop
          </button>
        )}
      </div>
    </div>
  );
}

const DONE: Record<Verb, string> = { cancel: "cancelled", retry: "retried", pause: "paused", resume: "resumed" };

function isOver(bulk: Bulk): boolean {
  return bulk.state === "done" || bulk.state === "stopped" || bulk.state === "failed";
}
