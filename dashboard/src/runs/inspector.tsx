/** The inspector beside graph and timeline: what is chosen, why it stands there, what can be done. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { attemptsQuery, runWhyQuery, taskWhyQuery } from "../api/queries";
import { commandOf } from "../model/commands";
import { markTask } from "../model/marks";
import type { TreeRow } from "../model/tree";
import type { Event, Run, Task } from "../model/types";
import { describeClockWithSeconds, describeValue, plural, shortenId } from "../model/words";
import { Glyph } from "../parts/marks";
import { Clauses, Command, Fixes, titleOfWhy } from "../parts/pieces";
import { AnswerForm } from "../tasks/answer-form";
import { useTaskActions } from "../tasks/actions";
import { Attempts } from "../tasks/attempts";
import { LogTail } from "../tasks/log-tail";
import { describeProgress } from "./timeline";

export function Inspector(props: {
  run: Run;
  row: TreeRow | undefined;
  past: boolean;
  event: Event | undefined;
  events: Event[];
}): ReactNode {
  const { run, row, past, event } = props;
  return (
    <aside className="side" aria-label="Inspector">
      <div className="insp">
        {row ? <TaskPart key={row.task.id} row={row} run={run} past={past} /> : <RunPart run={run} past={past} />}
        {event ? <EventPart event={event} /> : null}
      </div>
    </aside>
  );
}

function RunPart({ run, past }: { run: Run; past: boolean }): ReactNode {
  const why = useQuery({ ...runWhyQuery(run.id), enabled: !past }).data;
  return (
    <>
      <section>
        <h2 className="sub">Where the run stands</h2>
        <p className="small second">{why?.summary ?? ""}</p>
        {why?.tasks?.length ? (
          <ul className="does small">
            {why.tasks.map((task) => (
              <li key={task.id}>
                <Glyph name={task.state === "running" ? "running" : "waiting"} />
                <span>
                  {task.line}
                  {task.others ? <span className="quiet"> {task.others}</span> : null}
                </span>
              </li>
            ))}
          </ul>
        ) : null}
        {why && !past ? <Fixes why={why} /> : null}
      </section>
      <section>
        <p className="small quiet">Choose a task in the graph or the timeline to see why it stands where it stands.</p>
        <Command bare text={commandOf("show", run.id)} />
      </section>
    </>
  );
}

function TaskPart({ row, run, past }: { row: TreeRow; run: Run; past: boolean }): ReactNode {
  const { task } = row;
  const mark = markTask(task);
  const why = useQuery({ ...taskWhyQuery(task.id), enabled: !past }).data;
  const attempts = useQuery({ ...attemptsQuery(task.id), enabled: task.kind === "work" }).data;
  const actions = useTaskActions(past ? undefined : task, run);
  return (
    <>
      <section>
        <header>
          <Glyph name={mark.name} label={mark.word} />
          <b className="strong cut" title={row.name}>
            {row.name}
          </b>
          <span className="mono quiet" title={task.id}>
            {shortenId(task.id)}
          </span>
          <span className="grow" />
          <Link className="link small" to="/tasks/$task" params={{ task: task.id }}>
            Open
          </Link>
        </header>
        <p className="small second">{describeTask(task)}</p>
        {task.status === "running" ? (
          <p className="small">
            <span className="quiet">└</span> {describeProgress(task)}
          </p>
        ) : null}
      </section>
      {why && !past ? (
        <section>
          <h2 className="sub">{titleOfWhy(task)}</h2>
          {task.status === "done" || task.status === "running" ? null : <Clauses clauses={why.clauses ?? []} hideQuiet />}
          <p className="small second">{why.summary}</p>
          <Fixes why={why} />
        </section>
      ) : null}
      {!past ? <AnswerForm task={task} actions={actions} /> : null}
      {attempts?.length ? (
        <section>
          <header>
            <h2 className="sub">Attempts</h2>
            <span className="grow" />
            <span className="quiet small">
              {task.failures} of {task.max_attempts} failures · {task.lost} of {task.max_lost} lost
            </span>
          </header>
          <Attempts attempts={attempts} task={task} />
        </section>
      ) : null}
      {task.kind === "work" && task.attempt > 0 ? <LogTail task={task} /> : null}
      {actions.length ? (
        <section>
          <h2 className="sub">Do</h2>
          <div className="line wrap">
            {actions
              .filter((action) => !["approve", "reject", "answer"].includes(action.name))
              .map((action) => (
                <button
                  key={action.name}
                  type="button"
                  className={`btn${action.danger ? " danger" : ""}`}
                  title={`${action.does} ${action.command}`}
                  onClick={() => action.act()}
                >
                  {action.label}
                </button>
              ))}
          </div>
          <Command bare text={commandOf("show", task.id)} />
        </section>
      ) : null}
    </>
  );
}

function describeTask(task: Task): string {
  const parts = [
    task.title !== task.step ? task.title : "",
    task.kind === "work" ? task.agent : task.kind,
    task.lease ? `on ${task.lease.owner}` : "",
    task.round && task.round > 1 ? `round ${task.round}${task.max_rounds ? ` of ${task.max_rounds}` : ""}` : "",
    task.commit ? `commit ${task.commit.slice(0, 8)}` : "",
    task.blocked_by.length ? `waits for ${plural(task.blocked_by.length, "task")}` : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

function EventPart({ event }: { event: Event }): ReactNode {
  return (
    <section>
      <h2 className="sub">This event</h2>
      <dl className="facts">
        <dt>type</dt>
        <dd className="mono">{event.type}</dd>
        <dt>of</dt>
        <dd>{event.step ?? event.title}</dd>
        {event.from !== event.to && event.to ? (
          <>
            <dt>what</dt>
            <dd>{event.from ? `${event.from} to ${event.to}` : event.to}</dd>
          </>
        ) : null}
        {event.data ? (
          <>
            <dt>data</dt>
            <dd className="mono">{describeValue(event.data)}</dd>
          </>
        ) : null}
        <dt>by</dt>
        <dd>{event.actor}</dd>
        <dt>at</dt>
        <dd>{describeClockWithSeconds(event.at)}</dd>
        <dt>version</dt>
        <dd>{event.version}</dd>
      </dl>
    </section>
  );
}
