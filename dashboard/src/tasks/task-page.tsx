/** A task: why it stands where it stands, its attempts with their logs, what went in and came out. */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";

import {
  artifactsQuery,
  attemptsQuery,
  effectsQuery,
  runQuery,
  taskEventsQuery,
  taskQuery,
  tasksQuery,
  taskWhyQuery,
} from "../api/queries";
import { markTask, needsPerson } from "../model/marks";
import { buildTree, flatten } from "../model/tree";
import type { Attempt, Task } from "../model/types";
import {
  describeBytes,
  describeDuration,
  describeFailure,
  describeMoney,
  describeValue,
  nameRun,
  plural,
  shortenId,
} from "../model/words";
import { Glyph, Icon, Status } from "../parts/marks";
import { Menu } from "../parts/menu";
import { Banner, Clauses, Empty, Fixes, JsonView, Problem, Skeleton, titleOfWhy } from "../parts/pieces";
import { Clock } from "../parts/time";
import { taskRoute, type TaskSearch as Search } from "../routes";
import { EventList } from "../runs/event-list";
import { useOfferHere } from "../shell/here";
import { useKeys } from "../shell/keyboard";
import { Top } from "../shell/top";
import { useTaskActions } from "./actions";
import { AnswerForm } from "./answer-form";
import { Attempts } from "./attempts";
import { LogView } from "./log-view";

export function TaskPage(): ReactNode {
  const { task: id } = taskRoute.useParams();
  const search = taskRoute.useSearch();
  const navigate = useNavigate();
  const query = useQuery(taskQuery(id));
  const task = query.data;
  const run = useQuery({ ...runQuery(task?.run_id ?? ""), enabled: task?.run_id !== undefined }).data;
  const why = useQuery(taskWhyQuery(id)).data;
  const attempts = useQuery(attemptsQuery(id)).data ?? [];
  const actions = useTaskActions(task, run);
  const name = useMemo(() => {
    if (!task) return shortenId(id);
    const found = flatten(buildTree(run?.tasks ?? [])).find((row) => row.task.id === id);
    return found?.name ?? task.title ?? task.step ?? id;
  }, [task, run, id]);
  useKeys(Object.fromEntries(actions.filter((each) => each.keys).map((each) => [each.keys!, () => each.act()])));
  useOfferHere(
    name,
    actions.map((each) => ({ label: each.label, cli: each.command, act: () => each.act() })),
  );
  const set = (change: Partial<Search>) =>
    void navigate({
      to: "/tasks/$task",
      params: { task: id },
      search: { ...search, ...change },
      replace: true,
      resetScroll: false,
      hash: true,
    });
  const crumbs = run
    ? [
        { label: "Runs", to: "/runs" },
        { label: nameRun(run), to: `/runs/${run.id}` },
      ]
    : [{ label: "Queue", to: "/queue" }];
  if (!task) {
    return (
      <>
        <Top title={name} crumbs={crumbs} />
        <div className="page">
          {query.error ? <Problem error={query.error} retry={() => void query.refetch()} /> : <Skeleton rows={8} />}
        </div>
      </>
    );
  }
  const shown = actions.filter((action) => ["retry", "continue", "enqueue", "resume", "pause", "cancel"].includes(action.name));
  const loud = shown.filter((action) => action.primary).slice(0, 1);
  const calm = shown.filter((action) => !loud.includes(action)).slice(0, 2);
  return (
    <>
      <Top
        title={name}
        crumbs={crumbs}
        after={
          <span className="mono quiet hide-s" title={id}>
            {shortenId(id)}
          </span>
        }
      >
        {[...calm, ...loud].map((action) => (
          <button
            key={action.name}
            type="button"
            className={`btn${action.primary ? " primary" : " hide-s"}${action.danger ? " danger" : ""}`}
            title={`${action.does} ${action.command}`}
            onClick={() => action.act()}
          >
            {action.label}
            {action.keys ? <kbd className="hide-s">{action.keys.toUpperCase()}</kbd> : null}
          </button>
        ))}
        <Menu
          label="More"
          trigger={<Icon name="more" />}
          entries={[
            ...actions
              .filter((action) => !["approve", "reject", "answer"].includes(action.name))
              .map((action) => ({ label: action.label, act: () => action.act(), ...(action.danger ? { danger: true } : {}) })),
            { label: "Copy the id", act: () => void navigator.clipboard?.writeText(id) },
          ]}
        />
      </Top>
      <TaskHead task={task} attempts={attempts} />
      <div className="page">
        <TaskBanner task={task} command={why?.fixes[0]} />
        <div className="task">
          <aside>
            {needsPerson(task) && actions.length ? (
              <div className="panel">
                <div className="body">
                  <AnswerForm task={task} actions={actions} />
                </div>
              </div>
            ) : null}
            <section className="panel">
              <header>
                <h2>{titleOfWhy(task)}</h2>
              </header>
              <div className="body stack" style={{ gap: 10 }}>
                {why ? (
                  <>
                    <p className="small second">{why.summary}</p>
                    {task.status === "done" || task.status === "running" ? null : <Clauses clauses={why.clauses ?? []} />}
                    <Fixes why={why} />
                  </>
                ) : (
                  <Skeleton rows={4} />
                )}
              </div>
            </section>
            {attempts.length ? (
              <section className="panel">
                <header>
                  <h2>Attempts</h2>
                  <span className="grow" />
                  <span className="quiet small">
                    {task.failures} of {task.max_attempts} failures · {task.lost} of {task.max_lost} lost
                  </span>
                </header>
                <div className="body" style={{ padding: "8px 16px" }}>
                  <Attempts
                    attempts={attempts}
                    task={task}
                    chosen={chooseAttempt(attempts, search)?.attempt}
                    choose={(attempt) => set({ attempt: String(attempt), tab: undefined })}
                  />
                </div>
              </section>
            ) : null}
            <Facts task={task} />
          </aside>
          <Tabs task={task} attempts={attempts} search={search} set={set} />
        </div>
      </div>
    </>
  );
}

function chooseAttempt(attempts: Attempt[], search: Search): Attempt | undefined {
  return attempts.find((attempt) => String(attempt.attempt) === search.attempt) ?? attempts.at(-1);
}

function TaskHead({ task, attempts }: { task: Task; attempts: Attempt[] }): ReactNode {
  const worked = attempts.reduce(
    (sum, each) => sum + (each.ended_at ? Date.parse(each.ended_at) : Date.now()) - Date.parse(each.claimed_at),
    0,
  );
  return (
    <div className="runhead">
      <Status mark={markTask(task)} pill />
      {task.title !== task.step ? (
        <span className="fact">
          <b className="medium cut">{task.title}</b>
        </span>
      ) : null}
      <span className="fact hide-s">{task.kind === "work" ? task.agent : task.kind}</span>
      {attempts.length ? (
        <span className="fact">
          <Icon name="clock" />
          {plural(attempts.length, "attempt")} · {describeDuration(worked)}
        </span>
      ) : null}
      {task.usage?.usd === undefined ? null : (
        <span className="fact">
          <Icon name="coin" />
          {describeMoney(task.usage.usd)}
        </span>
      )}
      {task.round ? (
        <span className="fact hide-s">
          round {task.round}
          {task.max_rounds ? ` of ${task.max_rounds}` : ""}
        </span>
      ) : null}
      {task.lease ? <span className="fact">on {task.lease.owner}</span> : null}
    </div>
  );
}

function TaskBanner({ task, command }: { task: Task; command: string | undefined }): ReactNode {
  if (task.status === "failed") {
    return (
      <Banner kind="failed" mark="failed" title={`Attempt ${task.attempt} failed:`} command={command}>
        {describeFailure(task.error)}
      </Banner>
    );
  }
  if (task.status === "queued" && task.state === "held" && !needsPerson(task)) {
    return (
      <Banner mark="held" title={`Held: ${task.holds.join(", ") || "its run is held"}.`} command={command}>
        {task.held_until ? (
          <>
            until <Clock at={task.held_until} />
          </>
        ) : null}
      </Banner>
    );
  }
  return null;
}

function Facts({ task }: { task: Task }): ReactNode {
  const facts: [string, ReactNode][] = [
    ["generation", task.generation],
    ["priority", task.priority],
    ["version", task.version],
    ["created", <Clock key="created" at={task.created_at} />],
  ];
  if (task.key) facts.unshift(["key", task.key]);
  if (task.timeout) facts.push(["timeout", describeDuration(task.timeout * 1_000)]);
  if (task.scheduled_for) facts.push(["due", <Clock key="due" at={task.scheduled_for} />]);
  if (task.tags.length) facts.push(["tags", task.tags.join(", ")]);
  return (
    <section className="panel hide-s">
      <header>
        <h2>Facts</h2>
      </header>
      <div className="body">
        <dl className="facts">
          {facts.map(([name, value]) => (
            <div key={name} style={{ display: "contents" }}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </div>
    </section>
  );
}

function Tabs(props: {
  task: Task;
  attempts: Attempt[];
  search: Search;
  set: (change: Partial<Search>) => void;
}): ReactNode {
  const { task, attempts, search, set } = props;
  const history = useQuery(taskEventsQuery(task.id)).data;
  const artifacts = useQuery(artifactsQuery(task.id)).data;
  const children = useQuery({ ...tasksQuery({ parent: task.id }, 500), enabled: task.kind === "group" }).data;
  const attempt = chooseAttempt(attempts, search);
  const tabs = [
    ...(task.kind === "work" ? [{ name: "log", label: "Log" }] : []),
    ...(task.kind === "group" ? [{ name: "children", label: "Children", count: children?.length }] : []),
    { name: "payload", label: "Prompt, payload" },
    { name: "output", label: "Output" },
    ...(task.feedback === undefined ? [] : [{ name: "feedback", label: "Feedback" }]),
    ...(task.kind === "work" ? [{ name: "effects", label: "Effects" }] : []),
    ...(artifacts?.length ? [{ name: "artifacts", label: "Artifacts", count: artifacts.length }] : []),
    { name: "history", label: "History", count: history?.length },
  ];
  const chosen = tabs.find((tab) => tab.name === search.tab)?.name ?? tabs[0]!.name;
  return (
    <div className="stack" style={{ gap: 12 }}>
      <div className="tabs" role="tablist" aria-label="Task">
        {tabs.map((tab) => (
          <button
            key={tab.name}
            type="button"
            role="tab"
            id={`tab-${tab.name}`}
            aria-selected={tab.name === chosen}
            aria-controls="tab-panel"
            onClick={() => set({ tab: tab.name })}
          >
            {tab.label} {tab.count ? <span className="n">{tab.count}</span> : null}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${chosen}`}>
        {chosen === "log" ? (
          attempt ? (
            <LogView
              key={`${task.id} ${attempt.attempt}`}
              task={task}
              attempt={attempt}
              q={search.q ?? ""}
              setQ={(q) => set({ q: q || undefined })}
            />
          ) : (
            <div className="panel">
              <Empty icon="file" title="No attempt yet">
                <p>Its log is here from its first line on.</p>
              </Empty>
            </div>
          )
        ) : chosen === "payload" ? (
          <Payload task={task} />
        ) : chosen === "output" ? (
          <div className="panel">
            <div className="body">
              {task.error && task.output === undefined ? (
                <p className="mistake">{describeFailure(task.error)}</p>
              ) : (
                <JsonView value={task.output} label="Output" />
              )}
            </div>
          </div>
        ) : chosen === "feedback" ? (
          <div className="panel">
            <div className="body">
              <JsonView value={task.feedback} label="Feedback" />
            </div>
          </div>
        ) : chosen === "effects" ? (
          <Effects id={task.id} />
        ) : chosen === "artifacts" ? (
          <div className="panel">
            <table className="table">
              <thead>
                <tr>
                  <th>File</th>
                  <th className="num">Size</th>
                  <th className="num">Attempt</th>
                </tr>
              </thead>
              <tbody>
                {artifacts?.map((file) => (
                  <tr key={file.name}>
                    <td>
                      <a className="link" href={`/api/v1/tasks/${task.id}/artifacts/${encodeURIComponent(file.name)}`} download>
                        {file.name}
                      </a>
                    </td>
                    <td className="num">{describeBytes(file.bytes)}</td>
                    <td className="num">{file.attempt}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : chosen === "children" ? (
          <div className="panel">
            <table className="table">
              <tbody>
                {children?.toReversed().map((child) => (
                  <tr key={child.id}>
                    <td>
                      <Link to="/tasks/$task" params={{ task: child.id }} className="line">
                        <Glyph name={markTask(child).name} label={markTask(child).word} />
                        <b className="medium cut">{child.title}</b>
                        <span className="quiet small">{markTask(child).word}</span>
                      </Link>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <EventList events={history ?? []} loading={history === undefined} tasks={[task]} />
        )}
      </div>
    </div>
  );
}

function Payload({ task }: { task: Task }): ReactNode {
  const { payload } = task;
  const prompt =
    payload && typeof payload === "object" && "prompt" in payload && typeof payload.prompt === "string"
      ? payload.prompt
      : undefined;
  return (
    <div className="panel">
      <div className="body stack" style={{ gap: 12 }}>
        {prompt === undefined ? null : (
          <>
            <h2 className="sub">Prompt</h2>
            <p className="prose">{prompt}</p>
          </>
        )}
        <h2 className="sub">Payload</h2>
        <JsonView value={payload} label="Payload" />
      </div>
    </div>
  );
}

function Effects({ id }: { id: string }): ReactNode {
  const { data, error } = useQuery(effectsQuery(id));
  if (error) return <Problem error={error} />;
  const effects = Object.entries(data?.effects ?? {});
  return (
    <div className="panel">
      {effects.length ? (
        <div className="body">
          <dl className="facts">
            {effects.map(([name, value]) => (
              <div key={name} style={{ display: "contents" }}>
                <dt>{name}</dt>
                <dd className="mono">{describeValue(value)}</dd>
              </div>
            ))}
          </dl>
        </div>
      ) : (
        <Empty icon="bolt" title="It remembers nothing">
          <p>A named side effect, once done, is remembered here and not done again.</p>
        </Empty>
      )}
    </div>
  );
}
