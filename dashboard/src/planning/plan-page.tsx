/** The board of a plan: its parts in their order, what each needs, and the way to finalize it. */

import { draggable, dropTargetForElements } from "@atlaskit/pragmatic-drag-and-drop/element/adapter";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { ApiError, change, previewChange } from "../api/client";
import { taskQuery, tasksQuery, workersQuery } from "../api/queries";
import { commandOf } from "../model/commands";
import { markTask } from "../model/marks";
import { describePlan, moveTo, type PlanPart, readParts, routeWires } from "../model/plan";
import type { Task } from "../model/types";
import { plural, shortenId } from "../model/words";
import { describeRefusal, useActions } from "../parts/actions";
import { Glyph, Icon, Status } from "../parts/marks";
import { Empty, Problem, Skeleton } from "../parts/pieces";
import { planRoute } from "../routes";
import { useKeys } from "../shell/keyboard";
import { useSession } from "../shell/session";
import { Top } from "../shell/top";

const CRUMBS = [{ label: "Planning", to: "/plan" }];

export function PlanPage(): ReactNode {
  const { task: id } = planRoute.useParams();
  const { part: chosenId } = planRoute.useSearch();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const { maySteer } = useSession();
  const { run: act, ask } = useActions();
  const query = useQuery(taskQuery(id));
  const children = useQuery(tasksQuery({ parent: id }, 500));
  const workers = useQuery(workersQuery).data ?? [];
  const plan = query.data;
  const parts = useMemo(() => readParts(children.data ?? []), [children.data]);
  const active = plan?.planning_phase === "active" && maySteer;
  const chosen = parts.find((part) => part.task.id === chosenId);
  const refresh = () => queries.invalidateQueries({ queryKey: ["tasks"] });
  const choose = (part: string | undefined) =>
    void navigate({ to: "/plan/$task", params: { task: id }, search: part ? { part } : {}, replace: true });
  const add = async () => {
    let made: Task | undefined;
    await act(async () => {
      made = await change<Task>(`/tasks/${id}/plan/children`, { title: `Part ${parts.length + 1}` });
      await refresh();
    }, "Added a part");
    if (made) choose(made.id);
  };
  const reorder = (order: string[]) =>
    void act(async () => {
      await change(`/tasks/${id}/plan/children`, { order }, "PATCH");
      await refresh();
    }, "Moved");
  const shift = (by: number) => {
    if (!chosen || !active) return;
    const at = parts.indexOf(chosen);
    const order = moveTo(
      parts.map((part) => part.task.id),
      at,
      Math.min(parts.length - 1, Math.max(0, at + by)),
    );
    reorder(order);
  };
  const move = (by: number) => {
    const at = parts.findIndex((part) => part.task.id === chosenId);
    choose(parts[Math.min(parts.length - 1, Math.max(0, at + by))]?.task.id);
  };
  const finalize = () => {
    const isChain = parts.every((part) => !part.needs.length);
    const graph = isChain ? undefined : { graph: Object.fromEntries(parts.map((part) => [part.task.id, part.needs])) };
    ask({
      title: `Finalize ${plural(parts.length, "part")}?`,
      does: [],
      preview: () => previewChange(`/tasks/${id}/plan/finalize`, graph),
      command: commandOf("plan", "finalize", id),
      note: "the parts can no longer be moved",
      button: `Finalize ${plural(parts.length, "part")}`,
      act: async () => {
        await change(`/tasks/${id}/plan/finalize`, graph);
        await queries.invalidateQueries();
        return "Finalized: the parts are queued";
      },
    });
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    n: () => active && void add(),
    "Alt+ArrowUp": () => shift(-1),
    "Alt+ArrowDown": () => shift(1),
    e: () => document.getElementById("part-title")?.focus(),
    "Mod+Enter": () => active && parts.length > 0 && finalize(),
    Escape: () => choose(undefined),
  });
  if (!plan) {
    return (
      <>
        <Top title={shortenId(id)} crumbs={CRUMBS} />
        <div className="page">{query.error ? <Problem error={query.error} /> : <Skeleton />}</div>
      </>
    );
  }
  return (
    <>
      <Top
        title={plan.title}
        crumbs={CRUMBS}
        after={
          <>
            <span className="mono quiet hide-s" title={id}>
              {shortenId(id)}
            </span>
            <span className="tag">planning {plan.planning_phase}</span>
          </>
        }
      >
        {active ? (
          <button type="button" className="btn" onClick={() => void add()}>
            <Icon name="plus" />
            Add<kbd className="hide-s">N</kbd>
          </button>
        ) : null}
        {plan.planning_phase === "none" && maySteer && plan.status === "idle" ? (
          <button
            type="button"
            className="btn primary"
            onClick={() =>
              void act(async () => {
                await change(`/tasks/${id}/plan/start`);
                await queries.invalidateQueries();
              }, "The plan is begun")
            }
          >
            Plan it
          </button>
        ) : null}
      </Top>
      <div className="plan">
        <div className="board">
          <p className="second small" style={{ maxWidth: "64ch" }}>
            {active
              ? "Parts run in this order once the plan is finalized, each after the one before it; where lines are drawn, each after those it has a line to."
              : `This plan is ${plan.planning_phase}.`}
          </p>
          {children.isLoading ? <Skeleton /> : null}
          {!children.isLoading && !parts.length ? (
            <Empty icon="plan" title="No part yet">
              <p>Split the task into parts, each for one agent.</p>
            </Empty>
          ) : null}
          <Board parts={parts} chosen={chosenId} choose={choose} reorder={active ? reorder : undefined} />
          {active ? (
            <button type="button" className="kid add" onClick={() => void add()}>
              <Icon name="plus" />
              <span>Add a part</span>
              <kbd className="hide-s">N</kbd>
            </button>
          ) : null}
          {active ? (
            <p className="small quiet line wrap hide-s">
              <span>
                <kbd>j</kbd> <kbd>k</kbd> choose
              </span>
              <span>
                <kbd>Alt</kbd> <kbd>Up</kbd> <kbd>Down</kbd> move
              </span>
              <span>
                <kbd>E</kbd> edit
              </span>
            </p>
          ) : null}
        </div>
        <aside className="side panel plan-side" aria-label={chosen ? `Part ${chosen.number}` : "The parts"}>
          {chosen ? (
            <PartForm
              key={chosen.task.id}
              part={chosen}
              parts={parts}
              active={active}
              refresh={refresh}
              served={workers.some((worker) => worker.agents.includes("*") || worker.agents.includes(chosen.task.agent))}
              removed={() => choose(undefined)}
            />
          ) : (
            <Empty icon="plan" title="Choose a part">
              <p>Its title, what is to be done, its agent and what it needs are edited here.</p>
            </Empty>
          )}
        </aside>
      </div>
      {active && parts.length ? (
        <div className="final">
          <div className="stack grow" style={{ gap: 0 }}>
            <b className="medium">Finalize {plural(parts.length, "part")}</b>
            <span className="small second">{describePlan(parts).join(". ")}.</span>
          </div>
          <span className="mono quiet hide-s">{commandOf("plan", "finalize", shortenId(id))}</span>
          <button type="button" className="btn primary" onClick={finalize}>
            Finalize the plan…<kbd className="hide-s">Ctrl Enter</kbd>
          </button>
        </div>
      ) : null}
    </>
  );
}

function Board(props: {
  parts: PlanPart[];
  chosen: string | undefined;
  choose: (id: string) => void;
  reorder: ((order: string[]) => void) | undefined;
}): ReactNode {
  const { parts, chosen, choose, reorder } = props;
  const place = useRef<HTMLDivElement>(null);
  const [middles, setMiddles] = useState<number[]>([]);
  const [gutter, setGutter] = useState(56);
  const [over, setOver] = useState<number>();
  useLayoutEffect(() => {
    const measure = () => {
      const kids = [...(place.current?.querySelectorAll<HTMLElement>("[data-part]") ?? [])];
      setMiddles(kids.map((kid) => kid.offsetTop + kid.offsetHeight / 2));
      setGutter(kids[0]?.offsetLeft ?? 56);
    };
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, [parts, over]);
  const wires = useMemo(() => routeWires(parts), [parts]);
  const drop = (from: number, to: number) => {
    setOver(undefined);
    if (from !== to) {
      reorder?.(
        moveTo(
          parts.map((part) => part.task.id),
          from,
          to,
        ),
      );
    }
  };
  return (
    <div className="kids" role="listbox" aria-label="Parts of the plan" ref={place}>
      <svg aria-hidden="true">
        {wires.map((wire) => {
          const [y1, y2] = [(middles[wire.from] ?? 0) + 7, (middles[wire.to] ?? 0) - 7];
          const x = Math.max(3, gutter > 40 ? gutter - 18 - wire.lane * 12 : gutter - 11 - wire.lane * 7);
          return (
            <g key={`${wire.from} ${wire.to}`} className={parts[wire.to]?.task.id === chosen ? "ext" : ""}>
              <path
                d={`M${gutter} ${y1}H${x + 6}Q${x} ${y1} ${x} ${y1 + 6}V${y2 - 6}Q${x} ${y2} ${x + 6} ${y2}H${gutter - 4}`}
              />
              <path d={`M${gutter - 6} ${y2 - 4}l5 4-5 4`} />
            </g>
          );
        })}
      </svg>
      {parts.map((part, at) => (
        <Part
          key={part.task.id}
          part={part}
          at={at}
          chosen={part.task.id === chosen}
          choose={() => choose(part.task.id)}
          drag={reorder ? { over: over === at, enter: setOver, drop } : undefined}
        />
      ))}
    </div>
  );
}

function Part(props: {
  part: PlanPart;
  at: number;
  chosen: boolean;
  choose: () => void;
  drag: { over: boolean; enter: (at: number | undefined) => void; drop: (from: number, to: number) => void } | undefined;
}): ReactNode {
  const { part, at, chosen, choose, drag } = props;
  const element = useRef<HTMLDivElement>(null);
  const [dragging, setDragging] = useState(false);
  const latest = useRef(drag);
  latest.current = drag;
  const canDrag = drag !== undefined;
  useEffect(() => {
    const own = element.current;
    if (!own || !canDrag) return undefined;
    const stop = [
      draggable({
        element: own,
        getInitialData: () => ({ at }),
        onDragStart: () => setDragging(true),
        onDrop: () => setDragging(false),
      }),
      dropTargetForElements({
        element: own,
        getData: () => ({ at }),
        onDragEnter: () => latest.current?.enter(at),
        onDragLeave: () => latest.current?.enter(undefined),
        onDrop: ({ source }) => latest.current?.drop(Number(source.data["at"]), at),
      }),
    ];
    return () => stop.forEach((each) => each());
  }, [at, canDrag]);
  const mark = markTask(part.task);
  return (
    <>
      {drag?.over ? <div className="drop" role="presentation" /> : null}
      <div
        ref={element}
        data-part={part.task.id}
        className={`kid${dragging ? " drag" : ""}`}
        role="option"
        aria-selected={chosen}
        aria-current={chosen || undefined}
        tabIndex={0}
        onClick={choose}
        onFocus={choose}
      >
        {canDrag ? <Icon name="grip" /> : <Glyph name={mark.name} label={mark.word} />}
        <span className="n">{part.number}</span>
        <div className="stack" style={{ gap: 0 }}>
          <b className="medium cut" title={part.task.title}>
            {part.task.title}
          </b>
          <span className="small quiet cut">{part.after}</span>
        </div>
        <span className="tag opt">{part.task.agent}</span>
        <span className="opt">
          <Status mark={mark} />
        </span>
      </div>
    </>
  );
}

function PartForm(props: {
  part: PlanPart;
  parts: PlanPart[];
  active: boolean;
  served: boolean;
  refresh: () => Promise<void>;
  removed: () => void;
}): ReactNode {
  const { part, parts, active, served, refresh, removed } = props;
  const { task } = part;
  const { run: act } = useActions();
  const [title, setTitle] = useState(task.title);
  const [prompt, setPrompt] = useState(part.prompt);
  const [agent, setAgent] = useState(task.agent);
  const [based, setBased] = useState(task.version);
  const [state, setState] = useState<"saved" | "saving" | "refused">("saved");
  const [refusal, setRefusal] = useState("");
  const changed = title !== task.title || prompt !== part.prompt || agent !== task.agent;
  // What others changed meanwhile is shown, unless something is typed here.
  useEffect(() => {
    if (state === "saved" && task.version !== based && document.activeElement?.closest(".plan-side") === null) {
      setTitle(task.title);
      setPrompt(part.prompt);
      setAgent(task.agent);
      setBased(task.version);
    }
  }, [task, part.prompt, based, state]);
  const save = async () => {
    if (!changed || !active || !title.trim()) return;
    setState("saving");
    setRefusal("");
    try {
      await change(
        `/tasks/${task.id}`,
        {
          ...(title === task.title ? {} : { title }),
          ...(prompt === part.prompt ? {} : { prompt }),
          ...(agent === task.agent ? {} : { agent }),
        },
        "PATCH",
        { "If-Match": `"${task.version}"` },
      );
      await refresh();
      setBased(task.version + 1);
      setState("saved");
    } catch (error) {
      setState("refused");
      setRefusal(
        error instanceof ApiError && error.code === "conflict"
          ? `Somebody has changed it meanwhile to “${task.title}”. Save once more to write yours over it.`
          : describeRefusal(error),
      );
    }
  };
  const link = (need: string, on: boolean) =>
    void act(async () => {
      await change(`/tasks/${task.id}/${on ? "block" : "unblock"}`, { needs: [need] });
      await refresh();
    }, on ? "It waits for that part" : "It waits for that part no more");
  const others = parts.filter((each) => each !== part && !part.needs.includes(each.task.id));
  return (
    <div className="insp">
      <section>
        <header>
          <b className="strong">Part {part.number}</b>
          <span className="mono quiet" title={task.id}>
            {shortenId(task.id)}
          </span>
          <span className="grow" />
          <span className="small quiet" role="status">
            {state === "saving" ? "saving" : changed ? "not saved" : "saved"}
          </span>
        </header>
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
          onBlur={() => void save()}
        >
          <label>
            <span className="lab">Title</span>
            <input
              id="part-title"
              className="input"
              value={title}
              readOnly={!active}
              onChange={(event) => setTitle(event.target.value)}
            />
          </label>
          <label>
            <span className="lab">What is to be done</span>
            <textarea
              className="area"
              rows={5}
              value={prompt}
              readOnly={!active}
              onChange={(event) => setPrompt(event.target.value)}
            />
          </label>
          <label>
            <span className="lab">Agent</span>
            <input className="input" value={agent} readOnly={!active} onChange={(event) => setAgent(event.target.value)} />
          </label>
          {refusal ? (
            <p className="mistake" role="alert">
              <Glyph name="failed" />
              <span>{refusal}</span>
            </p>
          ) : null}
          {active ? (
            <div className="line">
              <span className="grow" />
              <button type="submit" className="btn" aria-disabled={!changed}>
                Save
              </button>
            </div>
          ) : null}
        </form>
      </section>
      <section>
        <h2 className="sub">Needs</h2>
        <div className="line wrap">
          {part.needs.map((need) => {
            const needed = parts.find((each) => each.task.id === need);
            return (
              <button
                key={need}
                type="button"
                className="chip"
                disabled={!active}
                aria-label={`It needs part ${needed?.number ?? need}: remove that`}
                onClick={() => link(need, false)}
              >
                {needed?.number} <b className="cut">{needed?.task.title ?? shortenId(need)}</b>
                {active ? <Icon name="x" /> : null}
              </button>
            );
          })}
          {active && others.length ? (
            <select
              className="input need"
              value=""
              aria-label="Add a part that it needs"
              onChange={(event) => event.target.value && link(event.target.value, true)}
            >
              <option value="">Add a need…</option>
              {others.map((each) => (
                <option key={each.task.id} value={each.task.id}>
                  {each.number} {each.task.title}
                </option>
              ))}
            </select>
          ) : null}
        </div>
      </section>
      <section>
        <h2 className="sub">Once finalized, it would be</h2>
        <ul className="why">
          <li className={part.after === "starts at once" ? "yes" : "no"}>
            <Glyph name={part.after === "starts at once" ? "done" : "waiting"} />
            <span>needs</span>
            <span>{part.after}</span>
          </li>
          <li className={served ? "yes" : "no"}>
            <Glyph name={served ? "done" : "failed"} />
            <span>agent</span>
            <span>{served ? `a live worker serves “${task.agent}”` : `no live worker serves “${task.agent}”`}</span>
          </li>
        </ul>
        {active ? (
          <div className="line">
            <button
              type="button"
              className="btn danger"
              onClick={() =>
                void act(async () => {
                  await change(`/tasks/${task.id}`, undefined, "DELETE");
                  await refresh();
                  removed();
                }, "Removed the part")
              }
            >
              Remove the part
            </button>
          </div>
        ) : null}
      </section>
    </div>
  );
}
