"""Explanation of a run: its holds, and one line for each task that is not done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.engine.explain.explanation import Explanation, describe_stored_error, head_fix
from holdfast.engine.explain.why_missing_value import retry_for_value_of_rows
from holdfast.engine.explain.why_slot import explain_place_in_key_queue
from holdfast.engine.explain.why_task import TaskExplainer, describe_start, describe_time_to
from holdfast.engine.explain.why_workers import WorkerExplainer
from holdfast.engine.input import validation
from holdfast.engine.read.records import read_run
from holdfast.engine.read.spending import describe_budget, describe_reached_budget
from holdfast.engine.read.task_state import count_done_in_runs
from holdfast.engine.state import child_run_refusals
from holdfast.errors import NotFound
from holdfast.ids import AnyId
from holdfast.model.advice import Action, advise, join_texts
from holdfast.model.moment import count_microseconds
from holdfast.model.run import Run
from holdfast.model.status import Hold, RunStatus
from holdfast.store.database import Database, Row, Transaction

SHOWN = 50
ALIKE_SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class RunExplanation:
    """The state of a run; `tasks` are the first that are not done, and `more` counts the rest."""

    run: Run
    summary: str
    tasks: tuple[Explanation, ...]
    more: int = 0
    fix: str = ""

    def __str__(self) -> str:
        lines = [line for alike in self.folded for line in _draw_alike(alike)]
        if self.more:
            lines.append(f"  and {self.more} more: {advise(Action.LIST_TASKS, self.run.id)}")
        fixes = dict.fromkeys([self.fix, *(fix for each in self.tasks for fix in each.own_fixes)])
        lines += map(head_fix, filter(None, fixes))
        return "\n".join([self.summary, *lines])

    @property
    def folded(self) -> list[list[Explanation]]:
        """The tasks of which the same is said, together; what holds others up comes first."""
        alike: dict[object, list[Explanation]] = {}
        for each in self.tasks:
            # The error of each task that has ended is its own.
            said = each.task.id if each.task.terminal else (each.task.agent, each.said_of_task)
            alike.setdefault(said, []).append(each)
        return list(alike.values())


def describe_alike(alike: Sequence[Explanation]) -> str:
    """The names of the tasks after the first of which the same is said; empty if there are none."""
    others = [each.name for each in alike[1:]]
    more = len(others) - ALIKE_SHOWN
    named = ", ".join(others[:ALIKE_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"and so {'is' if len(others) == 1 else 'are'} {named}" if others else ""


def _draw_alike(alike: Sequence[Explanation]) -> list[str]:
    first, others = alike[0], describe_alike(alike)
    below = [*([others] if others else []), *first.busy_workers]
    return [f"  {first.task.id}  {first.one_line}", *(f"      {line}" for line in below)]


def explain_run(
    database: Database,
    run_id: AnyId,
    *,
    agents: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
) -> RunExplanation:
    """Explain a run as a worker with these agents and tags would find its tasks, or any worker."""
    identifier = validation.run_id(run_id)
    serves = None if agents is None else validation.agents(agents)
    offered = None if tags is None else validation.tags(tags)

    def read(tx: Transaction) -> RunExplanation:
        rows = tx.read("run_by_id", run_id=identifier)
        if not rows:
            raise NotFound(identifier)
        tasks = tx.read("run_tasks", run_id=identifier)
        open_tasks = [row for row in tasks if row["status"] != "done" and not row["superseded"]]
        telling = _leave_out_groups(open_tasks)
        shown = sorted(telling, key=_rank_cause)[:SHOWN]
        workers = WorkerExplainer(tx)
        run = read_run(rows[0])
        return RunExplanation(
            run=run,
            summary=_describe_run(tx, run)
            + _describe_caller(tx, run)
            + _describe_bounds(tx, rows[0], run),
            tasks=tuple(TaskExplainer(workers, row, serves, offered).explain() for row in shown),
            more=len(telling) - len(shown),
            fix=_retry_and_resume(tx, run, open_tasks) or _explain_wait(tx, run)[1],
        )

    return database.view(read)


def _leave_out_groups(rows: Sequence[Row]) -> list[Row]:
    """The rows without the groups of which the tasks in them tell more.

    A group that failed by itself, and not by a task in it, has an error of its own to tell.
    """
    around = {row["parent_id"] for row in rows}
    broken = {row["parent_id"] for row in rows if row["status"] in {"failed", "cancelled"}}
    return [
        row
        for row in rows
        if row["id"] not in around or (row["error"] is not None and row["id"] not in broken)
    ]


def _rank_cause(row: Row) -> tuple[int, str]:
    """The place of a task among those of its run: what others wait for stands before them."""
    ended = row["status"] in {"failed", "cancelled"}
    return (0 if ended else 2 if row["blocked"] else 1), row["id"]


def _describe_run(tx: Transaction, run: Run) -> str:
    done, total = count_done_in_runs(tx, [run.id]).get(run.id, (0, 0))
    holds = f", hold: {', '.join(run.holds.names)}" if run.holds else ""
    status = f"{run.workflow} {run.id} is {run.status}"
    why = describe_stored_error(": ", run.error)
    return status + why + f", {done} of {total} tasks done{holds}"


def _describe_caller(tx: Transaction, run: Run) -> str:
    rows = tx.read("callers_of", ids=[run.id]) if run.parent_id is not None else []
    called = [f", called by {row['step']!r} of {row['workflow']} {row['run_id']}" for row in rows]
    return "".join(called)


def _describe_bounds(tx: Transaction, row: Row, run: Run) -> str:
    """The holders of the key that the run waits for, its budget and usage, and its time left."""
    told = [_explain_wait(tx, run)[0]]
    now: int = tx.read("now")[0]["now"]
    if run.holds & Hold.SCHEDULED and not run.terminal and run.scheduled_for is not None:
        told.append(describe_start(count_microseconds(run.scheduled_for), now))
    told += [] if run.budget is None else [describe_budget(tx, row)[0]]
    if run.deadline is not None and not run.terminal:
        told.append(f"ends in {describe_time_to(count_microseconds(run.deadline), now)} at most")
    return "".join(f", {each}" for each in told if each)


def _explain_wait(tx: Transaction, run: Run) -> tuple[str, str]:
    return (
        explain_place_in_key_queue(tx, run.id)
        if run.holds & Hold.SLOT and not run.terminal
        else ("", "")
    )


def _retry_and_resume(tx: Transaction, run: Run, rows: Sequence[Row]) -> str:
    fixes = []
    if run.status in {RunStatus.FAILED, RunStatus.CANCELLED} or run.holds & Hold.FAILING:
        failed = [row for row in rows if row["status"] == "failed"]
        again = retry_for_value_of_rows(tx, failed) or advise(Action.RETRY, run.id)
        fixes.append(child_run_refusals.fix_or_retry(tx, run.id, again))
    if run.status is not RunStatus.COMPLETED and child_run_refusals.goes_on_by_retry(tx, run.id):
        # The holds of a run outlive its end, and count again once it is retried.
        fixes += _lift_holds(tx, run)
    return join_texts("; ", filter(None, fixes))


def _lift_holds(tx: Transaction, run: Run) -> Iterator[str]:
    if run.holds & (Hold.PAUSED | Hold.SCHEDULED):
        yield advise(Action.RESUME, run.id)
    if run.holds & Hold.BUDGET:
        yield describe_reached_budget(tx, run.id)[1]
