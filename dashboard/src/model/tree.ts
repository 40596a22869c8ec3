/** The tree of a run: its tasks below their groups, with the names that the command line gives them. */

import type { Task } from "./types";

export interface TreeRow {
  task: Task;
  depth: number;
  /** `build.2.implement` */
  name: string;
  /** What is written in the row: `implement`, `2 SAML callback`. */
  label: string;
  children: TreeRow[];
}

export function buildTree(tasks: Task[], depthOfTop = 0, prefixOfTop = ""): TreeRow[] {
  const below = new Map<string | undefined, Task[]>();
  const known = new Set(tasks.map((task) => task.id));
  for (const task of tasks) {
    if (task.superseded) continue;
    const parent = task.parent_id && known.has(task.parent_id) ? task.parent_id : undefined;
    const siblings = below.get(parent);
    if (siblings) siblings.push(task);
    else below.set(parent, [task]);
  }
  const grow = (parent: string | undefined, depth: number, prefix: string): TreeRow[] =>
    (below.get(parent) ?? [])
      .map((task, index) => ({ task, index }))
      .sort((a, b) => orderOf(a.task) - orderOf(b.task) || a.index - b.index)
      .map(({ task }) => {
        const isItem = isLoopItem(task);
        const part = isItem ? String((task.item ?? 0) + 1) : (task.step ?? task.title);
        const name = prefix ? `${prefix}.${part}` : part;
        const label = isItem ? `${part} ${titleOfItem(task)}`.trim() : part;
        const called = task.child?.tasks ? buildTree(task.child.tasks, depth + 1, name) : [];
        return { task, depth, name, label, children: [...grow(task.id, depth + 1, name), ...called] };
      });
  return grow(undefined, depthOfTop, prefixOfTop);
}

/** The tasks of a run, and of the runs that it called. */
export function listTasks(tasks: Task[]): Task[] {
  return tasks.flatMap((task) => [task, ...listTasks(task.child?.tasks ?? [])]);
}

function orderOf(task: Task): number {
  return isLoopItem(task) ? (task.item ?? 0) : task.position;
}

/** An item is a group right below the group of its loop, which has the same step. */
export function isLoopItem(task: Task): boolean {
  return task.kind === "group" && task.item !== undefined && task.parent_id !== undefined;
}

function titleOfItem(task: Task): string {
  const own = task.title;
  if (own && own !== `${task.step}.${(task.item ?? 0) + 1}`) return own;
  const given = task.payload;
  if (typeof given === "string") return given;
  if (given && typeof given === "object") {
    const { title, name } = given as Record<string, unknown>;
    if (typeof title === "string") return title;
    if (typeof name === "string") return name;
    for (const value of Object.values(given)) if (typeof value === "string") return value;
  }
  return "";
}

export function flatten(rows: TreeRow[], folded: ReadonlySet<string> = new Set()): TreeRow[] {
  const flat: TreeRow[] = [];
  const walk = (each: TreeRow) => {
    flat.push(each);
    if (!folded.has(each.task.id)) each.children.forEach(walk);
  };
  rows.forEach(walk);
  return flat;
}

/** The rows that match, with the groups that they are in. */
export function keepMatching(rows: TreeRow[], matches: (row: TreeRow) => boolean): TreeRow[] {
  const kept: TreeRow[] = [];
  for (const row of rows) {
    const children = keepMatching(row.children, matches);
    if (children.length || matches(row)) kept.push({ ...row, children });
  }
  return kept;
}

export function countBelow(row: TreeRow): { done: number; running: number; failed: number; total: number } {
  const counts = { done: 0, running: 0, failed: 0, total: 0 };
  for (const { task } of row.children) {
    counts.total += 1;
    if (task.status === "done") counts.done += 1;
    else if (task.status === "failed" || task.status === "cancelled") counts.failed += 1;
    else if (task.status === "running" || task.state.startsWith("in progress")) counts.running += 1;
  }
  return counts;
}
