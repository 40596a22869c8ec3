/** Events: what happened, one line each. */

import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useMemo, useRef, useState } from "react";

import type { MarkName } from "../model/marks";
import { buildTree, flatten } from "../model/tree";
import type { Event, Task } from "../model/types";
import { describeClockWithSeconds, describeExactly, describeValue } from "../model/words";
import { Glyph } from "../parts/marks";
import { Empty, Search, Skeleton } from "../parts/pieces";

const ROW = 32;

const MARKS: Record<string, MarkName> = {
  running: "running",
  done: "done",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
};

export function markEvent(event: Event): MarkName {
  if (event.type === "task.lost") return "lost";
  if (event.type === "task.rejected" || event.type === "task.reopened") return "rejected";
  if (event.type === "task.asked" || event.type === "task.held") return "held";
  return (event.to && MARKS[event.to]) || "waiting";
}

export function EventList(props: {
  events: Event[];
  loading: boolean;
  type?: string | undefined;
  tasks?: Task[];
}): ReactNode {
  const { events, loading, tasks = [] } = props;
  const [q, setQ] = useState(props.type ?? "");
  const names = useMemo(() => new Map(flatten(buildTree(tasks)).map((row) => [row.task.id, row.name])), [tasks]);
  const shown = useMemo(() => {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length
      ? events.filter((event) => {
          const name = names.get(event.task_id ?? "") ?? "";
          const text = `${event.type} ${event.step ?? ""} ${name} ${event.title ?? ""} ${event.actor} ${describeValue(event.data)}`.toLowerCase();
          return words.every((word) => text.includes(word));
        })
      : events;
    return found.toReversed();
  }, [events, q, names]);
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => setMargin((list.current?.getBoundingClientRect().top ?? 0) + scrollY), [loading]);
  const rows = useWindowVirtualizer({ count: shown.length, estimateSize: () => ROW, overscan: 20, scrollMargin: margin });
  return (
    <section className="panel" style={{ overflow: "clip" }}>
      <header>
        <h2>Events</h2>
        <span className="quiet">newest first</span>
        <span className="grow" />
        <Search value={q} label="Find an event" width={220} onChange={setQ} />
      </header>
      {loading && !events.length ? <Skeleton /> : null}
      {!loading && !shown.length ? <Empty icon="search" title="No event matches" /> : null}
      <div ref={list} role="list" aria-label="Events" style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map((item) => {
          const event = shown[item.index]!;
          const name = names.get(event.task_id ?? "") ?? event.step ?? event.title ?? "";
          return (
            <div
              key={event.seq}
              role="listitem"
              className="event"
              style={{ transform: `translateY(${item.start - margin}px)` }}
            >
              <time className="quiet small" dateTime={event.at} title={describeExactly(event.at)}>
                {describeClockWithSeconds(event.at)}
              </time>
              <Glyph name={markEvent(event)} />
              <span className="mono cut">{event.type}</span>
              {event.task_id ? (
                <Link to="/tasks/$task" params={{ task: event.task_id }} className="cut medium link-quiet">
                  {name}
                </Link>
              ) : (
                <span className="cut medium">{name}</span>
              )}
              <span className="small second cut hide-s" title={describeValue(event.data)}>
                {describeData(event)}
              </span>
              <span className="small quiet cut hide-s">{event.actor}</span>
            </div>
          );
        })}
      </div>
    </section>
  );
}

function describeData(event: Event): string {
  const moved = event.from && event.to && event.from !== event.to ? `${event.from} to ${event.to}` : "";
  const attempt = event.attempt ? `attempt ${event.attempt}` : "";
  const { digest: _digest, ...data } = event.data ?? {};
  const said = Object.entries(data)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name} ${describeValue(value)}`)
    .join(", ");
  return [moved, attempt, said].filter(Boolean).join(" · ");
}
