/** What needs a person, asked of the server: approvals, questions, budgets, failures, work nobody takes. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { runsQuery, statisticsQuery, tasksQuery, workersQuery } from "../api/queries";
import type { Run } from "../model/types";
import { collectItems, type InboxItem } from "./items";
import { useDismissed } from "./last-looked";

export function usePeople(): { items: InboxItem[]; running: Run[]; isLoading: boolean; error: unknown } {
  const running = useInfiniteQuery(runsQuery({ status: "running" }));
  const failed = useInfiniteQuery(runsQuery({ status: "failed" }));
  const queued = useQuery(tasksQuery({ status: "queued" }));
  const statistics = useQuery(statisticsQuery);
  const workers = useQuery(workersQuery);
  const { has: isDismissed } = useDismissed();
  const items = useMemo(
    () =>
      collectItems({
        running: running.data?.pages.flatMap((page) => page.items) ?? [],
        failed: failed.data?.pages[0]?.items ?? [],
        queued: queued.data ?? [],
        statistics: statistics.data,
        workers: workers.data,
        now: Date.now(),
      }),
    [running.data, failed.data, queued.data, statistics.data, workers.data],
  );
  return {
    items: items.filter((item) => item.kind !== "failed" || !isDismissed(item.id)),
    running: running.data?.pages.flatMap((page) => page.items) ?? [],
    isLoading: running.isLoading || queued.isLoading,
    error: running.error ?? queued.error,
  };
}
