/** The questions that pages ask, each with the key that the stream of events names it by. */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";

import type {
  Attempt,
  BusGroup,
  Event,
  Page,
  ParkedMessage,
  Run,
  Schedule,
  Statistics,
  Task,
  Why,
  Worker,
  Workflow,
  WorkflowEntry,
} from "../model/types";
import { api, fetchSession, unwrap } from "./client";

const MANY = 500;

export const sessionQuery = queryOptions({ queryKey: ["session"], queryFn: fetchSession, retry: false });

export interface RunFilters {
  status?: string;
  workflow?: string;
  key?: string;
  label?: string;
  step?: string;
  agent?: string;
  since?: string;
  error?: string;
}

/** The API takes several labels; one is chosen here. */
function listLabels({ label, ...filters }: RunFilters) {
  return { ...filters, ...(label ? { label: [label] } : {}) };
}

export interface RunCounts {
  total: number;
  statuses: Record<string, number>;
}

export const runCountsQuery = (filters: RunFilters) =>
  queryOptions({
    queryKey: ["runs", "counts", filters],
    queryFn: () => unwrap<RunCounts>(api.GET("/api/v1/runs/counts", { params: { query: listLabels(filters) } })),
  });

export const runsQuery = (filters: RunFilters) =>
  infiniteQueryOptions({
    queryKey: ["runs", filters],
    queryFn: ({ pageParam }) =>
      unwrap<Page<Run>>(
        api.GET("/api/v1/runs", {
          params: { query: { limit: 100, ...listLabels(filters), ...(pageParam ? { after: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id],
    queryFn: () => unwrap<Run>(api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: id } } })),
  });

/** A run as it was right after one of its events: that never changes. */
export const pastRunQuery = (id: string, at: number | undefined) =>
  queryOptions({
    queryKey: ["past", id, at],
    queryFn: () =>
      unwrap<Run>(
        api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: id }, query: { at: at ?? 0 } } }),
      ),
    enabled: at !== undefined,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });

export interface Hour {
  hour: string;
  runs: { started: number; completed: number; failed: number; cancelled: number };
  tasks: { done: number; failed: number; retried: number; lost: number };
  /** Seconds that work was ready before it was claimed. */
  dispatch: { attempts: number; p50?: number; p95?: number };
}

export const activityQuery = queryOptions({
  queryKey: ["activity"],
  queryFn: async () =>
    (await unwrap<Page<Hour>>(api.GET("/api/v1/activity", { params: { query: { hours: 24 } } }))).items,
  refetchInterval: 60_000,
});

export interface Day {
  day: string;
  usd: number;
  attempts: number;
}

/** What today has cost, by the day of this browser. */
export const costsQuery = queryOptions({
  queryKey: ["costs"],
  queryFn: async () => {
    const offset = -new Date().getTimezoneOffset();
    const { items } = await unwrap<Page<Day>>(
      api.GET("/api/v1/costs", { params: { query: { days: 1, offset } } }),
    );
    return items.at(-1);
  },
  refetchInterval: 60_000,
});

export const runWhyQuery = (id: string) =>
  queryOptions({
    queryKey: ["run-why", id],
    queryFn: () => unwrap<Why>(api.GET("/api/v1/runs/{run_id}/why", { params: { path: { run_id: id } } })),
  });

/** All events of a run, page by page. */
export const runEventsQuery = (id: string) =>
  queryOptions({
    queryKey: ["run-events", id],
    queryFn: async () => {
      const events: Event[] = [];
      let after: string | undefined;
      for (;;) {
        const page = await unwrap<Page<Event>>(
          api.GET("/api/v1/runs/{run_id}/events", {
            params: { path: { run_id: id }, query: { limit: MANY, ...(after ? { after } : {}) } },
          }),
        );
        events.push(...page.items);
        if (!page.next || page.items.length < MANY) return events;
        after = page.next;
      }
    },
    staleTime: Infinity,
  });

export const taskQuery = (id: string) =>
  queryOptions({
    queryKey: ["task", id],
    queryFn: () => unwrap<Task>(api.GET("/api/v1/tasks/{task_id}", { params: { path: { task_id: id } } })),
  });

export const taskWhyQuery = (id: string) =>
  queryOptions({
    queryKey: ["task-why", id],
    queryFn: () => unwrap<Why>(api.GET("/api/v1/tasks/{task_id}/why", { params: { path: { task_id: id } } })),
  });

export const attemptsQuery = (id: string) =>
  queryOptions({
    queryKey: ["attempts", id],
    queryFn: async () =>
      (
        await unwrap<Page<Attempt>>(
          api.GET("/api/v1/tasks/{task_id}/attempts", { params: { path: { task_id: id } } }),
        )
      ).items,
  });

export const taskEventsQuery = (id: string) =>
  queryOptions({
    queryKey: ["history", id],
    queryFn: async () =>
      (
        await unwrap<Page<Event>>(
          api.GET("/api/v1/tasks/{task_id}/events", {
            params: { path: { task_id: id }, query: { limit: MANY } },
          }),
        )
      ).items,
  });

export const effectsQuery = (id: string) =>
  queryOptions({
    queryKey: ["task", id, "effects"],
    queryFn: () =>
      unwrap<{ effects: Record<string, unknown> }>(
        api.GET("/api/v1/tasks/{task_id}/effects", {
          params: { path: { task_id: id }, query: { limit: MANY } },
        }),
      ),
  });

export interface Artifact {
  name: string;
  bytes: number;
  digest: string;
  attempt: number;
  kept_at: string;
}

export const artifactsQuery = (id: string) =>
  queryOptions({
    queryKey: ["task", id, "artifacts"],
    queryFn: async () =>
      (
        await unwrap<Page<Artifact>>(
          api.GET("/api/v1/tasks/{task_id}/artifacts", { params: { path: { task_id: id } } }),
        )
      ).items,
  });

export interface LogText {
  attempt: number;
  text: string;
  next: number;
}

export function fetchLog(id: string, attempt: number, start: number): Promise<LogText> {
  return unwrap<LogText>(
    api.GET("/api/v1/tasks/{task_id}/logs", {
      params: { path: { task_id: id }, query: { attempt, start } },
    }),
  );
}

export interface TaskFilters {
  status?: string;
  agent?: string;
  parent?: string;
  workflow?: string;
  step?: string;
}

export const tasksQuery = (filters: TaskFilters, limit = 200) =>
  queryOptions({
    queryKey: ["tasks", filters, limit],
    queryFn: async () =>
      (await unwrap<Page<Task>>(api.GET("/api/v1/tasks", { params: { query: { ...filters, limit } } })))
        .items,
  });

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: async () => (await unwrap<Page<Worker>>(api.GET("/api/v1/workers"))).items,
  refetchInterval: 10_000,
});

export const statisticsQuery = queryOptions({
  queryKey: ["stats"],
  queryFn: () => unwrap<Statistics>(api.GET("/api/v1/stats")),
});

export const schedulesQuery = queryOptions({
  queryKey: ["schedules"],
  queryFn: async () => (await unwrap<Page<Schedule>>(api.GET("/api/v1/schedules"))).items,
});

export const busGroupsQuery = queryOptions({
  queryKey: ["bus"],
  queryFn: async () => (await unwrap<Page<BusGroup>>(api.GET("/api/v1/bus/groups"))).items,
  refetchInterval: 15_000,
});

export const parkedQuery = queryOptions({
  queryKey: ["parked"],
  queryFn: async () => (await unwrap<Page<ParkedMessage>>(api.GET("/api/v1/bus/parked"))).items,
  refetchInterval: 15_000,
});

export const workflowsQuery = queryOptions({
  queryKey: ["workflows"],
  queryFn: async () => (await unwrap<Page<WorkflowEntry>>(api.GET("/api/v1/workflows"))).items,
});

export const versionsQuery = (name: string) =>
  queryOptions({
    queryKey: ["workflows", name, "versions"],
    queryFn: async () =>
      (
        await unwrap<Page<{ version: string; created_at: string }>>(
          api.GET("/api/v1/workflows/{name}/versions", { params: { path: { name } } }),
        )
      ).items,
  });

/** A version of a workflow never changes. */
export const workflowQuery = (name: string, version?: string) =>
  queryOptions({
    queryKey: ["workflow", name, version ?? ""],
    queryFn: () =>
      unwrap<Workflow>(
        api.GET("/api/v1/workflows/{name}", {
          params: { path: { name }, query: version ? { version } : {} },
        }),
      ),
    ...(version ? { staleTime: Infinity } : {}),
  });
