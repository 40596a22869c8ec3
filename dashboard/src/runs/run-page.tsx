/** A run: graph and timeline side by side with one choice in both, its events, what went in and came out. */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";

import { useNow } from "../api/live";
import { pastRunQuery, runQuery, runWhyQuery, workflowQuery } from "../api/queries";
import { buildGraph } from "../model/graph";
import { type Filter, FILTERS, markRun, matchesFilter, type MarkName } from "../model/marks";
import { buildLanes } from "../model/timeline";
import { buildTree, flatten, keepMatching, listTasks, type TreeRow } from "../model/tree";
import type { Event, Run, Task } from "../model/types";
import { describeClockWithSeconds, describeFailure, describeMoney, nameRun, plural, shortenId } from "../model/words";
import { Glyph, Icon, Status } from "../parts/marks";
import { Menu } from "../parts/menu";
import { Banner, Empty, JsonView, Meter, Problem, Search, Skeleton } from "../parts/pieces";
import { Clock, Took } from "../parts/time";
import { runRoute, type RunSearch, runTabRoute } from "../routes";
import { useOfferHere } from "../shell/here";
import { useKeys } from "../shell/keyboard";
import { Top } from "../shell/top";
import { useRunActions } from "./actions";
import { EventList } from "./event-list";
import { RunGraph } from "./graph";
import { Inspector } from "./inspector";
import { useRunEvents } from "./run-events";
import { Timeline } from "./timeline";

export function RunPage(): ReactNode {
  const { run } = runRoute.useParams();
  const search = runRoute.useSearch();
  return <RunFrame id={run} search={search} tab="" />;
}

export function RunTabPage(): ReactNode {
  const { run, tab } = runTabRoute.useParams();
  const search = runTabRoute.useSearch();
  return <RunFrame id={run} search={search} tab={tab} />;
}

const LABELS: Record<Filter, MarkName> = {
  done: "done",
  running: "running",
  waiting: "waiting",
  held: "held",
  failed: "failed",
  lost: "lost",
  rejected: "rejected",
};

function RunFrame({ id, search, tab }: { id: string; search: RunSearch; tab: string }): ReactNode {
  const query = useQuery(runQuery(id));
  const { events, isLoading: eventsLoading } = useRunEvents(id);
  const actions = useRunActions(query.data);
  const at = search.at ? Number(search.at) : undefined;
  useKeys(
    at === undefined
      ? Object.fromEntries(actions.filter((each) => each.keys).map((each) => [each.keys!, () => each.act()]))
      : {},
  );
  const title = query.data ? nameRun(query.data) : id;
  useOfferHere(
    title,
    actions.map((each) => ({ label: each.label, cli: each.command, act: each.act })),
  );
  if (!query.data) {
    return (
      <>
        <Top title={shortenId(id)} crumbs={[{ label: "Runs", to: "/runs" }]} />
        <div className="page">
          {query.error ? <Problem error={query.error} retry={() => void query.refetch()} /> : <Skeleton rows={8} />}
        </div>
      </>
    );
  }
  const run = query.data;
  const primary = actions.filter((each) => each.name !== "signal");
  return (
    <>
      <Top
        title={title}
        crumbs={[{ label: "Runs", to: "/runs" }]}
        after={
          <>
            {title === run.workflow ? null : <span className="quiet hide-s">{run.workflow}</span>}
            <span className="mono quiet hide-s" title={run.id}>
              {shortenId(run.id)}
            </span>
          </>
        }
      >
        {at === undefined
          ? primary.map((action) => (
              <button
                key={action.name}
                type="button"
                className={`btn hide-s${action.danger ? " danger" : ""}${action.name === "retry" ? " primary" : ""}`}
                title={`${action.does} ${action.command}`}
                onClick={action.act}
              >
                {action.name === "pause" ? <Icon name="pause" /> : action.name === "resume" ? <Icon name="play" /> : null}
                {action.label}
                {action.keys ? <kbd className="hide-s">{action.keys.toUpperCase()}</kbd> : null}
              </button>
            ))
          : null}
        <Menu
          label="More"
          trigger={<Icon name="more" />}
          entries={[
            ...(at === undefined ? primary.map((each) => ({ label: each.label, act: each.act, ...(each.danger ? { danger: true } : {}) })) : []),
            { label: "Copy the link", act: () => void navigator.clipboard?.writeText(location.href) },
            { label: "Copy the id", act: () => void navigator.clipboard?.writeText(run.id) },
          ]}
        />
      </Top>
      <RunHead run={run} tab={tab} events={events.length} />
      {tab === "events" ? (
        <div className="page">
          <EventList events={events} loading={eventsLoading} type={search.type} tasks={listTasks(run.tasks ?? [])} />
        </div>
      ) : tab === "io" ? (
        <InputOutput run={run} />
      ) : tab === "" ? (
        <Work run={run} events={events} search={search} at={at} />
      ) : (
        <div className="page">
          <Empty icon="search" title="There is no such page of a run" />
        </div>
      )}
    </>
  );
}

function RunHead({ run, tab, events }: { run: Run; tab: string; events: number }): ReactNode {
  const { budget } = run;
  const spent = run.usage?.usd ?? budget?.used?.usd;
  const tabs = [
    { tab: "", label: "Graph and timeline" },
    { tab: "events", label: "Events", count: events },
    { tab: "io", label: "Input, output" },
  ];
  return (
    <div className="runhead">
      <Status mark={markRun(run)} pill />
      <span className="fact">
        <Icon name="clock" />
        <b className="medium">
          <Took from={run.created_at} to={run.finished_at} />
        </b>
        <span className="quiet hide-s">
          since <Clock at={run.created_at} />
        </span>
      </span>
      {spent !== undefined || budget?.usd !== undefined ? (
        <span className="fact">
          <Icon name="coin" />
          <b className="medium">{describeMoney(spent)}</b>
          {budget?.usd === undefined ? null : (
            <>
              of ${budget.usd}
              <Meter
                width={56}
                label={`${describeMoney(spent)} of $${budget.usd} used`}
                parts={[{ kind: "ink", share: Math.min(1, (spent ?? 0) / budget.usd) }]}
              />
            </>
          )}
        </span>
      ) : null}
      {budget?.attempts === undefined ? null : (
        <span className="fact hide-s">
          attempts <b className="medium">{budget.used?.attempts ?? 0}</b> of {budget.attempts}
        </span>
      )}
      {run.progress ? (
        <span className="fact">
          <b className="medium">
            {run.progress.done} of {run.progress.total}
          </b>{" "}
          tasks done
        </span>
      ) : null}
      {run.branch ? (
        <span className="fact">
          <Icon name="branch" />
          <span className="mono cut">{run.branch}</span>
          {run.commit ? <span className="mono quiet hide-s">{run.commit.slice(0, 8)}</span> : null}
        </span>
      ) : null}
      {run.key ? (
        <span className="fact hide-s">
          key <span className="mono">{run.key}</span>
        </span>
      ) : null}
      {Object.entries(run.labels ?? {}).map(([name, value]) => (
        <span key={name} className="tag hide-m">
          {name}={value}
        </span>
      ))}
      <nav className="tabs rowtabs" aria-label="Of this run">
        {tabs.map((each) =>
          each.tab ? (
            <Link
              key={each.tab}
              to="/runs/$run/$tab"
              params={{ run: run.id, tab: each.tab }}
              activeOptions={{ exact: true, includeSearch: false }}
              aria-current={tab === each.tab ? "page" : undefined}
            >
              {each.label} {each.count ? <span className="n">{each.count}</span> : null}
            </Link>
          ) : (
            <Link
              key="work"
              to="/runs/$run"
              params={{ run: run.id }}
              activeOptions={{ exact: true, includeSearch: false }}
              aria-current={tab === "" ? "page" : undefined}>
              {each.label}
            </Link>
          ),
        )}
      </nav>
    </div>
  );
}

function InputOutput({ run }: { run: Run }): ReactNode {
  return (
    <div className="page">
      <div className="cols">
        <section className="panel c6 full">
          <header>
            <h2>Input</h2>
          </header>
          <div className="body">
            <JsonView value={run.input} label="Input" />
          </div>
        </section>
        <section className="panel c6 full">
          <header>
            <h2>Output</h2>
          </header>
          <div className="body">
            {run.error ? <p className="mistake">{describeFailure(run.error)}</p> : <JsonView value={run.output} label="Output" />}
          </div>
        </section>
      </div>
    </div>
  );
}

function Work(props: { run: Run; events: Event[]; search: RunSearch; at: number | undefined }): ReactNode {
  const { events, search, at } = props;
  const present = props.run;
  const navigate = useNavigate();
  const isOpen = present.status === "running" && at === undefined;
  const now = useNow(1_000, isOpen);
  const past = useQuery(pastRunQuery(present.id, at)).data;
  const run = (at === undefined ? undefined : past) ?? present;
  const tasks: Task[] = useMemo(() => run.tasks ?? [], [run.tasks]);
  const shownEvents = useMemo(() => (at === undefined ? events : events.filter((event) => event.seq <= at)), [events, at]);
  const definition = useQuery(workflowQuery(present.workflow, present.workflow_version)).data;
  const why = useQuery({ ...runWhyQuery(present.id), enabled: present.status === "running" && at === undefined }).data;
  const tree = useMemo(() => buildTree(tasks), [tasks]);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const all = useMemo(() => flatten(tree), [tree]);

  const set = useCallback(
    (change: Partial<RunSearch>) =>
      void navigate({
        to: "/runs/$run",
        params: { run: present.id },
        search: (before: RunSearch) => ({ ...before, ...change }),
        replace: true,
        resetScroll: false,
      }),
    [navigate, present.id],
  );

  const only = useMemo(
    () => (search.only?.split(",").filter((each): each is Filter => (FILTERS as readonly string[]).includes(each)) ?? []),
    [search.only],
  );
  const q = search.q ?? "";
  const isFiltered = only.length > 0 || q !== "";
  const fits = useCallback(
    (row: TreeRow) =>
      (!only.length || only.some((filter) => matchesFilter(row.task, filter))) &&
      (!q || textOf(row).includes(q.toLowerCase())),
    [only, q],
  );
  const shown = useMemo(() => flatten(isFiltered ? keepMatching(tree, fits) : tree, folded), [tree, isFiltered, fits, folded]);
  const counts = useMemo(() => {
    const leaves = all.filter((row) => !row.children.length);
    return FILTERS.map((filter) => [filter, leaves.filter((row) => matchesFilter(row.task, filter)).length] as const).filter(
      ([, count]) => count > 0,
    );
  }, [all]);

  const end = present.finished_at && at === undefined ? Date.parse(present.finished_at) : undefined;
  const lastAt = shownEvents.at(-1);
  const whole = useMemo(() => {
    const from = Date.parse(present.created_at);
    const to = at !== undefined && lastAt ? Date.parse(lastAt.at) : Math.max(end ?? now, lastAt ? Date.parse(lastAt.at) : 0);
    return { from, to: Math.max(to, from + 1_000) };
  }, [present.created_at, end, now, at, lastAt]);
  const lanes = useMemo(() => buildLanes(shownEvents, whole.to), [shownEvents, whole.to]);
  const graph = useMemo(() => buildGraph(definition?.steps ?? [], tree, opened), [definition, tree, opened]);

  const chosen = search.task ? all.find((row) => row.task.id === search.task) : undefined;
  const select = useCallback((task: string) => set({ task, attempt: undefined }), [set]);
  const move = (by: number) => {
    const index = shown.findIndex((row) => row.task.id === search.task);
    const next = shown[Math.min(shown.length - 1, Math.max(0, index + by))];
    if (next) select(next.task.id);
  };
  const step = (by: number) => {
    const index = at === undefined ? events.length - 1 : events.findIndex((event) => event.seq >= at);
    const next = events[index + by];
    if (next) set({ at: index + by >= events.length - 1 ? undefined : String(next.seq) });
  };
  const toggleFold = (id: string) =>
    setFolded((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    h: () => chosen?.children.length && !folded.has(chosen.task.id) && toggleFold(chosen.task.id),
    l: () => chosen?.children.length && folded.has(chosen.task.id) && toggleFold(chosen.task.id),
    Enter: () => chosen && void navigate({ to: "/tasks/$task", params: { task: chosen.task.id } }),
    ",": () => step(-1),
    ";": () => step(1),
    Escape: () => (at === undefined ? set({ task: undefined, q: undefined, only: undefined }) : set({ at: undefined })),
  });
  const view = search.view ?? "both";
  const toggle = (filter: Filter) => {
    const next = only.includes(filter) ? only.filter((each) => each !== filter) : [...only, filter];
    set({ only: next.length ? next.join(",") : undefined });
  };

  return (
    <div className={`run${at === undefined ? "" : " past-mode"}`}>
      <div className="work" {...(search.view ? { "data-view": view } : {})}>
        {at === undefined ? (
          <WhyBanner run={present} why={why?.fixes[0]} line={why?.tasks?.find((each) => each.state !== "running")?.line} select={select} tasks={tasks} />
        ) : (
          <div className="gut">
            <Banner
              kind="past"
              mark="rejected"
              title={`As it was at ${lastAt ? describeClockWithSeconds(lastAt.at) : "its start"},`}
              action={
                <button type="button" className="btn" onClick={() => set({ at: undefined })}>
                  Back to now<kbd className="hide-s">esc</kbd>
                </button>
              }
            >
              event {shownEvents.length} of {events.length}. Actions are off; the run goes on meanwhile.
            </Banner>
          </div>
        )}
        <div className="tools">
          <Search
            value={q}
            label="Find in this run"
            width={200}
            onChange={(value) => set({ q: value || undefined })}
            onKeyDown={(event) => {
              if (event.key === "Enter") {
                const hits = shown.filter(fits);
                const index = hits.findIndex((row) => row.task.id === search.task);
                const next = hits[(index + (event.shiftKey ? hits.length - 1 : 1)) % Math.max(1, hits.length)];
                if (next) select(next.task.id);
              }
            }}
            {...(q ? { after: <span className="small nowrap">{plural(shown.filter(fits).length, "hit")}</span> } : {})}
          />
          {counts.map(([filter, count]) => (
            <button
              key={filter}
              type="button"
              className="chip"
              aria-pressed={only.includes(filter)}
              aria-label={`${count} ${filter}`}
              title={`${count} ${filter}`}
              onClick={() => toggle(filter)}
            >
              <Glyph name={LABELS[filter]} />
              {count}
              {filter === "lost" || filter === "rejected" ? <span className="hide-m"> {filter}</span> : null}
            </button>
          ))}
          <span className="grow" />
          <div className="seg" role="group" aria-label="Layout">
            {(["both", "graph", "timeline"] as const).map((each) => (
              <button
                key={each}
                type="button"
                className={each === "both" ? "hide-s" : ""}
                aria-pressed={view === each}
                onClick={() => set({ view: each === "both" ? undefined : each })}
              >
                {each[0]!.toUpperCase() + each.slice(1)}
              </button>
            ))}
          </div>
        </div>
        {view === "timeline" ? null : (
          <RunGraph
            graph={graph}
            selected={search.task}
            faded={(row) => isFiltered && !fits(row) && !keepMatching(row.children, fits).length}
            select={select}
            toggle={(id, open) =>
              setOpened((before) => {
                const next = new Set(before);
                next.delete(open ? `-${id}` : id);
                next.add(open ? id : `-${id}`);
                return next;
              })
            }
            now={whole.to}
            label="Graph of the run"
          />
        )}
        {view === "graph" ? null : (
          <Timeline
            rows={shown}
            total={all.length}
            lanes={lanes}
            whole={whole}
            running={isOpen}
            selected={search.task}
            select={select}
            folded={folded}
            toggleFold={toggleFold}
            leaveOutWaiting={search.wait === "0"}
            setLeaveOutWaiting={(on) => set({ wait: on ? "0" : undefined })}
          />
        )}
        <Scrub events={events} at={at} running={present.status === "running"} set={(seq) => set({ at: seq === undefined ? undefined : String(seq) })} />
      </div>
      <Inspector run={run} row={chosen} past={at !== undefined} event={at === undefined ? undefined : lastAt} events={shownEvents} />
    </div>
  );
}

function textOf(row: TreeRow): string {
  const { task } = row;
  return `${row.name} ${row.label} ${task.title} ${task.agent} ${task.id} ${task.key ?? ""} ${task.state} ${describeFailure(task.error)} ${task.lease?.owner ?? ""}`.toLowerCase();
}

function WhyBanner(props: {
  run: Run;
  why: string | undefined;
  line: string | undefined;
  tasks: Task[];
  select: (id: string) => void;
}): ReactNode {
  const { run, why, line, tasks, select } = props;
  if (run.status === "failed") {
    const failed = tasks.find((task) => task.status === "failed" && task.kind === "work") ?? tasks.find((task) => task.status === "failed");
    return (
      <div className="gut">
        <Banner
          kind="failed"
          mark="failed"
          title={failed ? `${failed.step ?? failed.title} failed:` : "The run failed:"}
          command={`holdfast retry ${run.id}`}
          action={
            failed ? (
              <button type="button" className="btn ghost" onClick={() => select(failed.id)}>
                Show
              </button>
            ) : null
          }
        >
          {describeFailure(failed?.error ?? run.error)}
        </Banner>
      </div>
    );
  }
  if (run.status === "running" && line && tasks.every((task) => task.status !== "running")) {
    return (
      <div className="gut">
        <Banner mark={why?.includes("approve") || why?.includes("answer") ? "person" : "held"} title="It waits:" command={why}>
          {line}
        </Banner>
      </div>
    );
  }
  return null;
}

/** A tick is long where an attempt was lost, rejected or failed. */
const LONG: Record<string, string> = {
  "task.lost": "lost",
  "task.rejected": "rejected",
  "task.reopened": "rejected",
  "task.failed": "failed",
  "task.retrying": "failed",
};
const MANY_TICKS = 300;

function Scrub(props: {
  events: Event[];
  at: number | undefined;
  running: boolean;
  set: (seq: number | undefined) => void;
}): ReactNode {
  const { events, at, running, set } = props;
  const last = Math.max(0, events.length - 1);
  const found = at === undefined ? last : events.findLastIndex((event) => event.seq <= at);
  const index = Math.max(0, found);
  const place = last ? (100 * index) / last : 100;
  const [wanted, setWanted] = useState<number>();
  useEffect(() => {
    if (wanted === undefined) return undefined;
    const frame = requestAnimationFrame(() => {
      set(wanted >= last ? undefined : events[wanted]?.seq);
      setWanted(undefined);
    });
    return () => cancelAnimationFrame(frame);
  }, [wanted, last, events, set]);
  const ticks = events.length > MANY_TICKS ? events.filter((event) => LONG[event.type]).slice(-MANY_TICKS) : events;
  const event = events[index];
  if (!events.length) return null;
  return (
    <div className="scrub">
      <button type="button" className="btn" aria-pressed={at === undefined} onClick={() => set(undefined)}>
        <Glyph name={running ? "running" : "done"} />
        {running ? "Live" : "Now"}
      </button>
      <div className="track">
        <div className="rail" />
        <div className="rail past" style={{ width: `${place}%` }} />
        {ticks.map((each) => (
          <i
            key={each.seq}
            className={LONG[each.type] ?? ""}
            style={{ left: `${last ? (100 * events.indexOf(each)) / last : 100}%` }}
          />
        ))}
        <input
          type="range"
          min={0}
          max={last}
          value={index}
          aria-label="Event of the run"
          aria-valuetext={event ? `event ${index + 1}, ${event.type}` : undefined}
          onChange={(change) => setWanted(Number(change.target.value))}
        />
        <div className="thumb" style={{ left: `${place}%` }} />
      </div>
      <span className="small quiet nowrap">
        event {index + 1}
        <span className="hide-s">
          {" "}
          of {events.length}
          {event ? ` · ${describeClockWithSeconds(event.at)}` : ""}
        </span>
      </span>
    </div>
  );
}
