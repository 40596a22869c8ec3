/** The events of one run: its history, and what the stream brings. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";

import { useEvents } from "../api/live";
import { runEventsQuery } from "../api/queries";
import type { Event } from "../model/types";
import { mergeEvents } from "./merge-events";

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
