/** The list of runs: live, filtered by what the URL says, with actions on those that are selected. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { useLive } from "../api/live";
import { activityQuery, type RunCounts, runCountsQuery, type RunFilters, runsQuery } from "../api/queries";
import { markRun } from "../model/marks";
import type { Run } from "../model/types";
import { describeCount, describeFailure, describeMoney, describeValue, nameRun, plural, shortenId } from "../model/words";
import { Hours } from "../parts/hours";
import { Glyph, Icon, Status } from "../parts/marks";
import { Command, Empty, Meter, Problem, Search, Skeleton } from "../parts/pieces";
import { Clock, Took } from "../parts/time";
import { runsRoute } from "../routes";
import { BulkBar } from "./bulk";
import { FilterChips, readFilters } from "./filters";
import { useKeys } from "../shell/keyboard";
import { useSession } from "../shell/session";
import { Top } from "../shell/top";
import { saveView } from "../shell/views";

const ROW = 37;
const CARD = 61;

export function RunsPage(): ReactNode {
  const search = runsRoute.useSearch();
  const navigate = useNavigate();
  const { q = "" } = search;
  const filters = readFilters(search);
  const query = useInfiniteQuery(runsQuery(filters));
  const counts = useQuery(runCountsQuery(filters)).data;
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
  const isFiltered = q !== "" || Object.keys(filters).length > 0;

  const name = () => {
    const told = [...Object.values(filters), q].filter(Boolean).join(", ");
    saveView({ name: told, search: search as Record<string, string> });
  };

  return (
    <>
      <Top title="Runs" after={<span className="quiet nowrap">{describeMatches(q ? runs.length : (counts?.total ?? runs.length), q !== "" && query.hasNextPage)}</span>}>
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
          <FilterChips search={search} set={set} />
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
        {counts && counts.total > 0 ? <Counts counts={counts} /> : null}
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
                matching={q ? undefined : counts?.total}
                filters={filters}
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

function Counts({ counts }: { counts: RunCounts }): ReactNode {
  const { statuses } = counts;
  const hours = useQuery(activityQuery).data ?? [];
  const bars = hours.map(({ hour, runs }) => ({ hour, done: runs.completed, failed: runs.failed }));
  return (
    <div className="panel hide-s overview">
      <div className="stats">
        {["running", "completed", "failed", "cancelled"].map((status) => (
          <div key={status} className="stat">
            <b style={status === "failed" && statuses[status] ? { color: "var(--failed-fg)" } : undefined}>
              {describeCount(statuses[status] ?? 0)}
            </b>
            <span>{status}</span>
          </div>
        ))}
      </div>
      <Hours bars={bars} label="completed and failed by hour, all runs" done="completed" />
    </div>
  );
}

function RunTable(props: {
  runs: Run[];
  matching: number | undefined;
  filters: RunFilters;
  more: (() => void) | undefined;
}): ReactNode {
  const { runs, more } = props;
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
      <BulkBar
        selected={runs.filter((run) => selected.has(run.id))}
        matching={props.matching}
        filters={props.filters}
        clear={() => setSelected(new Set())}
      />
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
          {Object.entries(run.labels ?? {}).map(([name, value]) => (
            <span key={name} className="tag hide-m">
              {name}={value}
            </span>
          ))}
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
  const { progress } = run;
  return run.status === "running" && progress ? `${progress.done} of ${plural(progress.total, "task")} done` : "";
}
