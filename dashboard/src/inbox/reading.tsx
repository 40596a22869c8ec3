/** The reading pane of the inbox: one thing that needs a person, with what it stands on and what can be done. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";

import { change } from "../api/client";
import { runQuery, taskQuery, tasksQuery, taskWhyQuery } from "../api/queries";
import { commandOf } from "../model/commands";
import { markTask } from "../model/marks";
import { buildTree, flatten } from "../model/tree";
import type { Run, Task } from "../model/types";
import { describeFailure, describeMoney, describeValue, nameRun } from "../model/words";
import { useActions } from "../parts/actions";
import { Glyph, Icon, Status } from "../parts/marks";
import { Command, Fixes, JsonView } from "../parts/pieces";
import { Age } from "../parts/time";
import { useRunActions } from "../runs/actions";
import { useKeys } from "../shell/keyboard";
import { useSession } from "../shell/session";
import { useTaskActions } from "../tasks/actions";
import { LogTail } from "../tasks/log-tail";
import { useDismissed } from "./last-looked";
import type { InboxItem } from "./items";

export function Reading({ item, back }: { item: InboxItem; back: () => void }): ReactNode {
  return (
    <section className="read" aria-label={item.title}>
      {item.kind === "approval" || item.kind === "question" ? (
        <TaskReading item={item} back={back} />
      ) : item.kind === "unserved" || item.kind === "limit" ? (
        <AgentReading item={item} back={back} />
      ) : (
        <RunReading item={item} back={back} />
      )}
    </section>
  );
}

function Head(props: { item: InboxItem; back: () => void; children?: ReactNode }): ReactNode {
  const { item, back, children } = props;
  const word = { approval: "needs you", question: "asks you", budget: "budget", failed: "failed", unserved: "not served", limit: "limit" }[item.kind];
  return (
    <>
      <div className="line only-s">
        <button type="button" className="btn ghost" onClick={back}>
          <Icon name="left" />
          Inbox
        </button>
      </div>
      <div className="stack">
        <div className="line small second wrap">
          <Status pill mark={{ name: item.mark, word }} />
          {children}
          {item.since ? (
            <span className="quiet">
              since <Age since={item.since} />
            </span>
          ) : null}
        </div>
        <h2 className="big">{item.title}</h2>
      </div>
    </>
  );
}

function TaskReading({ item, back }: { item: InboxItem; back: () => void }): ReactNode {
  const given = item.task!;
  const task = useQuery(taskQuery(given.id)).data ?? given;
  const run = useQuery({ ...runQuery(given.run_id ?? ""), enabled: given.run_id !== undefined }).data;
  const why = useQuery(taskWhyQuery(given.id)).data;
  const actions = useTaskActions(task, run).filter((each) => ["approve", "reject", "answer"].includes(each.name));
  const [text, setText] = useState("");
  const isQuestion = item.kind === "question";
  const act = (name: string) => {
    const action = actions.find((each) => each.name === name);
    if (!action) return;
    action.act(text.trim() || undefined);
    if (name !== "reject") setText("");
  };
  useKeys({ a: () => act("approve"), r: () => act("reject"), e: () => document.getElementById("said")?.focus() });
  const before = run ? listOutputsBefore(run, task) : [];
  return (
    <>
      <div className="scroll">
        <Head item={item} back={back}>
          {run ? (
            <Link className="link" to="/runs/$run" params={{ run: run.id }} search={{ task: task.id }}>
              {nameRun(run)}
            </Link>
          ) : null}
          <Link className="quiet link-quiet" to="/tasks/$task" params={{ task: task.id }}>
            {[run?.workflow, task.step].filter(Boolean).join(" · ") || task.title}
          </Link>
        </Head>
        {isQuestion && typeof task.question !== "string" ? <JsonView value={task.question} label="Question" /> : null}
        {run ? (
          <div className="line wrap small second" style={{ gap: 20 }}>
            {run.progress ? (
              <span className="line">
                <Glyph name="done" />
                {run.progress.done} of {run.progress.total} tasks done
              </span>
            ) : null}
            {run.usage?.usd === undefined ? null : (
              <span className="line">
                <Icon name="coin" />
                {describeMoney(run.usage.usd)}
                {run.budget?.usd === undefined ? "" : ` of $${run.budget.usd}`}
              </span>
            )}
          </div>
        ) : null}
        {task.error ? (
          <div className="verdict">
            <span className="medium">Its last attempt</span>
            <blockquote>{describeFailure(task.error)}</blockquote>
          </div>
        ) : null}
        {task.feedback === undefined ? null : (
          <div className="verdict">
            <span className="medium">Its feedback</span>
            <blockquote>{describeValue(task.feedback)}</blockquote>
          </div>
        )}
        {before.map((each) => (
          <section key={each.name} className="panel">
            <header>
              <Glyph name={markTask(each.task).name} />
              <Link className="link-quiet medium" to="/tasks/$task" params={{ task: each.task.id }}>
                {each.name}
              </Link>
              <span className="quiet small">what it waited for</span>
            </header>
            <div className="body">
              <JsonView value={each.task.output} label={`Output of ${each.name}`} />
            </div>
          </section>
        ))}
        {task.kind === "work" && task.attempt > 0 ? (
          <div className="panel insp">
            <LogTail task={task} />
          </div>
        ) : null}
        {why && !actions.length ? <Fixes why={why} /> : null}
      </div>
      {actions.length ? (
        <div className="act">
          <div className="line wrap">
            <input
              id="said"
              className="input grow"
              style={{ minWidth: 200, width: "auto" }}
              value={text}
              aria-label={isQuestion ? "Answer" : "Reason, or feedback for the agent"}
              placeholder={isQuestion ? "Answer" : "Reason, or feedback for the agent"}
              onChange={(event) => setText(event.target.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && isQuestion && text.trim()) act("answer");
              }}
            />
            {actions.toReversed().map((action) => (
              <button
                key={action.name}
                type="button"
                className={`btn${action.primary ? " primary" : ""}${action.danger ? " danger" : ""}`}
                title={action.command}
                aria-disabled={action.name === "answer" && !text.trim()}
                onClick={() => {
                  if (action.name !== "answer" || text.trim()) act(action.name);
                }}
              >
                {action.label}
                {action.keys ? <kbd className="hide-s">{action.keys.toUpperCase()}</kbd> : null}
              </button>
            ))}
          </div>
          <div className="line wrap small quiet">
            <span>{actions.map((action) => `${action.label.replace("…", "")}: ${action.does}`).join(" ")}</span>
            <span className="grow hide-s" />
            <span className="mono hide-s">{actions[0]?.command}</span>
          </div>
        </div>
      ) : null}
    </>
  );
}

/** What stands right before a task: the outputs of the steps that it needed, as far as they are done. */
function listOutputsBefore(run: Run, task: Task): { name: string; task: Task }[] {
  const rows = flatten(buildTree(run.tasks ?? []));
  const done = rows.filter(
    (row) => row.depth === 0 && row.task.status === "done" && row.task.output !== undefined && row.task.id !== task.id,
  );
  const last = done.at(-1);
  return last ? [{ name: last.name, task: last.task }] : [];
}

function RunReading({ item, back }: { item: InboxItem; back: () => void }): ReactNode {
  const given = item.run!;
  const run = useQuery(runQuery(given.id)).data ?? given;
  const actions = useRunActions(run);
  const { dismiss } = useDismissed();
  const failed = run.tasks?.find((task) => task.status === "failed" && task.kind === "work");
  const { ask } = useActions();
  const { maySteer } = useSession();
  const queries = useQueryClient();
  const [added, setAdded] = useState("");
  const retry = actions.find((action) => action.name === "retry");
  useKeys({ t: () => retry?.act() });
  const raise = () =>
    ask({
      title: `Raise the budget of ${nameRun(run)}?`,
      does: [{ mark: "ready", text: `It goes on with $${added || "…"} more` }],
      command: commandOf("resume", run.id, "--add-usd", added || "2"),
      button: "Raise and resume",
      act: async () => {
        await change(`/runs/${run.id}/resume`, { add_usd: Number(added) });
        await queries.invalidateQueries();
        return "Resumed with a larger budget";
      },
    });
  return (
    <>
      <div className="scroll">
        <Head item={item} back={back}>
          <Link className="link" to="/runs/$run" params={{ run: run.id }}>
            {nameRun(run)}
          </Link>
          <span className="quiet">{run.workflow}</span>
        </Head>
        {run.error ? (
          <div className="verdict">
            <span className="medium">{failed?.step ?? "The run"}</span>
            <blockquote>{describeFailure(failed?.error ?? run.error)}</blockquote>
          </div>
        ) : null}
        {failed ? (
          <div className="panel insp">
            <LogTail task={failed} />
          </div>
        ) : null}
      </div>
      <div className="act">
        <div className="line wrap">
          {item.kind === "budget" && maySteer ? (
            <>
              <input
                className="input grow"
                style={{ minWidth: 160, width: "auto" }}
                inputMode="decimal"
                value={added}
                aria-label="Dollars to add"
                placeholder="Dollars to add"
                onChange={(event) => setAdded(event.target.value)}
              />
              <button type="button" className="btn primary" aria-disabled={!Number(added)} onClick={() => Number(added) && raise()}>
                Raise and resume…
              </button>
            </>
          ) : (
            <>
              <span className="grow" />
              <button type="button" className="btn" onClick={() => dismiss(run.id)}>
                Seen
              </button>
              {failed ? (
                <Link className="btn" to="/tasks/$task" params={{ task: failed.id }}>
                  Open the log
                </Link>
              ) : null}
              {retry ? (
                <button type="button" className="btn primary" title={retry.command} onClick={retry.act}>
                  Retry…<kbd className="hide-s">T</kbd>
                </button>
              ) : null}
            </>
          )}
        </div>
        <div className="line wrap small quiet">
          <span>{retry?.does}</span>
          <span className="grow hide-s" />
          <span className="mono hide-s">{retry?.command}</span>
        </div>
      </div>
    </>
  );
}

function AgentReading({ item, back }: { item: InboxItem; back: () => void }): ReactNode {
  const agent = item.agent!;
  const tasks = useQuery(tasksQuery({ status: "queued", agent })).data ?? [];
  const { run: act } = useActions();
  const { maySteer } = useSession();
  const isLimit = item.kind === "limit";
  const resume = commandOf("resume", "--agent", agent);
  return (
    <div className="scroll">
      <Head item={item} back={back}>
        <span className="quiet">{item.line}</span>
      </Head>
      {isLimit ? (
        <>
          <p>Nothing of it is spent while it waits; it goes on by itself. If the limit is lifted already:</p>
          {maySteer ? (
            <div className="line">
              <button
                type="button"
                className="btn primary"
                onClick={() => void act(() => change(`/agents/${encodeURIComponent(agent)}/resume`), `${agent} goes on`)}
              >
                Resume {agent} now
              </button>
            </div>
          ) : null}
          <Command text={resume} />
        </>
      ) : (
        <>
          <p>No live worker serves this agent. One on this machine:</p>
          <Command text={commandOf("worker", "--agent", agent)} />
        </>
      )}
      <section className="panel">
        <header>
          <h2>What waits</h2>
          <span className="quiet">{tasks.length}</span>
        </header>
        <ul>
          {tasks.slice(0, 20).map((task) => (
            <li key={task.id}>
              <Link className="mail short" to="/tasks/$task" params={{ task: task.id }}>
                <Glyph name={markTask(task).name} label={markTask(task).word} />
                <span className="a cut">{task.title}</span>
                <Age since={task.created_at} />
              </Link>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
