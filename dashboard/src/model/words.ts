/** Times, durations, money and values in words, as the whole dashboard writes them. */

import type { Failure, Run } from "./types";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `2.1s`, `48s`, `3m 55s`, `2h 05m`, `3d 4h`. */
export function describeDuration(milliseconds: number): string {
  const ms = Math.max(0, milliseconds);
  if (ms < 950) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)}s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m ${pad((ms % MINUTE) / SECOND)}s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)}h ${pad((ms % HOUR) / MINUTE)}m`;
  return `${Math.floor(ms / DAY)}d ${Math.floor((ms % DAY) / HOUR)}h`;
}

/** One part only, for ages in lists: `4s`, `22m`, `1h`, `2d`. */
export function describeAge(milliseconds: number): string {
  const ms = Math.max(0, milliseconds);
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)}h`;
  return `${Math.floor(ms / DAY)}d`;
}

function pad(value: number): string {
  return String(Math.floor(value)).padStart(2, "0");
}

/** The time of day; with its date, where that is another day than today. */
export function describeClock(moment: string, now: number = Date.now()): string {
  const at = new Date(moment);
  const clock = `${pad(at.getHours())}:${pad(at.getMinutes())}`;
  const today = new Date(now);
  if (at.toDateString() === today.toDateString()) return clock;
  const date = at.toLocaleDateString("en", { day: "numeric", month: "short" });
  return `${date}, ${clock}`;
}

export function describeClockWithSeconds(moment: string): string {
  const at = new Date(moment);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

/** For `title`: the exact moment with its zone. */
export function describeExactly(moment: string): string {
  const at = new Date(moment);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return `${day} ${describeClockWithSeconds(moment)} ${zone}`;
}

export function describeUntil(moment: string, now: number): string {
  const left = new Date(moment).getTime() - now;
  return left > 0 ? `in ${describeDuration(left)}` : `${describeAge(-left)} ago`;
}

export function describeMoney(usd: number | undefined): string {
  if (usd === undefined) return "–";
  return usd > 0 && usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}

export function describeCount(number: number): string {
  return number.toLocaleString("en");
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${describeCount(number)} ${number === 1 ? one : many}`;
}

export function describeBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export function describeFailure(error: Failure | string | undefined): string {
  if (error === undefined) return "";
  if (typeof error === "string") return error;
  return error.message ?? error.type ?? "";
}

/** Text of any value on one line. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}

/** A run is called by its title, its key, or the first text that it was given. */
export function nameRun(run: Pick<Run, "title" | "key" | "input" | "workflow">): string {
  if (run.title) return run.title;
  if (run.key) return run.key;
  const given = run.input;
  if (typeof given === "string" && given) return firstLine(given);
  if (given && typeof given === "object") {
    for (const value of Object.values(given)) {
      if (typeof value === "string" && value.trim()) return firstLine(value);
    }
  }
  return run.workflow;
}

function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0]!.slice(0, 120);
}

/** An id as it is shown: its kind and its last six characters, which differ most. */
export function shortenId(id: string): string {
  return id.length > 10 ? `${id.slice(0, 2)}${id.slice(-6)}` : id;
}
