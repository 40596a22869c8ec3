/** The events of one run: its history, and what the stream brings. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";

import { useEvents } from "../api/live";
import { runEventsQuery } from "../api/queries";
import type { Event } from "../model/types";

export function useRunEvents(id: string): { events: Event[]; isLoading: boolean; error: unknown } {
  const { data, isLoading, error } = useQuery(runEventsQuery(id));
  const [come, setCome] = useState<Event[]>([]);
  useEffect(() => setCome([]), [id]);
  const hear = useCallback(
    (events: Event[]) => {
      const own = events.filter((event) => event.run_id === id);
      if (own.length) setCome((before) => [...before, ...own]);
    },
    [id],
  );
  useEvents(hear);
  const events = useMemo(() => mergeEvents(data ?? [], come), [data, come]);
  return { events, isLoading, error };
}

/** Both in their order, each event once. */
export function mergeEvents(history: Event[], come: Event[]): Event[] {
  if (!come.length) return history;
  const known = new Set(history.map((event) => event.seq));
  const added = come.filter((event) => !known.has(event.seq) && known.add(event.seq));
  if (!added.length) return history;
  return [...history, ...added].sort((a, b) => a.seq - b.seq);
}
