/** The timeline of a run, from its events: attempts as bars, the waiting before them, the axis. */

import type { Event } from "./types";

export type BarKind = "done" | "running" | "failed" | "cancelled" | "lost" | "rejected" | "released";

export interface Bar {
  attempt: number;
  kind: BarKind;
  from: number;
  to: number;
  owner: string;
  outcome: string;
}

export interface Lane {
  bars: Bar[];
  created: number;
  ended: number | undefined;
}

const ENDS: Record<string, BarKind> = {
  "task.done": "done",
  "task.skipped": "done",
  "task.failed": "failed",
  "task.retrying": "failed",
  "task.lost": "lost",
  "task.cancelled": "cancelled",
  "task.rejected": "rejected",
  "task.superseded": "rejected",
  "task.reopened": "rejected",
  "task.released": "released",
  "task.asked": "released",
  "task.suspended": "released",
  "task.called": "released",
  "task.held": "released",
};

const OUTCOMES: Record<BarKind, string> = {
  done: "completed",
  running: "running",
  failed: "failed",
  cancelled: "cancelled",
  lost: "lost",
  rejected: "rejected",
  released: "released",
};

/** The lane of each task. `now` ends what runs. */
export function buildLanes(events: Event[], now: number): Map<string, Lane> {
  const lanes = new Map<string, Lane>();
  for (const event of events) {
    if (!event.task_id) continue;
    const at = Date.parse(event.at);
    let lane = lanes.get(event.task_id);
    if (!lane) {
      lane = { bars: [], created: at, ended: undefined };
      lanes.set(event.task_id, lane);
    }
    const last = lane.bars.at(-1);
    if (event.to === "running" && event.from !== "running") {
      lane.bars.push({
        attempt: event.attempt,
        kind: "running",
        from: at,
        to: now,
        owner: event.actor,
        outcome: "running",
      });
      lane.ended = undefined;
    } else if (event.from === "running" && event.to !== "running" && last?.kind === "running") {
      last.to = at;
      last.kind = endOf(event);
      last.outcome = OUTCOMES[last.kind];
    } else if (event.type === "task.rejected" || event.type === "task.reopened") {
      // A verdict came after the attempt had ended: it happened, and does not count.
      if (last?.kind === "done") {
        last.kind = "rejected";
        last.outcome = "completed, then rejected";
      }
    }
    if (event.to === "done" || event.to === "failed" || event.to === "cancelled") lane.ended = at;
    else if (event.to === "queued" || event.to === "idle") lane.ended = undefined;
  }
  return lanes;
}

function endOf(event: Event): BarKind {
  const known = ENDS[event.type];
  if (known) return known;
  if (event.to === "done") return "done";
  if (event.to === "cancelled") return "cancelled";
  return event.to === "failed" ? "failed" : "released";
}

export interface Range {
  from: number;
  to: number;
}

/** Stretches in which nothing of the run ran, longer than a twentieth of the rest or a minute. */
export function findIdleStretches(lanes: Iterable<Lane>, whole: Range): Range[] {
  const busy = [...lanes].flatMap((lane) => lane.bars.map(({ from, to }) => ({ from, to })));
  busy.sort((a, b) => a.from - b.from);
  const idle: Range[] = [];
  let end = whole.from;
  for (const each of busy) {
    if (each.from > end) idle.push({ from: end, to: each.from });
    end = Math.max(end, each.to);
  }
  if (whole.to > end) idle.push({ from: end, to: whole.to });
  const worked = whole.to - whole.from - idle.reduce((sum, each) => sum + each.to - each.from, 0);
  const least = Math.max(1_000, worked / 20);
  return idle.filter((each) => each.to - each.from > least);
}

export interface Scale {
  /** The place of a moment, in per cent of the lane. */
  place(at: number): number;
  ticks: { at: number; place: number; label: string }[];
  cuts: { place: number; length: number }[];
}

const STEPS = [
  100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000,
  172_800_000, 604_800_000, 2_419_200_000,
];
/** What is left out keeps this much room, in per cent. */
const CUT_WIDTH = 2;

export function buildScale(whole: Range, cuts: Range[], most = 8): Scale {
  const out = cuts.reduce((sum, each) => sum + each.to - each.from, 0);
  const shown = Math.max(1, whole.to - whole.from - out);
  const room = 100 - CUT_WIDTH * cuts.length;
  const place = (at: number): number => {
    let skipped = 0;
    let passed = 0;
    for (const cut of cuts) {
      if (at >= cut.to) {
        skipped += cut.to - cut.from;
        passed += CUT_WIDTH;
      } else if (at > cut.from) {
        skipped += at - cut.from;
        passed += (CUT_WIDTH * (at - cut.from)) / (cut.to - cut.from);
      }
    }
    return clamp(((at - whole.from - skipped) / shown) * room + passed);
  };
  const step = STEPS.find((each) => shown / each <= most - 1) ?? STEPS.at(-1)!;
  const ticks: Scale["ticks"] = [];
  for (let at = whole.from; at <= whole.to; at += step) {
    if (ticks.length > 200) break;
    if (cuts.some((cut) => at > cut.from && at < cut.to)) continue;
    const where = place(at);
    if (where > 98) continue;
    ticks.push({ at, place: where, label: at === whole.from ? "" : `+${describeStep(at - whole.from)}` });
  }
  return {
    place,
    ticks: cuts.length ? ticks.filter((tick, i) => i === 0 || tick.place - ticks[i - 1]!.place > 6) : ticks,
    cuts: cuts.map((cut) => ({ place: place(cut.from), length: cut.to - cut.from })),
  };
}

function clamp(value: number): number {
  return Math.min(100, Math.max(0, value));
}

export function describeStep(ms: number): string {
  if (ms < 1_000) return `${ms}ms`;
  if (ms < 60_000) return `${trim(ms / 1_000)}s`;
  if (ms < 3_600_000) return `${trim(ms / 60_000)}m`;
  if (ms < 86_400_000) return `${trim(ms / 3_600_000)}h`;
  return `${trim(ms / 86_400_000)}d`;
}

function trim(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** The bars that a run waited for: from its last end back, each time the latest before it began. */
export function findCriticalPath(lanes: Iterable<Lane>): Set<Bar> {
  const bars = [...lanes].flatMap((lane) => lane.bars).sort((a, b) => a.to - b.to);
  const path = new Set<Bar>();
  let next = bars.at(-1);
  while (next) {
    path.add(next);
    const before: Bar | undefined = latestEndingBy(bars, next.from, path);
    if (!before) break;
    next = before;
  }
  return path;
}

function latestEndingBy(bars: Bar[], at: number, taken: Set<Bar>): Bar | undefined {
  // An end and the start that it caused are written with the same clock, a little apart.
  const slack = 5;
  for (let i = bars.length - 1; i >= 0; i -= 1) {
    const bar = bars[i]!;
    if (bar.to <= at + slack && bar.from < at && !taken.has(bar)) return bar;
  }
  return undefined;
}
