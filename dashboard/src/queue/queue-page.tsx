/** Queue and workers: what waits by agent, who works on what, limits, schedules, buses, parked messages. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo, useRef, useState } from "react";

import { change } from "../api/client";
import { useEvents, useNow } from "../api/live";
import { activityQuery, busGroupsQuery, parkedQuery, schedulesQuery, statisticsQuery, workersQuery } from "../api/queries";
import { usePeople } from "../inbox/people";
import { commandOf } from "../model/commands";
import type { Event, Statistics, Worker } from "../model/types";
import { describeAge, describeCount, describeDuration, describeValue, plural } from "../model/words";
import { useActions } from "../parts/actions";
import { Glyph, Status } from "../parts/marks";
import { Hours } from "../parts/hours";
import { Banner, Command, Empty, Problem, Skeleton } from "../parts/pieces";
import { Age, Until } from "../parts/time";
import { useSession } from "../shell/session";
import { Top } from "../shell/top";

export function QueuePage(): ReactNode {
  const statistics = useQuery(statisticsQuery);
  const workers = useQuery(workersQuery);
  const opened = useRef(new Date().toISOString());
  const { items } = usePeople();
  const unserved = items.filter((item) => item.kind === "unserved");
  const first = unserved[0];
  const traffic = useTraffic();
  return (
    <>
      <Top title="Queue and workers">
        <span className="quiet small hide-s">
          since you opened this page, <Age since={opened.current} />
        </span>
      </Top>
      <div className="page">
        {statistics.error && !statistics.data ? (
          <Problem error={statistics.error} retry={() => void statistics.refetch()} />
        ) : null}
        <Numbers statistics={statistics.data} workers={workers.data ?? []} done={traffic.done} dispatch={traffic.dispatch} />
        {first ? (
          <Banner mark="held" title={`${first.title}:`} command={commandOf("worker", "--agent", first.agent!)}>
            {first.line}
            {unserved.length > 1 ? `; and ${unserved.length - 1} more` : ""}
          </Banner>
        ) : null}
        <div className="cols">
          <Workers workers={workers.data} />
          <Depth statistics={statistics.data} />
          <Throughput />
          <Schedules />
          <Buses />
          <Parked />
        </div>
      </div>
    </>
  );
}

function total(statistics: Statistics | undefined, state: (name: string) => boolean): number {
  return Object.values(statistics?.agents ?? {}).reduce(
    (sum, states) => sum + Object.entries(states).reduce((own, [name, number]) => own + (state(name) ? number : 0), 0),
    0,
  );
}

function Numbers(props: {
  statistics: Statistics | undefined;
  workers: Worker[];
  done: number;
  dispatch: number | undefined;
}): ReactNode {
  const { statistics, workers, done, dispatch } = props;
  const free = workers.reduce((sum, worker) => sum + worker.free, 0);
  const slots = workers.reduce((sum, worker) => sum + worker.concurrency, 0);
  const held = total(statistics, (name) => name === "held");
  const numbers: [string, ReactNode, string?][] = [
    ["ready", describeCount(total(statistics, (name) => name === "ready"))],
    ["blocked", describeCount(total(statistics, (name) => name === "blocked"))],
    ["held", describeCount(held), held ? "var(--held-fg)" : undefined],
    ["running", describeCount(total(statistics, (name) => name === "running"))],
    ["slots free", `${free} of ${slots}`],
    ["runs under way", describeCount(statistics?.runs["running"] ?? 0)],
    ["done since you opened this page", describeCount(done)],
    ...(dispatch === undefined
      ? []
      : [["dispatch, p95 since then", describeDuration(dispatch)] as [string, ReactNode]]),
  ];
  return (
    <div className="panel" style={{ padding: "12px 16px" }}>
      <div className="stats" tabIndex={0} style={{ justifyContent: "space-between" }}>
        {numbers.map(([name, value, color]) => (
          <div key={name} className="stat">
            <b style={color ? { color } : undefined}>{value}</b>
            <span>{name}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

/** What the stream tells since the page was opened: tasks done, and how long they were ready before. */
function useTraffic(): { done: number; dispatch: number | undefined } {
  const [traffic, setTraffic] = useState<{ done: number; waits: number[] }>({ done: 0, waits: [] });
  const ready = useRef(new Map<string, number>());
  const hear = useRef((events: Event[]) => {
    let done = 0;
    const waits: number[] = [];
    for (const event of events) {
      if (!event.task_id) continue;
      const at = Date.parse(event.at);
      const isReady =
        event.type === "task.unblocked" || (event.type === "task.created" && event.data?.["blocked"] === false);
      if (isReady) ready.current.set(event.task_id, at);
      if (event.to === "running" && event.from !== "running") {
        const since = ready.current.get(event.task_id);
        if (since !== undefined) waits.push(at - since);
        ready.current.delete(event.task_id);
      }
      if (event.type === "task.done" && event.from === "running") done += 1;
    }
    if (done || waits.length) {
      setTraffic((before) => ({ done: before.done + done, waits: [...before.waits, ...waits].slice(-1_000) }));
    }
  });
  useEvents(hear.current);
  const dispatch = useMemo(() => {
    if (!traffic.waits.length) return undefined;
    const sorted = traffic.waits.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))];
  }, [traffic.waits]);
  return { done: traffic.done, dispatch };
}

const SHOWN_SLOTS = 32;

function Workers({ workers }: { workers: Worker[] | undefined }): ReactNode {
  const { maySteer } = useSession();
  const { ask } = useActions();
  const queries = useQueryClient();
  const now = useNow();
  const control = (worker: Worker, verb: "drain" | "evict") =>
    ask({
      title: `${verb === "drain" ? "Drain" : "Evict"} ${worker.name}?`,
      does:
        verb === "drain"
          ? [
              { mark: "running", text: `${plural(worker.used, "task")} of it ${worker.used === 1 ? "finishes" : "finish"}` },
              { mark: "cancelled", text: "It claims nothing new, and leaves" },
            ]
          : [
              { mark: "ready", text: `${plural(worker.used, "task")} of it ${worker.used === 1 ? "goes" : "go"} back to the queue, at no cost` },
              { mark: "cancelled", text: "It leaves at once" },
            ],
      command: commandOf("workers", verb, worker.name),
      button: verb === "drain" ? "Drain the worker" : "Evict the worker",
      danger: verb === "evict",
      act: async () => {
        await change(`/workers/${encodeURIComponent(worker.name)}/${verb}`);
        await queries.invalidateQueries({ queryKey: ["workers"] });
        return `${worker.name} was told`;
      },
    });
  return (
    <section className="panel c8 full">
      <header>
        <h2>Workers</h2>
        <span className="quiet">{workers ? `${workers.length} live` : ""}</span>
      </header>
      {!workers ? (
        <Skeleton rows={3} />
      ) : !workers.length ? (
        <Empty icon="queue" title="No worker is alive">
          <p>One on this machine, for every agent:</p>
          <Command text="holdfast worker" />
        </Empty>
      ) : (
        <table className="table cards workers">
          <colgroup>
            <col style={{ width: "20%" }} />
            <col style={{ width: "20%" }} />
            <col style={{ width: 136 }} />
            <col />
            <col className="hide-s" style={{ width: 150 }} />
          </colgroup>
          <thead>
            <tr>
              <th>Worker</th>
              <th>Serves</th>
              <th>Slots</th>
              <th>Holds, since</th>
              <th>
                <span className="sr">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {workers.map((worker) => (
              <tr key={worker.name}>
                <td>
                  <span className="line">
                    <span className={`dot${worker.told || worker.pausing ? " off" : ""}`} />
                    <b className="medium cut" title={worker.name}>
                      {worker.name}
                    </b>
                    {worker.told ? <span className="tag">{worker.told}</span> : null}
                  </span>
                </td>
                <td className="small second" title={worker.agents.join(", ")}>
                  {worker.agents.map((agent) => (agent === "*" ? "every agent" : agent)).join(", ")}
                </td>
                <td>
                  <span className="slots" role="img" aria-label={`${worker.used} of ${worker.concurrency} slots used`}>
                    {Array.from({ length: Math.min(SHOWN_SLOTS, worker.concurrency) }, (_, slot) => {
                      const held = worker.running[slot];
                      return (
                        <i
                          key={slot}
                          className={`slot${slot < worker.used ? " used" : ""}`}
                          title={held ? `${held.name}, ${describeAge(now - Date.parse(held.began_at))}` : "free"}
                        />
                      );
                    })}
                    {worker.concurrency > SHOWN_SLOTS ? <span className="small quiet">+{worker.concurrency - SHOWN_SLOTS}</span> : null}
                  </span>
                </td>
                <td className="small">
                  {worker.running.length
                    ? worker.running.slice(0, 3).map((held, at) => (
                        <span key={held.task_id}>
                          {at ? " · " : ""}
                          <Link className="link-quiet" to="/tasks/$task" params={{ task: held.task_id }}>
                            {held.name}
                          </Link>{" "}
                          <span className="quiet">{describeAge(now - Date.parse(held.began_at))}</span>
                        </span>
                      ))
                    : <span className="quiet">nothing</span>}
                </td>
                <td className="num hide-s">
                  {maySteer && !worker.told ? (
                    <>
                      <button type="button" className="btn ghost" onClick={() => control(worker, "drain")}>
                        Drain…
                      </button>
                      <button type="button" className="btn ghost" onClick={() => control(worker, "evict")}>
                        Evict…
                      </button>
                    </>
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

const STATES = ["running", "ready", "held", "scheduled", "blocked"];

function Depth({ statistics }: { statistics: Statistics | undefined }): ReactNode {
  const agents = Object.entries(statistics?.agents ?? {}).map(([agent, states]) => ({
    agent,
    states,
    number: Object.values(states).reduce((sum, each) => sum + each, 0),
  }));
  const most = Math.max(1, ...agents.map((each) => each.number));
  return (
    <section className="panel c4 full">
      <header>
        <h2>Depth by agent</h2>
      </header>
      {agents.length ? (
        <div className="body stack" style={{ gap: 12 }}>
          {agents
            .toSorted((a, b) => b.number - a.number)
            .map(({ agent, states, number }) => (
              <div key={agent} className="stack">
                <div className="line small">
                  <Link className="cut link-quiet" to="/queue" search={{ agent }} title={agent}>
                    {agent}
                  </Link>
                  <span className="grow" />
                  <b className="medium num">{describeCount(number)}</b>
                </div>
                <span className="depth" style={{ width: `${(100 * number) / most}%` }}>
                  {STATES.filter((state) => states[state]).map((state) => (
                    <i key={state} className={`depth-${state}`} style={{ flexGrow: states[state] }} title={`${states[state]} ${state}`} />
                  ))}
                </span>
                <span className="small quiet">
                  {Object.entries(states)
                    .map(([state, each]) => `${each} ${state}`)
                    .join(", ")}
                </span>
              </div>
            ))}
        </div>
      ) : (
        <Empty icon="queue" title="Nothing waits" />
      )}
    </section>
  );
}

function Throughput(): ReactNode {
  const hours = useQuery(activityQuery).data ?? [];
  const bars = hours.map(({ hour, tasks, dispatch }) => ({
    hour,
    done: tasks.done,
    failed: tasks.failed,
    ...(dispatch.p95 === undefined ? {} : { more: `dispatch p95 ${describeDuration(dispatch.p95 * 1_000)}` }),
  }));
  const now = hours.at(-1);
  return (
    <section className="panel c12">
      <header>
        <h2>Dispatch and throughput</h2>
        <span className="grow" />
        {now ? (
          <span className="quiet small">
            this hour: {plural(now.tasks.done, "task")} done
            {now.dispatch.p95 === undefined ? "" : `, dispatched within ${describeDuration(now.dispatch.p95 * 1_000)} (p95)`}
          </span>
        ) : null}
      </header>
      <div className="body">
        <Hours bars={bars} label="tasks done and failed by hour" done="done" />
      </div>
    </section>
  );
}

function Schedules(): ReactNode {
  const { data } = useQuery(schedulesQuery);
  const { maySteer } = useSession();
  const { run: act } = useActions();
  const queries = useQueryClient();
  const toggle = (name: string, paused: boolean) =>
    void act(
      async () => {
        await change(`/schedules/${encodeURIComponent(name)}/${paused ? "resume" : "pause"}`);
        await queries.invalidateQueries({ queryKey: ["schedules"] });
      },
      `${name} is ${paused ? "resumed: it goes on with its next tick" : "paused"}`,
    );
  return (
    <section className="panel c4">
      <header>
        <h2>Schedules</h2>
        <span className="grow" />
        <span className="quiet small">{data?.length ?? ""}</span>
      </header>
      {data?.length ? (
        <table className="table">
          <colgroup>
            <col />
            <col style={{ width: 120 }} />
            <col style={{ width: 88 }} />
          </colgroup>
          <tbody>
            {data.map((schedule) => (
              <tr key={schedule.name}>
                <td title={`${schedule.cron}, ${schedule.zone}`}>
                  <b className="medium">{schedule.name}</b> <span className="quiet mono hide-m">{schedule.cron}</span>
                </td>
                <td className="num small second">
                  {schedule.paused ? "paused" : schedule.next_at ? <Until at={schedule.next_at} /> : "–"}
                </td>
                <td className="num">
                  {maySteer ? (
                    <button type="button" className="btn ghost" onClick={() => toggle(schedule.name, schedule.paused === true)}>
                      {schedule.paused ? "Resume" : "Pause"}
                    </button>
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <div className="body stack">
          <p className="small quiet">There is none. This starts a run each night:</p>
          <Command text='holdfast schedule add nightly --cron "30 2 * * *" --workflow NAME' />
        </div>
      )}
    </section>
  );
}

function Buses(): ReactNode {
  const { data } = useQuery(busGroupsQuery);
  return (
    <section className="panel c4">
      <header>
        <h2>Buses</h2>
      </header>
      {data?.length ? (
        <table className="table">
          <thead>
            <tr>
              <th>Channel, group</th>
              <th className="num">Lag</th>
              <th className="num hide-s">Waiting</th>
            </tr>
          </thead>
          <tbody>
            {data.map((group) => (
              <tr key={`${group.channel} ${group.group}`}>
                <td className="small" title={group.readers.map((reader) => reader.name).join(", ")}>
                  {group.channel} <span className="quiet">· {group.group}</span>
                </td>
                <td className="num small">
                  {group.lag ? <Status mark={{ name: "held", word: describeCount(group.lag) }} /> : "0"}
                </td>
                <td className="num small hide-s">{describeCount(group.waiting)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <div className="body">
          <p className="small quiet">No consumer group reads the bus of this store.</p>
        </div>
      )}
    </section>
  );
}

function Parked(): ReactNode {
  const { data } = useQuery(parkedQuery);
  const { maySteer } = useSession();
  const { ask, run: act } = useActions();
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: ["parked"] });
  return (
    <section className="panel c4">
      <header>
        <h2>Parked messages</h2>
        <span className="quiet">{data?.length ?? ""}</span>
      </header>
      {data?.length ? (
        <table className="table cards parked">
          <colgroup>
            <col />
            <col style={{ width: 156 }} />
          </colgroup>
          <tbody>
            {data.map((message) => (
              <tr key={`${message.handler} ${message.message_id}`}>
                <td className="small" title={describeValue(message)}>
                  <b className="medium">{message.type ?? message.message_id}</b> <span className="quiet">{message.handler}</span>{" "}
                  <span className="second">{message.error ?? ""}</span>
                </td>
                <td className="num">
                  {maySteer ? (
                    <>
                      <button
                        type="button"
                        className="btn ghost"
                        onClick={() =>
                          void act(async () => {
                            await change("/bus/parked/replay", { handler: message.handler, message_id: message.message_id });
                            await refresh();
                          }, "It is tried again; what waits behind it follows")
                        }
                      >
                        Replay
                      </button>
                      <button
                        type="button"
                        className="btn ghost danger"
                        onClick={() =>
                          ask({
                            title: "Drop this message for good?",
                            does: [
                              { mark: "cancelled", text: `${message.handler} never handles it` },
                              { mark: "ready", text: "What waits behind it follows" },
                            ],
                            command: commandOf("bus", "drop", message.handler, message.message_id),
                            button: "Drop the message",
                            danger: true,
                            act: async () => {
                              await change("/bus/parked/drop", { handler: message.handler, message_id: message.message_id });
                              await refresh();
                              return "Dropped";
                            },
                          })
                        }
                      >
                        Drop…
                      </button>
                    </>
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <div className="body line small quiet">
          <Glyph name="done" />
          None: every message was handled.
        </div>
      )}
    </section>
  );
}
