/** Plans: tasks that are planned in parts, and the way to begin one. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";

import { change } from "../api/client";
import { tasksQuery } from "../api/queries";
import { markTask } from "../model/marks";
import type { Task } from "../model/types";
import { shortenId } from "../model/words";
import { useActions } from "../parts/actions";
import { Glyph, Icon } from "../parts/marks";
import { Command, Empty, Problem, Skeleton } from "../parts/pieces";
import { Clock } from "../parts/time";
import { useSession } from "../shell/session";
import { Top } from "../shell/top";

export function PlansPage(): ReactNode {
  const { data, error, isLoading } = useQuery(tasksQuery({ status: "idle" }, 500));
  const { maySteer } = useSession();
  const { run: act } = useActions();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [title, setTitle] = useState("");
  const idle = (data ?? []).filter((task) => !task.parent_id && !task.run_id);
  const plans = idle.filter((task) => task.planning_phase !== "none");
  const rest = idle.filter((task) => task.planning_phase === "none");
  const begin = async (task: Task | undefined) => {
    let id = task?.id;
    const done = await act(async () => {
      if (id === undefined) {
        id = (await change<Task>("/tasks", { title: title.trim(), enqueue: false })).id;
      }
      await change(`/tasks/${id}/plan/start`);
      await queries.invalidateQueries({ queryKey: ["tasks"] });
    }, "The plan is begun");
    if (done && id) await navigate({ to: "/plan/$task", params: { task: id } });
  };
  return (
    <>
      <Top title="Planning" />
      <div className="page">
        {error ? <Problem error={error} /> : null}
        {maySteer ? (
          <form
            className="panel body line"
            style={{ padding: 12 }}
            onSubmit={(event) => {
              event.preventDefault();
              if (title.trim()) void begin(undefined);
            }}
          >
            <input
              className="input grow"
              value={title}
              aria-label="What is to be planned"
              placeholder="What is to be planned"
              onChange={(event) => setTitle(event.target.value)}
            />
            <button type="submit" className="btn primary" aria-disabled={!title.trim()}>
              <Icon name="plus" />
              Plan it
            </button>
          </form>
        ) : null}
        <section className="panel">
          <header>
            <h2>Plans</h2>
            <span className="quiet">{plans.length || ""}</span>
          </header>
          {isLoading ? <Skeleton rows={3} /> : null}
          {!isLoading && !plans.length ? (
            <Empty icon="plan" title="Nothing is planned">
              <p>A plan splits a task into parts that run as a chain or a graph. From a terminal:</p>
              <Command text="holdfast plan start TASK" />
            </Empty>
          ) : null}
          {plans.map((task) => (
            <Link key={task.id} className="mail short" to="/plan/$task" params={{ task: task.id }}>
              <Glyph name={markTask(task).name} label={markTask(task).word} />
              <span className="a cut">
                {task.title} <span className="quiet small">{task.planning_phase}</span>
              </span>
              <Clock at={task.created_at} />
            </Link>
          ))}
        </section>
        {rest.length && maySteer ? (
          <section className="panel">
            <header>
              <h2>Idle tasks</h2>
              <span className="quiet">that could be planned</span>
            </header>
            {rest.slice(0, 50).map((task) => (
              <div key={task.id} className="mail short">
                <Glyph name={markTask(task).name} label={markTask(task).word} />
                <Link className="a cut link-quiet" to="/tasks/$task" params={{ task: task.id }}>
                  {task.title} <span className="quiet mono">{shortenId(task.id)}</span>
                </Link>
                <button type="button" className="btn ghost" onClick={() => void begin(task)}>
                  Plan it
                </button>
              </div>
            ))}
          </section>
        ) : null}
      </div>
    </>
  );
}
