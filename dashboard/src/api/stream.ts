/** The stream of events, read once for all tabs of a browser: one tab leads, and tells the others. */

import type { Event } from "../model/types";

export interface Connection {
  status: "connecting" | "live" | "lost" | "refused";
  /** When it was lost, and when it is tried again. */
  since?: number;
  retryAt?: number;
  /** Events that were caught up after the server was back. */
  caughtUp?: number;
  backAt?: number;
}

type Message =
  | { kind: "events"; events: Event[]; last: string }
  | { kind: "connection"; connection: Connection }
  | { kind: "gap" }
  | { kind: "retry" }
  | { kind: "hello" };

const CHANNEL = "holdfast-events";
const BACKOFF = [1_000, 2_000, 4_000, 8_000];
/** The server writes at least every 15 seconds. */
const SILENCE = 40_000;
/** How long "back since" is said. */
const TOLD_FOR = 6_000;

export interface StreamListener {
  onEvents(events: Event[]): void;
  onConnection(connection: Connection): void;
  /** History was missed: everything is to be read anew. */
  onGap(): void;
}

export class EventStream {
  private readonly channel: BroadcastChannel | undefined;
  private connection: Connection = { status: "connecting" };
  private last: string | undefined;
  private leading = false;
  private tries = 0;
  private wake: (() => void) | undefined;
  private stopped = false;

  constructor(private readonly listener: StreamListener) {
    this.channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(CHANNEL) : undefined;
    if (this.channel) this.channel.onmessage = (message) => this.hear(message.data as Message);
  }

  start(): void {
    if (this.channel && navigator.locks) {
      // Whoever gets the lock reads the stream, until its tab is closed.
      void navigator.locks.request("holdfast-stream", () => this.lead());
      this.channel.postMessage({ kind: "hello" } satisfies Message);
    } else {
      void this.lead();
    }
  }

  stop(): void {
    this.stopped = true;
    this.wake?.();
    this.channel?.close();
  }

  retryNow(): void {
    if (this.leading) this.wake?.();
    else this.channel?.postMessage({ kind: "retry" } satisfies Message);
  }

  private hear(message: Message): void {
    if (message.kind === "events") {
      this.last = message.last;
      this.listener.onEvents(message.events);
    } else if (message.kind === "connection") {
      this.connection = message.connection;
      this.listener.onConnection(message.connection);
    } else if (message.kind === "gap") this.listener.onGap();
    else if (message.kind === "retry" && this.leading) this.wake?.();
    else if (message.kind === "hello" && this.leading) {
      this.channel?.postMessage({ kind: "connection", connection: this.connection } satisfies Message);
    }
  }

  private tell(connection: Connection): void {
    this.connection = connection;
    this.listener.onConnection(connection);
    this.channel?.postMessage({ kind: "connection", connection } satisfies Message);
  }

  private async lead(): Promise<void> {
    this.leading = true;
    while (!this.stopped) {
      let refused = false;
      try {
        refused = await this.read();
      } catch {
        // The server is away, or the connection broke: both are tried again.
      }
      if (this.stopped) return;
      if (refused) {
        this.tell({ status: "refused" });
        return;
      }
      const wait = BACKOFF[Math.min(this.tries, BACKOFF.length - 1)]!;
      this.tries += 1;
      const since = this.connection.status === "lost" ? this.connection.since : Date.now();
      this.tell({ status: "lost", since, retryAt: Date.now() + wait });
      await this.sleep(wait);
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Read until the stream ends; true if this browser is not let in (any more). */
  private async read(): Promise<boolean> {
    const aborted = new AbortController();
    let silence = setTimeout(() => aborted.abort(), SILENCE);
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => aborted.abort(), SILENCE);
    };
    try {
      const after = this.last === undefined ? "" : `?after=${encodeURIComponent(this.last)}`;
      const response = await fetch(`/api/v1/stream${after}`, {
        credentials: "same-origin",
        signal: aborted.signal,
        cache: "no-store",
      });
      if (response.status === 401 || response.status === 403) return true;
      if (!response.ok || !response.body) return false;
      const wasLost = this.connection.status === "lost";
      this.tries = 0;
      let caughtUp = 0;
      if (wasLost) {
        const backAt = Date.now();
        this.tell({ status: "live", backAt, caughtUp: 0 });
        setTimeout(() => {
          if (this.connection.backAt === backAt) this.tell({ status: "live" });
        }, TOLD_FOR);
      } else this.tell({ status: "live" });
      const parser = new FrameParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return false;
        heard();
        const frames = parser.push(value);
        const events: Event[] = [];
        let gap = false;
        for (const frame of frames) {
          if (frame.id) this.last = frame.id;
          if (frame.event === "event") events.push(JSON.parse(frame.data) as Event);
          else if (frame.event === "gap") gap = true;
        }
        if (events.length) {
          this.listener.onEvents(events);
          this.channel?.postMessage({ kind: "events", events, last: this.last ?? "" } satisfies Message);
          if (this.connection.backAt) {
            caughtUp += events.length;
            this.tell({ ...this.connection, caughtUp });
          }
        }
        if (gap) {
          this.listener.onGap();
          this.channel?.postMessage({ kind: "gap" } satisfies Message);
        }
      }
    } finally {
      clearTimeout(silence);
      aborted.abort();
    }
  }
}

export interface Frame {
  id: string;
  event: string;
  data: string;
}

/** Server-sent events out of pieces of text that end anywhere. */
export class FrameParser {
  private rest = "";

  push(text: string): Frame[] {
    const parts = (this.rest + text).split("\n\n");
    this.rest = parts.pop() ?? "";
    return parts.map(readFrame);
  }
}

function readFrame(text: string): Frame {
  const frame: Frame = { id: "", event: "", data: "" };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(": ");
    const name = line.slice(0, colon);
    if (name === "id" || name === "event" || name === "data") frame[name] = line.slice(colon + 2);
  }
  return frame;
}
