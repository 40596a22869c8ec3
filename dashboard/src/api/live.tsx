/** What the stream tells, given to the pages: which of their data to read anew, and the connection. */

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState, useSyncExternalStore } from "react";

import type { Event } from "../model/types";
import { type Connection, EventStream } from "./stream";

type EventListener = (events: Event[]) => void;

/** Events are gathered for this long before data is read anew; longer while answers are slow. */
const GATHER = 150;
const MAX_WAIT = 2_000;

export class Live {
  connection: Connection = { status: "connecting" };
  paused = false;
  /** Events that came while the page is paused. */
  waiting = 0;
  private readonly stream: EventStream;
  private readonly changed = new Set<() => void>();
  private readonly listeners = new Set<EventListener>();
  private readonly runs = new Set<string>();
  private readonly tasks = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private pace = GATHER;
  private version = 0;

  constructor(private readonly queries: QueryClient) {
    this.stream = new EventStream({
      onEvents: (events) => this.take(events),
      onConnection: (connection) => this.setConnection(connection),
      onGap: () => void this.queries.invalidateQueries(),
    });
  }

  start(): void {
    this.stream.start();
  }

  stop(): void {
    this.stream.stop();
  }

  retryNow(): void {
    this.stream.retryNow();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.changed.add(listener);
    return () => this.changed.delete(listener);
  };

  snapshot = (): number => this.version;

  /** Hear of every event as it comes. */
  listen(listener: EventListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  setPaused(paused: boolean): void {
    this.paused = paused;
    if (!paused) {
      this.waiting = 0;
      this.schedule();
    }
    this.notify();
  }

  private notify(): void {
    this.version += 1;
    for (const listener of this.changed) listener();
  }

  private setConnection(connection: Connection): void {
    const wasLost = this.connection.status === "lost";
    this.connection = connection;
    // Questions that were asked while the server was away are asked again.
    if (wasLost && connection.status === "live") void this.queries.invalidateQueries();
    if (connection.status === "refused") void this.queries.invalidateQueries({ queryKey: ["session"] });
    this.notify();
  }

  private take(events: Event[]): void {
    for (const event of events) {
      if (event.run_id) this.runs.add(event.run_id);
      if (event.task_id) this.tasks.add(event.task_id);
    }
    if (this.paused) {
      this.waiting += events.length;
      this.notify();
      return;
    }
    for (const listener of this.listeners) listener(events);
    this.schedule();
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => void this.flush(), this.pace);
  }

  /** Read anew what is shown and was changed; the next time after as long as this took, and more. */
  private async flush(): Promise<void> {
    if (this.paused || (!this.runs.size && !this.tasks.size)) {
      this.timer = undefined;
      return;
    }
    const [runs, tasks] = [new Set(this.runs), new Set(this.tasks)];
    this.runs.clear();
    this.tasks.clear();
    const began = performance.now();
    await this.queries.invalidateQueries({
      predicate: ({ queryKey: [kind, id] }) => {
        if (kind === "run" || kind === "run-why") return runs.has(id as string);
        if (kind === "task" || kind === "task-why" || kind === "attempts" || kind === "history") {
          return tasks.has(id as string);
        }
        return kind === "runs" || kind === "tasks" || kind === "stats" || kind === "workers" || kind === "people";
      },
    });
    const took = performance.now() - began;
    this.pace = Math.min(MAX_WAIT, Math.max(GATHER, 3 * took));
    this.timer = undefined;
    if (this.runs.size || this.tasks.size) this.schedule();
  }
}

const LiveContext = createContext<Live | undefined>(undefined);

export function LiveProvider({ children }: { children: ReactNode }): ReactNode {
  const queries = useQueryClient();
  const live = useMemo(() => new Live(queries), [queries]);
  useEffect(() => {
    live.start();
    return () => live.stop();
  }, [live]);
  return <LiveContext.Provider value={live}>{children}</LiveContext.Provider>;
}

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (!live) throw new Error("useLive needs a LiveProvider");
  useSyncExternalStore(live.subscribe, live.snapshot);
  return live;
}

/** Call back with the events that come while the page is shown and not paused. */
export function useEvents(listener: EventListener): void {
  const live = useContext(LiveContext);
  useEffect(() => live?.listen(listener), [live, listener]);
}

/** The present time, told once in each `every` milliseconds, and not while the page is hidden. */
export function useNow(every = 1_000, running = true): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!running) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, every);
    return () => clearInterval(timer);
  }, [every, running]);
  return now;
}
