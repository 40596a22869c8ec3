/** The timeline: the tree on the left, a lane for each task on the right. */

import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { markTask, type MarkName } from "../model/marks";
import {
  type Bar,
  buildScale,
  findCriticalPath,
  findIdleStretches,
  type Lane,
  type Range,
  type Scale,
} from "../model/timeline";
import { countBelow, type TreeRow } from "../model/tree";
import type { Task } from "../model/types";
import { describeClock, describeClockWithSeconds, describeDuration, describeMoney, describeValue, plural } from "../model/words";
import { Glyph } from "../parts/marks";

const ROW = 28;
const NARROW_ROW = 36;

export function Timeline(props: {
  rows: TreeRow[];
  total: number;
  lanes: Map<string, Lane>;
  whole: Range;
  running: boolean;
  selected: string | undefined;
  select: (id: string) => void;
  folded: ReadonlySet<string>;
  toggleFold: (id: string) => void;
  leaveOutWaiting: boolean;
  setLeaveOutWaiting: (on: boolean) => void;
}): ReactNode {
  const { rows, total, lanes, whole, running, selected, select, folded, toggleFold } = props;
  const narrow = matchMedia("(max-width: 720px)").matches;
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    const place = () => {
      const top = list.current ? list.current.getBoundingClientRect().top + scrollY : 0;
      setMargin((before) => (Math.abs(before - top) > 1 ? top : before));
    };
    place();
    const observer = new ResizeObserver(place);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => (narrow ? NARROW_ROW : ROW),
    overscan: 20,
    scrollMargin: margin,
    getItemKey: (index) => rows[index]!.task.id,
  });
  const scale = useMemo(
    () => buildScale(whole, props.leaveOutWaiting ? findIdleStretches(lanes.values(), whole) : [], narrow ? 4 : 8),
    [whole, lanes, props.leaveOutWaiting, narrow],
  );
  const critical = useMemo(() => findCriticalPath(lanes.values()), [lanes]);
  const criticalTime = useMemo(() => [...critical].reduce((sum, bar) => sum + bar.to - bar.from, 0), [critical]);
  const index = rows.findIndex((row) => row.task.id === selected);
  useEffect(() => {
    if (index >= 0 && rows.length > 60) virtual.scrollToIndex(index, { align: "auto" });
    // Only a new choice scrolls; rows that change beside it do not.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [selected]);
  const now = scale.place(whole.to);
  return (
    <div className="tl">
      <div className="lines" aria-hidden="true">
        {scale.ticks.slice(1).map((tick) => (
          <i key={tick.at} style={{ left: `${tick.place}%` }} />
        ))}
        {scale.cuts.map((cut) => (
          <i key={cut.place} className="cut-line" style={{ left: `${cut.place}%` }} title={`${describeDuration(cut.length)} left out`} />
        ))}
        {running ? <i className="now" style={{ left: `${now}%` }} /> : null}
      </div>
      <div className="axis">
        <span>
          <span>{plural(total, "task")}</span>
          <label className="line hide-m" style={{ gap: 6 }}>
            <input
              type="checkbox"
              className="check"
              checked={props.leaveOutWaiting}
              onChange={(event) => props.setLeaveOutWaiting(event.target.checked)}
            />{" "}
            leave out waiting
          </label>
        </span>
        <div className="lane">
          {scale.ticks.map((tick, at) => (
            <span key={tick.at} style={{ left: `${tick.place}%` }}>
              {at === 0 ? describeClock(new Date(whole.from).toISOString()) : tick.label}
            </span>
          ))}
          {scale.cuts.map((cut) => (
            <span key={`cut ${cut.place}`} className="cut-label" style={{ left: `${cut.place}%` }} title={`${describeDuration(cut.length)} left out`}>
              ⌇
            </span>
          ))}
        </div>
      </div>
      <div
        role="grid"
        aria-label="Timeline, one row per task"
        aria-rowcount={rows.length}
        ref={list}
        style={{ height: virtual.getTotalSize(), position: "relative" }}
      >
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index]!;
          return (
            <TimelineRow
              key={row.task.id}
              row={row}
              top={item.start - margin}
              lane={lanes.get(row.task.id) ?? laneOfTask(row.task, whole)}
              scale={scale}
              whole={whole}
              critical={critical}
              selected={row.task.id === selected}
              folded={folded.has(row.task.id)}
              select={select}
              toggleFold={toggleFold}
            />
          );
        })}
      </div>
      <div className="tl-foot quiet small">
        {criticalTime > 0 ? (
          <>
            critical path {describeDuration(criticalTime)} of {describeDuration(whole.to - whole.from)}
          </>
        ) : null}
      </div>
    </div>
  );
}

/** A task of a run that was called has no events here; its own times are known. */
function laneOfTask(task: Task, whole: Range): Lane | undefined {
  if (!task.started_at) return undefined;
  const kind = task.status === "running" ? "running" : task.status === "failed" ? "failed" : task.status === "cancelled" ? "cancelled" : "done";
  const from = Date.parse(task.started_at);
  const to = task.finished_at ? Date.parse(task.finished_at) : whole.to;
  const bar: Bar = { attempt: task.attempt, kind, from, to, owner: task.lease?.owner ?? "", outcome: task.status };
  return { bars: [bar], created: Date.parse(task.created_at), ended: task.finished_at ? to : undefined };
}

interface RowProps {
  row: TreeRow;
  top: number;
  lane: Lane | undefined;
  scale: Scale;
  whole: Range;
  critical: Set<Bar>;
  selected: boolean;
  folded: boolean;
  select: (id: string) => void;
  toggleFold: (id: string) => void;
}

function TimelineRow(props: RowProps): ReactNode {
  const { row, top, lane, scale, whole, critical, selected, folded, select, toggleFold } = props;
  const { task } = row;
  const mark = markTask(task);
  const isGroup = row.children.length > 0;
  const glyph: MarkName = isGroup && mark.name !== "done" ? (folded ? "folded" : "open") : mark.name;
  return (
    <div
      className={`r${isGroup ? " group" : ""}${lane?.bars.length || isGroup ? "" : " off"}`}
      role="row"
      aria-selected={selected}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => select(task.id)}
    >
      <div className="name" role="rowheader" style={{ "--d": row.depth } as React.CSSProperties}>
        {isGroup ? (
          <button
            type="button"
            className="fold"
            aria-expanded={!folded}
            aria-label={`${folded ? "Unfold" : "Fold"} ${row.name}`}
            onClick={(event) => {
              event.stopPropagation();
              toggleFold(task.id);
            }}
          >
            <Glyph name={folded ? "folded" : glyph} label={mark.word} />
          </button>
        ) : (
          <Glyph name={glyph} label={mark.word} />
        )}
        <span className="nm cut" title={row.name}>
          {row.label}
        </span>
        <span className="x">{describeRow(row, lane)}</span>
      </div>
      <div className="lane" role="gridcell">
        {isGroup ? (
          <Span row={row} lane={lane} scale={scale} whole={whole} />
        ) : (
          <Bars task={task} lane={lane} scale={scale} critical={critical} whole={whole} />
        )}
      </div>
    </div>
  );
}

function describeRow(row: TreeRow, lane: Lane | undefined): string {
  const { task } = row;
  if (row.children.length) {
    const { done, total } = countBelow(row);
    return `${done}/${total}`;
  }
  const lost = task.lost ? ` · ${task.lost} lost` : "";
  if (task.status === "running") return `attempt ${task.attempt}${lost}`;
  const last = lane?.bars.at(-1);
  if (last) {
    const worked = lane!.bars.reduce((sum, bar) => sum + bar.to - bar.from, 0);
    const cost = task.usage?.usd === undefined ? "" : ` · ${describeMoney(task.usage.usd)}`;
    return `${describeDuration(worked)}${cost || lost}`;
  }
  return markTask(task).word;
}

function Span(props: { row: TreeRow; lane: Lane | undefined; scale: Scale; whole: Range }): ReactNode {
  const { row, lane, scale, whole } = props;
  if (!lane) return null;
  const open = row.task.status === "queued" || row.task.status === "running" || row.task.status === "idle";
  if (open && row.task.state === "blocked") return null;
  const from = scale.place(lane.created);
  const to = scale.place(open ? whole.to : (lane.ended ?? whole.to));
  return <span className={`bar span${open ? " open" : ""}`} style={{ left: `${from}%`, width: `${to - from}%` }} />;
}

function Bars(props: { task: Task; lane: Lane | undefined; scale: Scale; critical: Set<Bar>; whole: Range }): ReactNode {
  const { task, lane, scale, critical, whole } = props;
  const bars = lane?.bars ?? [];
  const last = bars.at(-1);
  const end = last ? scale.place(last.to) : 0;
  const said = last ? describeAfter(task, last) : "";
  return (
    <>
      {bars.map((bar, at) => {
        const from = scale.place(bar.from);
        const width = Math.max(0, scale.place(bar.to) - from);
        const before = bars[at - 1];
        return (
          <span key={bar.attempt} style={{ display: "contents" }}>
            {before && bar.from - before.to > (whole.to - whole.from) / 200 ? (
              <span
                className="bar wait"
                title={`waited ${describeDuration(bar.from - before.to)}`}
                style={{ left: `${scale.place(before.to)}%`, width: `${from - scale.place(before.to)}%` }}
              />
            ) : null}
            <span
              className={`bar ${bar.kind}${width > 2 ? "" : " thin"}`}
              style={{ left: `${from}%`, width: `max(3px, ${width}%)` }}
              title={describeBar(bar)}
            >
              {width > 2 ? `${bar.attempt}${bar.kind === "lost" ? " · lost" : bar.kind === "rejected" && width > 14 ? " · rejected" : ""}` : ""}
              {bar.kind === "running" && width > 12 ? ` · ${describeProgress(task)}` : ""}
            </span>
            {critical.has(bar) ? <i className="crit" style={{ left: `${from}%`, width: `${width}%` }} /> : null}
          </span>
        );
      })}
      {said && end < 70 ? (
        <span className="mark" style={{ left: `${end}%` }}>
          <span className="w">{said}</span>
        </span>
      ) : null}
    </>
  );
}

function describeBar(bar: Bar): string {
  const from = describeClockWithSeconds(new Date(bar.from).toISOString());
  const to = bar.kind === "running" ? "now" : describeClockWithSeconds(new Date(bar.to).toISOString());
  return `attempt ${bar.attempt}: ${bar.outcome}, ${bar.owner}, ${from} to ${to}, ${describeDuration(bar.to - bar.from)}`;
}

export function describeProgress(task: Task): string {
  const { progress } = task;
  if (progress && typeof progress === "object" && "log" in progress) return describeValue(progress.log);
  return describeValue(progress) || "running";
}

function describeAfter(task: Task, last: Bar): string {
  if (last.kind === "failed" && task.status === "failed") {
    return typeof task.error === "string" ? task.error : (task.error?.message ?? "");
  }
  if (task.status === "queued" && last.kind !== "done") return task.state;
  return "";
}
