/** The graph of a run: its steps as nodes, a loop as one frame, what needs what as edges; laid out by dagre. */

import dagre from "@dagrejs/dagre";

import { markTask, needsPerson } from "./marks";
import type { TreeRow } from "./tree";
import type { Step } from "./types";

export interface GraphNode {
  id: string;
  step: string;
  /** The definition, where there is one, and the row of the task, where it exists. */
  definition: Step | undefined;
  row: TreeRow | undefined;
  kind: "work" | "approval" | "loop" | "call";
  width: number;
  height: number;
  /** The items of a loop that are shown, and which of them are open. */
  items: TreeRow[];
  hidden: number;
  open: ReadonlySet<string>;
}

export interface GraphEdge {
  id: string;
  from: string;
  to: string;
  kind: "needs" | "goto";
  state: "past" | "now" | "later";
  label?: string;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

const MANY_ITEMS = 8;
const HEADER = 34;
const ITEM = 30;
const MINI = 42;
const LOOP_WIDTH = 312;
const NODE_HEIGHT = 52;

export function buildGraph(steps: Step[], rows: TreeRow[], opened: ReadonlySet<string>): Graph {
  const rowOf = new Map(rows.map((row) => [row.task.step ?? row.task.id, row]));
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  const known = new Set<string>();
  for (const step of steps) {
    known.add(step.id);
    nodes.push(buildNode(step.id, step, rowOf.get(step.id), opened));
  }
  for (const row of rows) {
    const id = row.task.step ?? row.task.id;
    if (!known.has(id)) {
      known.add(id);
      nodes.push(buildNode(id, undefined, row, opened));
    }
  }
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const link = (from: string, to: string) => {
    const [source, target] = [byId.get(from), byId.get(to)];
    if (!source || !target || from === to) return;
    edges.push({ id: `${from}>${to}`, from, to, kind: "needs", state: stateOfEdge(source, target) });
  };
  for (const step of steps) {
    for (const need of step.needs ?? []) link(need, step.id);
    const back = readGoto(step);
    if (back && byId.has(back.to)) {
      edges.push({
        id: `${step.id}~${back.to}`,
        from: step.id,
        to: back.to,
        kind: "goto",
        state: "later",
        label: `on failure: ${back.to} again, at most ${back.rounds} ${back.rounds === 1 ? "round" : "rounds"}`,
      });
    }
  }
  if (!steps.length) {
    const stepOf = new Map(rows.map((row) => [row.task.id, row.task.step ?? row.task.id]));
    for (const row of rows) {
      for (const need of row.task.blocked_by) {
        const from = stepOf.get(need);
        if (from) link(from, row.task.step ?? row.task.id);
      }
    }
  }
  return { nodes, edges };
}

function stateOfEdge(from: GraphNode, to: GraphNode): GraphEdge["state"] {
  if (from.row?.task.status !== "done") return "later";
  return to.row?.task.status === "running" || to.row?.task.state.startsWith("in progress") ? "now" : "past";
}

function readGoto(step: Step): { to: string; rounds: number } | undefined {
  const found = step.on_failure;
  if (Array.isArray(found) && found[0] === "goto" && found[1]) return { to: found[1], rounds: found[2] };
  return undefined;
}

function buildNode(
  id: string,
  definition: Step | undefined,
  row: TreeRow | undefined,
  opened: ReadonlySet<string>,
): GraphNode {
  const isLoop = Boolean(definition?.steps?.length) || (row?.task.kind === "group" && row.children.length > 0);
  const isApproval = definition?.approval !== undefined || row?.task.kind === "approval";
  const isCall = Boolean(row?.task.calls ?? definition?.work?.workflow);
  const base = { id, step: id, definition, row };
  if (!isLoop) {
    const width = Math.min(160, Math.max(112, 44 + 7.4 * (definition?.id ?? id).length));
    return {
      ...base,
      kind: isApproval ? "approval" : isCall ? "call" : "work",
      width: isApproval ? width + 16 : width,
      height: NODE_HEIGHT,
      items: [],
      hidden: 0,
      open: new Set(),
    };
  }
  const children = row?.children ?? [];
  const items = chooseItems(children, opened);
  const open = new Set(items.filter((item) => isOpen(item, opened)).map((item) => item.task.id));
  const more = children.length > items.length ? 1 : 0;
  const body = items.reduce((sum, item) => sum + ITEM + (open.has(item.task.id) ? heightOfMinis(item) : 0), 0);
  const empty = children.length ? 0 : definition?.steps?.length ? MINI + 14 : 0;
  return {
    ...base,
    kind: "loop",
    width: LOOP_WIDTH,
    height: HEADER + body + more * ITEM + empty + 2,
    items,
    hidden: children.length - items.length,
    open,
  };
}

/** The small nodes of an open item stand two in a row. */
function heightOfMinis(item: TreeRow): number {
  const rows = Math.ceil(item.children.length / 2);
  return rows ? rows * MINI + (rows - 1) * 8 + 13 : 0;
}

function isOpen(item: TreeRow, opened: ReadonlySet<string>): boolean {
  if (!item.children.length) return false;
  if (opened.has(`-${item.task.id}`)) return false;
  return opened.has(item.task.id) || isBusy(item);
}

function isBusy(item: TreeRow): boolean {
  const { name } = markTask(item.task);
  if (name === "failed" || name === "held" || name === "person" || name === "running") return true;
  return item.children.some(
    ({ task }) => task.status === "running" || task.status === "failed" || needsPerson(task),
  );
}

/** All items of a short loop; of a long one those that run, failed or are held, and the newest done. */
function chooseItems(children: TreeRow[], opened: ReadonlySet<string>): TreeRow[] {
  if (children.length <= MANY_ITEMS) return children;
  const busy = children.filter((item) => isBusy(item) || opened.has(item.task.id)).slice(0, MANY_ITEMS);
  const lastDone = children.findLast((item) => item.task.status === "done");
  const kept = new Set([...busy, ...(lastDone ? [lastDone] : [])]);
  return children.filter((item) => kept.has(item));
}

export interface Placed {
  x: number;
  y: number;
}

export function layOut(graph: Graph, direction: "LR" | "TB"): Map<string, Placed> {
  const drawn = new dagre.graphlib.Graph();
  drawn.setGraph({ rankdir: direction, ranksep: 28, nodesep: 24, marginx: 0, marginy: 0 });
  drawn.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) drawn.setNode(node.id, { width: node.width, height: node.height });
  for (const edge of graph.edges) {
    if (edge.kind === "needs") drawn.setEdge(edge.from, edge.to);
  }
  dagre.layout(drawn);
  return new Map(
    graph.nodes.map((node) => {
      const at = drawn.node(node.id);
      return [node.id, { x: at.x - node.width / 2, y: at.y - node.height / 2 }];
    }),
  );
}

/** What a layout depends on: a status never moves a node. */
export function shapeOf(graph: Graph): string {
  return [
    ...graph.nodes.map((node) => `${node.id}:${Math.round(node.width)}x${node.height}`),
    ...graph.edges.map((edge) => edge.id),
  ].join(" ");
}
