/** The routes: what a path shows, and what of the choice is kept in the URL. */

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";

import { Inbox } from "./inbox/inbox";
import { RunsPage } from "./runs/runs-page";
import { NotFound } from "./shell/not-found";
import { Shell } from "./shell/shell";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

/** The named parameters of a URL; all others are left out. */
function keep<Name extends string>(...names: Name[]) {
  return (given: Record<string, unknown>): { [name in Name]?: string } => {
    const kept: { [name in Name]?: string } = {};
    for (const name of names) {
      const value = given[name];
      if (typeof value === "string" && value !== "") kept[name] = value;
    }
    return kept;
  };
}

export const inboxRoute = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: keep("item"),
  component: Inbox,
});

export const runsRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: keep("status", "workflow", "key", "q", "label", "agent", "step", "since", "error"),
  component: RunsPage,
});

const RUN_SEARCH = ["task", "attempt", "view", "q", "only", "at", "wait", "type"] as const;
export type RunSearch = { [name in (typeof RUN_SEARCH)[number]]?: string };

const TASK_SEARCH = ["tab", "attempt", "q"] as const;
export type TaskSearch = { [name in (typeof TASK_SEARCH)[number]]?: string };

export const runRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs/$run",
  validateSearch: keep(...RUN_SEARCH),
  component: lazyRouteComponent(() => import("./runs/run-page"), "RunPage"),
});

export const runTabRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs/$run/$tab",
  validateSearch: keep(...RUN_SEARCH),
  component: lazyRouteComponent(() => import("./runs/run-page"), "RunTabPage"),
});

export const taskRoute = createRoute({
  getParentRoute: () => root,
  path: "/tasks/$task",
  validateSearch: keep(...TASK_SEARCH),
  component: lazyRouteComponent(() => import("./tasks/task-page"), "TaskPage"),
});

export const queueRoute = createRoute({
  getParentRoute: () => root,
  path: "/queue",
  validateSearch: keep("agent", "worker"),
  component: lazyRouteComponent(() => import("./queue/queue-page"), "QueuePage"),
});

export const plansRoute = createRoute({
  getParentRoute: () => root,
  path: "/plan",
  component: lazyRouteComponent(() => import("./planning/plans-page"), "PlansPage"),
});

export const planRoute = createRoute({
  getParentRoute: () => root,
  path: "/plan/$task",
  validateSearch: keep("part"),
  component: lazyRouteComponent(() => import("./planning/plan-page"), "PlanPage"),
});

export const workflowsRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  component: lazyRouteComponent(() => import("./workflows/workflows-page"), "WorkflowsPage"),
});

export const workflowRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$name",
  validateSearch: keep("version", "against", "start"),
  component: lazyRouteComponent(() => import("./workflows/workflow-page"), "WorkflowPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    inboxRoute,
    runsRoute,
    runRoute,
    runTabRoute,
    taskRoute,
    queueRoute,
    plansRoute,
    planRoute,
    workflowsRoute,
    workflowRoute,
  ]),
  // Plain parameters, as people write them: no JSON.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const kept = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
    const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
    return text && `?${text}`;
  },
  defaultPreload: "intent",
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
