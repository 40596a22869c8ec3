/** The graph: nodes of React Flow, laid out once for each shape. */

import {
  BaseEdge,
  type Edge,
  type EdgeProps,
  type EdgeTypes,
  getSmoothStepPath,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  type NodeTypes,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";

import { type Graph, type GraphNode, layOut, shapeOf } from "../model/graph";
import { markTask, toneOf } from "../model/marks";
import { countBelow, type TreeRow } from "../model/tree";
import type { Step } from "../model/types";
import { describeDuration, describeMoney } from "../model/words";
import { Glyph, Icon } from "../parts/marks";
import { Meter } from "../parts/pieces";

interface GraphActions {
  selected: string | undefined;
  faded: (row: TreeRow) => boolean;
  select: (id: string) => void;
  toggle: (id: string, open: boolean) => void;
  now: number;
}

type FlowNode = Node<{ node: GraphNode; actions: GraphActions }>;

const FIT = { padding: 0.05, maxZoom: 1, minZoom: 0.4 };
const NARROW = 560;
const MANY_NODES = 120;

export function RunGraph(props: {
  graph: Graph;
  selected?: string | undefined;
  faded?: (row: TreeRow) => boolean;
  select?: (id: string) => void;
  toggle?: (id: string, open: boolean) => void;
  now: number;
  label: string;
}): ReactNode {
  return (
    <ReactFlowProvider>
      <Drawn {...props} />
    </ReactFlowProvider>
  );
}

function Drawn(props: Parameters<typeof RunGraph>[0]): ReactNode {
  const { graph, selected, now, label } = props;
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const flow = useReactFlow();
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const direction = width > 0 && width < NARROW ? "TB" : "LR";
  const shape = `${direction} ${shapeOf(graph)}`;
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const placed = useMemo(() => layOut(graph, direction), [shape]);
  const size = useMemo(() => {
    let [right, bottom] = [0, 0];
    for (const node of graph.nodes) {
      const at = placed.get(node.id);
      if (!at) continue;
      right = Math.max(right, at.x + node.width);
      bottom = Math.max(bottom, at.y + node.height);
    }
    return { right, bottom: bottom + (graph.edges.some((edge) => edge.kind === "goto") ? 44 : 0) };
  }, [placed, graph]);
  const actions: GraphActions = {
    selected,
    faded: props.faded ?? (() => false),
    select: props.select ?? (() => undefined),
    toggle: props.toggle ?? (() => undefined),
    now,
  };
  const nodes: FlowNode[] = graph.nodes.map((node) => ({
    id: node.id,
    type: node.kind === "loop" ? "loop" : "step",
    position: placed.get(node.id) ?? { x: 0, y: 0 },
    width: node.width,
    height: node.height,
    data: { node, actions },
    // The buttons in it are clicked, whatever React Flow would do with a node.
    style: { pointerEvents: "all" },
    draggable: false,
    selectable: false,
    focusable: false,
  }));
  const edges: Edge[] = graph.edges.map((edge) => ({
    id: edge.id,
    source: edge.from,
    target: edge.to,
    type: edge.kind === "goto" ? "goto" : "smoothstep",
    className: `edge-${edge.kind} edge-${edge.state}`,
    focusable: false,
    ...(edge.kind === "goto" ? { sourceHandle: "below", targetHandle: "back" } : {}),
    data: { label: edge.label, bottom: size.bottom },
    markerEnd: { type: MarkerType.ArrowClosed, width: 14, height: 14, color: `var(--edge-${edge.kind === "goto" ? "goto" : edge.state})` },
  }));
  const height = Math.min(420, Math.max(140, size.bottom * Math.min(1, Math.max(0.5, (width - 40) / Math.max(1, size.right))) + 48));
  // The flow hears of its new size after the next frame.
  useEffect(() => {
    if (!width) return undefined;
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => void flow.fitView(FIT));
    });
    return () => cancelAnimationFrame(frame);
  }, [shape, width, height, flow]);
  return (
    <div className="graph flow" ref={place} style={{ height: `${height}px` }} role="group" aria-label={label}>
      {width ? (
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODES}
          edgeTypes={EDGES}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          disableKeyboardA11y
          zoomOnScroll={false}
          zoomOnDoubleClick={false}
          preventScrolling={false}
          minZoom={0.3}
          maxZoom={1.25}
          fitView
          fitViewOptions={FIT}
          onlyRenderVisibleElements={nodes.length > MANY_NODES}
          proOptions={{ hideAttribution: true }}
        />
      ) : null}
      <div className="zoom">
        <button type="button" aria-label="Smaller" onClick={() => void flow.zoomOut()}>
          <Icon name="minus" />
        </button>
        <button type="button" aria-label="Larger" onClick={() => void flow.zoomIn()}>
          <Icon name="plus" />
        </button>
        <button type="button" aria-label="Fit" onClick={() => void flow.fitView(FIT)}>
          <Icon name="fit" />
        </button>
      </div>
    </div>
  );
}

function Handles(): ReactNode {
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
      <Handle type="source" id="below" position={Position.Bottom} isConnectable={false} />
      <Handle type="target" id="back" position={Position.Bottom} isConnectable={false} />
    </>
  );
}

/** A line of what a step is, before it has run. */
export function describeStepKind(step: Step | undefined): string {
  if (!step) return "";
  if (step.approval !== undefined) return "a person";
  if (step.work?.workflow) return `run of ${String(step.work.workflow)}`;
  if (step.work?.command?.length && !step.work.prompt) return step.work.command.join(" ");
  return step.agent ?? "";
}

function describeNode(node: GraphNode, now: number): string {
  const task = node.row?.task;
  if (!task) return describeStepKind(node.definition);
  const { name } = markTask(task);
  if (name === "person") return "waits for you";
  if (task.started_at && (task.finished_at || task.status === "running")) {
    const took = describeDuration((task.finished_at ? Date.parse(task.finished_at) : now) - Date.parse(task.started_at));
    const cost = task.usage?.usd === undefined ? "" : ` · ${describeMoney(task.usage.usd)}`;
    const again = task.attempt > 1 ? ` · attempt ${task.attempt}` : "";
    return `${took}${cost || again}`;
  }
  if (name === "held") return task.holds.join(", ");
  if (task.kind === "approval") return "a person";
  return describeStepKind(node.definition) || task.agent;
}

function StepNode({ data }: NodeProps<FlowNode>): ReactNode {
  const { node, actions } = data;
  const task = node.row?.task;
  const mark = task ? markTask(task) : undefined;
  const quiet = describeNode(node, actions.now);
  const current = task !== undefined && actions.selected === task.id;
  const faded = node.row ? actions.faded(node.row) : false;
  return (
    <>
      <button
        type="button"
        className={`node ${node.kind} is-${mark ? toneOf(mark.name) : "waiting"}${faded ? " faded" : ""}`}
        aria-current={current || undefined}
        style={{ width: node.width, height: node.height }}
        onClick={() => task && actions.select(task.id)}
      >
        <span className="line">
          {mark ? <Glyph name={mark.name} /> : <Icon name={iconOf(node)} />}
          <span className="nm cut" title={node.step}>
            {node.step}
          </span>
          <span className="sr">{mark?.word ?? "a step"}</span>
        </span>
        <span className="dt" title={quiet}>
          <span className="cut">{quiet}</span>
        </span>
      </button>
      <Handles />
    </>
  );
}

function iconOf(node: GraphNode): string {
  if (node.kind === "approval") return "person";
  if (node.kind === "call") return "flow";
  return node.definition?.work?.command && !node.definition.work.prompt ? "term" : "bolt";
}

function LoopNode({ data }: NodeProps<FlowNode>): ReactNode {
  const { node, actions } = data;
  const { row, definition } = node;
  const mark = row ? markTask(row.task) : undefined;
  const counts = row ? countBelow(row) : undefined;
  return (
    <>
      <div
        className={`node loop is-${mark ? toneOf(mark.name) : "waiting"}`}
        style={{ width: node.width, height: node.height }}
        aria-current={row !== undefined && actions.selected === row.task.id ? "true" : undefined}
      >
        <header>
          <button type="button" className="line head" onClick={() => row && actions.select(row.task.id)}>
            <Glyph name={mark?.name ?? "folded"} label={mark?.word ?? "a loop"} />
            <span className="nm">{node.step}</span>
            <span className="quiet small cut" title={definition?.for_each}>
              {definition?.for_each ? `each of ${definition.for_each.split(".").at(-1)}` : ""}
            </span>
          </button>
          <span className="grow" />
          {counts?.total ? (
            <>
              <Meter
                width={44}
                label={`${counts.done} of ${counts.total} done`}
                parts={[
                  { kind: "done", share: counts.done / counts.total },
                  { kind: "running", share: counts.running / counts.total },
                  { kind: "failed", share: counts.failed / counts.total },
                ]}
              />
              <span className="small second">
                {counts.done}/{counts.total}
              </span>
            </>
          ) : null}
        </header>
        {row?.children.length ? (
          node.items.map((item) => <LoopItem key={item.task.id} item={item} node={node} actions={actions} />)
        ) : (
          <div className="inner">
            {(definition?.steps ?? []).slice(0, 2).map((step) => (
              <span key={step.id} className="mini is-waiting">
                <span className="nm medium cut">{step.id}</span>
                <span className="dt cut">{step.verifies ? `verifies ${step.verifies}` : describeStepKind(step)}</span>
              </span>
            ))}
          </div>
        )}
        {node.hidden > 0 && row ? (
          <button type="button" className="it" onClick={() => actions.select(row.task.id)}>
            <span className="nm second">{node.hidden} more, show all</span>
          </button>
        ) : null}
      </div>
      <Handles />
    </>
  );
}

function LoopItem(props: { item: TreeRow; node: GraphNode; actions: GraphActions }): ReactNode {
  const { item, node, actions } = props;
  const mark = markTask(item.task);
  const open = node.open.has(item.task.id);
  const rounds = Math.max(0, ...item.children.map(({ task }) => task.round ?? 0));
  return (
    <>
      <div className={`it${open ? " open" : ""}${actions.faded(item) ? " faded" : ""}`}>
        {item.children.length ? (
          <button
            type="button"
            className="fold"
            aria-expanded={open}
            aria-label={`${open ? "Fold" : "Open"} ${item.label}`}
            onClick={() => actions.toggle(item.task.id, !open)}
          >
            <Glyph name={open ? "open" : mark.name} />
          </button>
        ) : (
          <Glyph name={mark.name} />
        )}
        <button
          type="button"
          className="nm cut"
          title={item.label}
          aria-current={actions.selected === item.task.id || undefined}
          onClick={() => actions.select(item.task.id)}
        >
          {item.label}
        </button>
        <span className="grow" />
        {rounds > 1 ? (
          <span className="line quiet small" title={`round ${rounds}`}>
            <Glyph name="rejected" label="round" />
            {rounds}
          </span>
        ) : null}
        {item.task.commit ? <span className="mono quiet">{item.task.commit.slice(0, 6)}</span> : null}
        <span className="quiet small">{mark.word}</span>
      </div>
      {open ? (
        <div className="inner">
          {item.children.map((child) => {
            const own = markTask(child.task);
            return (
              <button
                type="button"
                key={child.task.id}
                className={`mini is-${toneOf(own.name)}${actions.faded(child) ? " faded" : ""}`}
                aria-current={actions.selected === child.task.id || undefined}
                onClick={() => actions.select(child.task.id)}
              >
                <span className="line" style={{ gap: 4 }}>
                  <Glyph name={own.name} />
                  <span className="nm cut">{child.label}</span>
                  <span className="sr">
                    of {item.label} {own.word}
                  </span>
                </span>
                <span className="dt cut">{describeMini(child, actions.now)}</span>
              </button>
            );
          })}
        </div>
      ) : null}
    </>
  );
}

function describeMini({ task }: TreeRow, now: number): string {
  if (task.status === "running" && task.started_at) {
    const again = task.attempt > 1 ? ` · attempt ${task.attempt}` : "";
    return `${describeDuration(now - Date.parse(task.started_at))}${again}`;
  }
  if (task.started_at && task.finished_at) {
    return describeDuration(Date.parse(task.finished_at) - Date.parse(task.started_at));
  }
  return markTask(task).word;
}

/** The way back of a goto, under the nodes. */
function GotoEdge(props: EdgeProps): ReactNode {
  const { sourceX, sourceY, targetX, targetY, data, markerEnd } = props;
  const bottom = Number(data?.["bottom"] ?? 0) - 18;
  const path = `M${sourceX} ${sourceY}V${bottom - 8}Q${sourceX} ${bottom} ${sourceX - 8} ${bottom}H${targetX + 8}Q${targetX} ${bottom} ${targetX} ${bottom - 8}V${targetY}`;
  return (
    <>
      <BaseEdge id={props.id} path={path} {...(markerEnd ? { markerEnd } : {})} />
      <text className="edge-label" x={(sourceX + targetX) / 2} y={bottom + 13} textAnchor="middle">
        {String(data?.["label"] ?? "")}
      </text>
    </>
  );
}

function NeedsEdge(props: EdgeProps): ReactNode {
  const [path] = getSmoothStepPath({ ...props, borderRadius: 8, offset: 8 });
  return <BaseEdge id={props.id} path={path} {...(props.markerEnd ? { markerEnd: props.markerEnd } : {})} />;
}

const NODES: NodeTypes = { step: StepNode, loop: LoopNode };
const EDGES: EdgeTypes = { goto: GotoEdge, smoothstep: NeedsEdge };
