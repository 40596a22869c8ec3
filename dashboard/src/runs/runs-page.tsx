/** The list of runs: live, filtered by what the URL says, with actions on those that are selected. */

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { change } from "../api/client";
import { useLive } from "../api/live";
import { runsQuery, workflowsQuery } from "../api/queries";
import { commandOf } from "../model/commands";
import { markRun } from "../model/marks";
import type { Run } from "../model/types";
import { describeCount, describeFailure, describeMoney, describeValue, nameRun, plural, shortenId } from "../model/words";
import { useActions } from "../parts/actions";
import { Glyph, Icon, Status } from "../parts/marks";
import { Menu } from "../parts/menu";
import { Command, Empty, Meter, Problem, Search, Skeleton } from "../parts/pieces";
import { Clock, Took } from "../parts/time";
import { runsRoute } from "../routes";
import { useKeys } from "../shell/keyboard";
import { useSession } from "../shell/session";
import { Top } from "../shell/top";
import { saveView } from "../shell/views";

const ROW = 37;
const CARD = 61;
const STATUSES = ["running", "completed", "failed", "cancelled"];

export function RunsPage(): ReactNode {
  const search = runsRoute.useSearch();
  const navigate = useNavigate();
  const { status, workflow, key, q = "" } = search;
  const filters = { ...(status ? { status } : {}), ...(workflow ? { workflow } : {}), ...(key ? { key } : {}) };
  const query = useInfiniteQuery(runsQuery(filters));
  const workflows = useQuery(workflowsQuery).data ?? [];
  const live = useLive();
  const { maySteer } = useSession();
  const all = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const [newest, showNew] = useNewest(all, JSON.stringify(filters));
  const fresh = all.filter((run) => run.id > newest);
  const runs = useMemo(
    () => all.filter((run) => run.id <= newest && matches(run, q)),
    [all, newest, q],
  );
  const set = (change: Partial<typeof search>) =>
    void navigate({ to: "/runs", search: { ...search, ...change }, replace: true });
  const isFiltered = Boolean(status || workflow || key || q);

  const name = () => {
    const told = [status, workflow, key, q].filter(Boolean).join(", ");
    saveView({ name: told || "All runs", search: search as Record<string, string> });
  };

  return (
    <>
      <Top title="Runs" after={<span className="quiet nowrap">{describeMatches(runs.length, query.hasNextPage)}</span>}>
        <button
          type="button"
          className="btn ghost hide-s"
          aria-pressed={live.paused}
          onClick={() => live.setPaused(!live.paused)}
        >
          <Icon name={live.paused ? "play" : "pause"} />
          {live.paused ? "Go live" : "Pause live"}
          <kbd className="hide-s">.</kbd>
        </button>
        {maySteer ? (
          <Link to="/workflows" className="btn primary">
            <Icon name="play" />
            Start a run…<kbd className="hide-s">S</kbd>
          </Link>
        ) : null}
      </Top>
      <div className="page" style={{ gap: 12 }}>
        <div className="line wrap" style={{ gap: 8 }}>
          <Search
            value={q}
            label="Search runs"
            placeholder="Title, key, id, or error text"
            width={280}
            onChange={(value) => set({ q: value || undefined })}
          />
          <Choice name="status" value={status} options={STATUSES} onChange={(value) => set({ status: value })} />
          <Choice
            name="workflow"
            value={workflow}
            options={workflows.map((each) => each.name)}
            onChange={(value) => set({ workflow: value })}
          />
          {key ? (
            <button type="button" className="chip" aria-pressed="true" onClick={() => set({ key: undefined })}>
              key <b>{key}</b>
              <Icon name="x" />
            </button>
          ) : null}
          <span className="grow" />
          {isFiltered ? (
            <>
              <button type="button" className="btn ghost" onClick={() => void navigate({ to: "/runs", search: {} })}>
                Clear
              </button>
              <button type="button" className="btn ghost hide-s" onClick={name}>
                Save view
              </button>
            </>
          ) : null}
        </div>
        {query.error && !query.data ? (
          <Problem error={query.error} retry={() => void query.refetch()} />
        ) : (
          <div className="panel" style={{ overflow: "clip" }}>
            {fresh.length ? (
              <button type="button" className="newrows" onClick={showNew}>
                <Icon name="plus" />
                {plural(fresh.length, "new run")}, show {fresh.length === 1 ? "it" : "them"}
              </button>
            ) : null}
            {query.isLoading ? (
              <Skeleton />
            ) : runs.length ? (
              <RunTable
                runs={runs}
                more={query.hasNextPage && !query.isFetchingNextPage ? () => void query.fetchNextPage() : undefined}
              />
            ) : (
              <NoRuns filtered={isFiltered} clear={() => void navigate({ to: "/runs", search: {} })} />
            )}
          </div>
        )}
      </div>
    </>
  );
}

/** Runs that came later are told of at the top, and shown when asked for: nothing moves under a reader. */
function useNewest(all: Run[], filters: string): [string, () => void] {
  const [kept, setKept] = useState({ filters: "", newest: "" });
  const first = all[0]?.id ?? "";
  const valid = kept.filters === filters && kept.newest !== "";
  useEffect(() => {
    if (!valid && first) setKept({ filters, newest: first });
  }, [valid, first, filters]);
  return [valid ? kept.newest : first, () => setKept({ filters, newest: first })];
}

function describeMatches(count: number, more: boolean): string {
  return more ? `the newest ${describeCount(count)}` : `${describeCount(count)} ${count === 1 ? "run" : "runs"}`;
}

function matches(run: Run, q: string): boolean {
  if (!q) return true;
  const text = [nameRun(run), run.key, run.id, run.workflow, describeFailure(run.error), describeValue(run.input)]
    .join("\n")
    .toLowerCase();
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function NoRuns({ filtered, clear }: { filtered: boolean; clear: () => void }): ReactNode {
  if (filtered) {
    return (
      <Empty icon="filter" title="No run matches">
        <button type="button" className="btn" onClick={clear}>
          Clear all filters
        </button>
      </Empty>
    );
  }
  return (
    <Empty icon="runs" title="No run yet">
      <p>Start one from a workflow, or watch the demo: a worker is killed and nothing is lost.</p>
      <Command text="holdfast run hello.yaml -i name=Ada --wait" />
      <Command text="holdfast demo" />
    </Empty>
  );
}

function Choice(props: {
  name: string;
  value: string | undefined;
  options: string[];
  onChange: (value: string | undefined) => void;
}): ReactNode {
  const { name, value, options, onChange } = props;
  if (value !== undefined) {
    return (
      <button type="button" className="chip" aria-pressed="true" onClick={() => onChange(undefined)} title={`Any ${name}`}>
        {name} <b>{value}</b>
        <Icon name="x" />
      </button>
    );
  }
  return (
    <Menu
      className="chip"
      label={`Choose a ${name}`}
      trigger={
        <>
          {name} <b>any</b>
          <Icon name="down" />
        </>
      }
      entries={options.map((option) => ({ label: option, act: () => onChange(option) }))}
    />
  );
}

function RunTable({ runs, more }: { runs: Run[]; more: (() => void) | undefined }): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const [cursor, setCursor] = useState(-1);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const narrow = useNarrow();
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => setMargin(list.current?.offsetTop ?? 0), []);
  const { maySteer } = useSession();
  const rows = useWindowVirtualizer({
    count: runs.length,
    estimateSize: () => (narrow ? CARD : ROW),
    overscan: 12,
    scrollMargin: margin,
    getItemKey: (index) => runs[index]!.id,
  });
  useEffect(() => rows.measure(), [narrow, rows]);
  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && last >= runs.length - 20) more();
  }, [more, last, runs.length]);

  const toggle = (id: string) =>
    setSelected((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  const move = (by: number) => {
    const next = Math.min(runs.length - 1, Math.max(0, cursor + by));
    setCursor(next);
    rows.scrollToIndex(next);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    x: () => runs[cursor] && toggle(runs[cursor].id),
    Enter: () => {
      const run = runs[cursor];
      if (run) void navigate({ to: "/runs/$run", params: { run: run.id } });
    },
    Escape: () => setSelected(new Set()),
  });

  return (
    <>
      <div className="rowtable runs" role="table" aria-label="Runs" aria-rowcount={runs.length}>
        <div className="rowhead" role="row">
          <span role="columnheader">
            {maySteer ? (
              <input
                type="checkbox"
                className="check"
                aria-label="Select all shown"
                checked={selected.size > 0 && selected.size === runs.length}
                onChange={(event) => setSelected(event.target.checked ? new Set(runs.map((run) => run.id)) : new Set())}
              />
            ) : null}
          </span>
          <span role="columnheader">Status</span>
          <span role="columnheader">Run</span>
          <span role="columnheader">Waits for, or ended by</span>
          <span role="columnheader">Progress</span>
          <span role="columnheader" className="num">
            Cost
          </span>
          <span role="columnheader" className="num">
            Took
          </span>
          <span role="columnheader" className="num hide-m">
            Started
          </span>
        </div>
        <div ref={list} role="rowgroup" style={{ height: rows.getTotalSize(), position: "relative" }}>
          {shown.map((row) => {
            const run = runs[row.index]!;
            return (
              <RunRow
                key={run.id}
                run={run}
                top={row.start - margin}
                height={row.size}
                cursor={row.index === cursor}
                selected={selected.has(run.id)}
                toggle={maySteer ? () => toggle(run.id) : undefined}
              />
            );
          })}
        </div>
      </div>
      {selected.size ? (
        <BulkBar runs={runs.filter((run) => selected.has(run.id))} clear={() => setSelected(new Set())} />
      ) : null}
    </>
  );
}

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia("(max-width: 720px)").matches);
  useEffect(() => {
    const media = matchMedia("(max-width: 720px)");
    const hear = () => setNarrow(media.matches);
    media.addEventListener("change", hear);
    return () => media.removeEventListener("change", hear);
  }, []);
  return narrow;
}

function RunRow(props: {
  run: Run;
  top: number;
  height: number;
  cursor: boolean;
  selected: boolean;
  toggle: (() => void) | undefined;
}): ReactNode {
  const { run, top, height, cursor, selected, toggle } = props;
  const mark = markRun(run);
  const name = nameRun(run);
  return (
    <div
      role="row"
      className={`rowline${cursor ? " cursor" : ""}${selected ? " selected" : ""}`}
      style={{ transform: `translateY(${top}px)`, height }}
    >
      <span role="cell" className="cell-check">
        {toggle ? (
          <input
            type="checkbox"
            className="check"
            aria-label={`Select ${name}`}
            checked={selected}
            onChange={toggle}
          />
        ) : null}
      </span>
      <span role="cell" className="cell-status">
        <Status mark={mark} />
      </span>
      <span role="cell" className="cell-run">
        <Link to="/runs/$run" params={{ run: run.id }} className="line rowlink">
          <span className="only-s">
            <Glyph name={mark.name} label={mark.word} />
          </span>
          <b className="medium cut" title={name}>
            {name}
          </b>
          {name === run.workflow ? null : <span className="quiet small hide-s">{run.workflow}</span>}
          <span className="quiet mono hide-s" title={run.id}>
            {shortenId(run.id)}
          </span>
        </Link>
      </span>
      <span role="cell" className="second small cut cell-why" title={describeWait(run)}>
        <span className="only-si">{mark.word} · </span>
        {describeWait(run)}
      </span>
      <span role="cell" className="cell-progress">
        <RunMeter run={run} />
      </span>
      <span role="cell" className="num small second cell-cost">
        {describeMoney(run.usage?.usd)}
      </span>
      <span role="cell" className="num small second cell-took">
        <Took from={run.created_at} to={run.finished_at} />
      </span>
      <span role="cell" className="num small quiet hide-m cell-started">
        <Clock at={run.created_at} />
      </span>
    </div>
  );
}

export function RunMeter({ run, width }: { run: Run; width?: number }): ReactNode {
  const { done, total } = run.progress ?? { done: 0, total: 0 };
  const share = total ? done / total : 0;
  const rest = run.status === "failed" ? "failed" : run.needs_you?.length ? "held" : "running";
  const open = run.status === "running" || run.status === "failed";
  return (
    <span className="line">
      <Meter
        label={`${done} of ${total} tasks done`}
        parts={[
          { kind: "done", share },
          ...(open && total > done ? [{ kind: rest as "running" | "failed" | "held", share: Math.min(1 / total, 1 - share) }] : []),
        ]}
        {...(width ? { width } : {})}
      />
      <span className="quiet small num" style={{ minWidth: 32 }}>
        {done}/{total}
      </span>
    </span>
  );
}

function describeWait(run: Run): string {
  const waiting = run.needs_you?.[0];
  if (waiting) {
    const kind = waiting.holds.includes("question") ? "question" : "approval";
    return `${kind}: ${waiting.question === undefined ? waiting.title : describeValue(waiting.question)}`;
  }
  if (run.error) return describeFailure(run.error);
  if (run.status === "running" && run.holds.length) return `held: ${run.holds.join(", ")}`;
  return "";
}

type Verb = "cancel" | "retry" | "pause" | "resume";

function BulkBar({ runs, clear }: { runs: Run[]; clear: () => void }): ReactNode {
  const { ask } = useActions();
  const queries = useQueryClient();
  const open = runs.filter((run) => run.status === "running");
  const ended = runs.filter((run) => run.status === "failed" || run.status === "cancelled");
  const paused = open.filter((run) => run.holds.includes("paused"));
  const act = (verb: Verb, of: Run[]) => {
    const label = { cancel: "Cancel", retry: "Retry", pause: "Pause", resume: "Resume" }[verb];
    ask({
      title: `${label} ${plural(of.length, "run")}?`,
      does: of
        .slice(0, 6)
        .map((run) => ({ mark: markRun(run).name, text: `${nameRun(run)}, ${run.workflow}: ${describeEffect(verb, run)}` }))
        .concat(of.length > 6 ? [{ mark: "ready" as const, text: `and ${of.length - 6} more` }] : []),
      command: commandOf(verb, ...of.map((run) => run.id)),
      button: `${label} ${plural(of.length, "run")}`,
      danger: verb === "cancel",
      act: async () => {
        let refused = 0;
        for (const run of of) {
          await change(`/runs/${run.id}/${verb}`).catch(() => {
            refused += 1;
          });
        }
        clear();
        await queries.invalidateQueries();
        return `${of.length - refused} of ${of.length} done${refused ? `, ${refused} refused` : ""}`;
      },
    });
  };
  return (
    <div className="bulk" role="region" aria-label="Selected runs">
      <div className="row">
        <b className="medium">{runs.length} selected</b>
        <span className="grow" />
        <button type="button" className="btn ghost" onClick={clear}>
          Clear<kbd className="hide-s">esc</kbd>
        </button>
        {paused.length ? (
          <button type="button" className="btn" onClick={() => act("resume", paused)}>
            Resume {paused.length}
          </button>
        ) : null}
        {open.length > paused.length ? (
          <button
            type="button"
            className="btn"
            onClick={() => act("pause", open.filter((run) => !run.holds.includes("paused")))}
          >
            Pause {open.length - paused.length}
          </button>
        ) : null}
        {open.length ? (
          <button type="button" className="btn danger" onClick={() => act("cancel", open)}>
            Cancel {open.length}…
          </button>
        ) : null}
        {ended.length ? (
          <button type="button" className="btn primary" onClick={() => act("retry", ended)}>
            Retry {ended.length}…
          </button>
        ) : null}
      </div>
    </div>
  );
}

function describeEffect(verb: Verb, run: Run): string {
  const left = run.progress ? run.progress.total - run.progress.done : 0;
  switch (verb) {
    case "cancel":
      return `${plural(left, "open task")} ${left === 1 ? "ends" : "end"}`;
    case "retry":
      return "goes back to running";
    case "pause":
      return "starts nothing new";
    case "resume":
      return "goes on";
  }
}
