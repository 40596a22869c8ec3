/** Merging of events: the history of a run, and what the stream has brought. */

import type { Event } from "../model/types";

/** Both in their order, each event once. */
export function mergeEvents(history: Event[], come: Event[]): Event[] {
  if (!come.length) return history;
  const known = new Set(history.map((event) => event.seq));
  const added = come.filter((event) => !known.has(event.seq) && known.add(event.seq));
  if (!added.length) return history;
  return [...history, ...added].sort((a, b) => a.seq - b.seq);
}
