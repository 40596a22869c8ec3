"""Loops and conditions: tasks whose needs are done start, are skipped, or expand into items."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast.engine.core.run_cache import RunFacts
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input.blueprint import TaskContainer, encode_limits, make_task_rows
from holdfast.engine.input.host_tags import find_host_tag
from holdfast.engine.read import step_texts
from holdfast.engine.read.records import read_value
from holdfast.engine.read.step_texts import StepTexts, build_known_variables, read_step_texts
from holdfast.engine.read.task_state import number_of_item
from holdfast.engine.state import child_runs, creation, need_cycles, reopen, verdicts
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import TaskKind
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step import Step
from holdfast.model.workflow.step_template import find_references, render_title
from holdfast.model.workflow.template import SKIPPED
from holdfast.store.database import Contended, Row

ITEMS_AT_ONCE = 2_000


def evaluate_tasks(work: UnitOfWork, ids: Iterable[str]) -> None:
    """Start, skip or expand the tasks whose needs are all done."""
    ripe = work.tx.read("ripe_tasks", ids=sorted(set(ids)))
    # Outside of runs only calls of workflows are evaluated.
    called = [child_runs.CallingTask(row=row) for row in ripe if row["run_id"] is None]
    rows = [row for row in ripe if row["run_id"] is not None]
    written = _read_scripts(work, rows)
    titles: list[tuple[str, str]] = []
    starting: list[str] = []
    skipped: list[str] = []
    loops: list[tuple[str, int]] = []
    unresolved: dict[str, str] = {}
    for row in rows:
        step = step_texts.read_step(work, row)
        try:
            wanted = step.when is None or _is_met(
                step_texts.resolve_reference(work, row, step.when)
            )
            listed = (
                _resolve_list(work, row, step) if wanted and step.for_each is not None else None
            )
            title = _render_title(work, row, step, written) if wanted else None
        except Unresolved as error:
            unresolved[row["id"]] = json.dumps(_describe_problem(step, error))
            continue
        if not wanted:
            skipped.append(row["id"])
        else:
            titles += [] if title is None else [(row["id"], title)]
            starting += [row["id"]] if row["conditional"] else []
            if listed is not None:
                loops.append((row["id"], len(listed)))
            if step.calls is not None:
                called.append(child_runs.CallingTask(row=row, script=written[row["id"]]))
    _start_and_skip(work, starting, skipped)
    if titles:
        work.change_tasks("tell_titles", rows=titles)
    if called:
        unresolved |= child_runs.start_called_runs(work, called)
    for loop_id, total in loops:
        if work.change_tasks("expand_loop", task_id=loop_id, total=total):
            work.groups_to_settle.add(loop_id)
    # Last: a task that goes back also takes back the tasks that have just started.
    _end_unresolved(work, [row for row in ripe if row["id"] in unresolved], unresolved)


def _read_scripts(work: UnitOfWork, rows: list[Row]) -> dict[str, StepTexts]:
    """The texts of tasks that are steps of a workflow file, to test whether they can be written."""
    found = []
    for row in rows:
        run = step_texts.read_run_facts(work, row)
        known = work.workflow_cache.scripted(work.tx, run.workflow, run.version)
        if row["step"] in known:
            found.append((row, known[row["step"]], run))
    return read_step_texts(work.tx, found)


def _render_title(
    work: UnitOfWork, row: Row, step: Step, written: dict[str, StepTexts]
) -> str | None:
    """The title, if any; raises `Unresolved` when a text of the step names a missing value."""
    if row["id"] in written:
        return written[row["id"]].render_title()
    # The concurrency key of a function's step may name the item; a loop's texts are of its items.
    for reference in find_references(step) if step.for_each is None else ():
        if reference.root == "item":
            step_texts.resolve_reference(work, row, reference)
    return None


def _describe_problem(step: Step, error: Unresolved) -> str:
    return f"{'step' if step.for_each is None else 'loop'} {step.id!r}: {error}"


def _end_unresolved(work: UnitOfWork, rows: list[Row], problems: dict[str, str]) -> None:
    """Send tasks that cannot begin back to an earlier step, or end them, as their steps say."""
    ends = {row["id"]: (problems[row["id"]], row["on_failure"]) for row in rows}
    for row in (each for each in rows if each["run_id"] is not None):
        problem, plan = problems[row["id"]], step_texts.read_step(work, row).on_failure
        if plan.escalation is not None:
            # No other agent gets it: nobody could tell that one what to do either.
            ends[row["id"]] = (problem, plan.escalation.then)
        elif plan.action == "goto" and work.change_tasks(
            "turn_back_unresolved", rows=[(row["id"], problem, plan.max_rounds)]
        ):
            verdicts.go_back_to_step(work, row, str(plan.step), problem)
            del ends[row["id"]]
    if ends:
        given = sorted((task_id, *end) for task_id, end in ends.items())
        ended = work.change_tasks("fail_unresolved", rows=given)
        verdicts.skip_unaccepted_work(work, ended)


def _start_and_skip(work: UnitOfWork, starting: list[str], skipped: list[str]) -> None:
    if skipped:
        work.change_tasks("skip_tasks", ids=skipped)
    if starting:
        work.change_tasks("let_tasks_start", ids=starting)


def start_next_items(work: UnitOfWork, ids: Iterable[str]) -> None:
    """Start the next items of loops that have room, and make more items when none is left."""
    for row in work.tx.read("loops_with_room", ids=sorted(set(ids))):
        step = step_texts.read_step(work, row)
        room = step.parallel - row["active"]
        started = _start_items(work, row, room)
        while len(started) < room and row["made"] < row["total"]:
            if (values := _list_if_unchanged(work, row, step)) is None:
                started = started if _await_list(work, row, step) else []
                break
            _make_items(work, row, step, values)
            started += _start_items(work, row, room - len(started))
        bodies = [task for item in started for task in _draw_body(work, row, step, item)]
        bodies = _order_landings(work, row, step, bodies)
        creation.insert_tasks(
            work, [(task, "advance") for task in bodies], {}, run_holds=row["run_holds"]
        )


def _start_items(work: UnitOfWork, loop: Row, count: int) -> list[Row]:
    if count > 0:
        asked = {"loop_id": loop["id"], "first": loop["first"], "count": count}
        rows = work.change_tasks("start_items", **asked)
    else:
        rows = _start_needed_items(work, loop)
    # RETURNING has no order, and the ids of the tasks made next follow the order of the list.
    return sorted(rows, key=lambda row: int(row["item"]))


def _start_needed_items(work: UnitOfWork, loop: Row) -> list[Row]:
    """Start items in a full loop whose items under way wait for them, so that none would ever end.

    An item under way came to need another one that was done; then the other one began again.
    """
    needed = work.tx.read("needed_items", loop_id=loop["id"], first=loop["first"])
    ids = [
        row["id"] for row in needed if need_cycles.loop_waits_for_item(work, row["id"], loop["id"])
    ]
    return work.change_tasks("let_items_in", ids=ids) if ids else []


def _list_if_unchanged(work: UnitOfWork, loop: Row, step: Step) -> list[Any] | None:
    """The list of a loop under way; None if it cannot be read any more, or may have changed."""
    try:
        values = _resolve_list(work, loop, step)
    except Unresolved:
        return None
    if len(values) != loop["total"]:
        return None
    source = _list_source(work, loop, step) if loop["made"] else None
    if source is None:
        return values
    asked = {"task_id": source["id"], "loop_id": loop["id"]}
    return None if work.tx.read("done_since_expanded", **asked) else values


def _list_source(work: UnitOfWork, loop: Row, step: Step) -> Row | None:
    """The task of the step whose output is the list of a loop."""
    over = step.for_each
    if over is None or over.step is None:
        return None
    return step_texts.find_task_of_step(work, loop, over.step)


def _await_list(work: UnitOfWork, loop: Row, step: Step) -> bool:
    """Make a loop need the step of its list and the verifiers of that, or else reopen the loop.

    The loop lacks that need only if a person has removed it.
    """
    source = _list_source(work, loop, step)
    if source is not None and source["status"] != "done":
        judges = work.tx.read("verifiers_of", run_id=loop["run_id"], task_id=source["id"])
        needs = sorted([source["id"], *(row["id"] for row in judges)])
        if need_cycles.describe_cycle(work, loop["id"], needs) is None:
            named = {"task_id": loop["id"], "ids": needs, "linked": None, "actor": "advance"}
            (row,) = work.change_tasks("block_task", **named)
            added = [(loop["id"], need, row["version"]) for need in needs]
            work.tx.run("insert_needs", rows=added)
            return True
    reopen.reopen_task_within_run(work, loop["id"], "advance", ("queued",), reopen.NO_LIMIT)
    return False


def _make_items(work: UnitOfWork, loop: Row, step: Step, values: list[Any]) -> None:
    """Make the next items, idle, each with its value.

    The tasks of an item are made when it starts.
    """
    first = loop["made"]
    chosen = values[first : first + ITEMS_AT_ONCE]
    run = step_texts.read_run_facts(work, loop)
    items = [
        TaskRow(
            id=work.ids.task(),
            kind=TaskKind.GROUP,
            run_id=loop["run_id"],
            parent_id=loop["id"],
            parent_epoch=loop["epoch"],
            item=first + place,
            position=first + place,
            step=loop["step"],
            title=_item_title(work, run, step, value)
            or f"{loop['step']}.{number_of_item(first + place)}",
            agent="default",
            status="idle",
            priority=loop["priority"],
            payload=json.dumps(value, ensure_ascii=False, separators=(",", ":")),
            **encode_limits(RetryPolicy(), None, None),
        )
        for place, value in enumerate(chosen)
    ]
    (found,) = work.tx.read("first_open_item", loop_id=loop["id"], first=loop["first"])
    creation.insert_tasks(
        work, [(item, "advance") for item in items], {}, run_holds=loop["run_holds"]
    )
    place = first if found["place"] is None else min(first, found["place"])
    counted = {"count": len(items), "seen": first, "place": place}
    if not work.tx.write("count_items", task_id=loop["id"], **counted):
        message = "the items of a loop were made by another process"
        raise Contended(message)
    loop["made"] = first + len(items)


def _draw_body(work: UnitOfWork, loop: Row, step: Step, item: Row) -> tuple[TaskRow, ...]:
    place = TaskContainer(
        run_id=loop["run_id"],
        priority=loop["priority"] - step.priority,
        parent_id=item["entity"],
        parent_epoch=item["epoch"],
        item=item["item"],
        host_tag=find_host_tag(loop["tags"]),
        variables=lambda: _item_variables(
            work, step_texts.read_run_facts(work, loop), _item_value(work, item["entity"])
        ),
    )
    return make_task_rows(step.steps, place, work.ids)


def _order_landings(
    work: UnitOfWork, loop: Row, step: Step, bodies: list[TaskRow]
) -> list[TaskRow]:
    """Let the landing of each new item need that of the item before it."""
    landing = next((inner.id for inner in step.steps if inner.lands), None)
    items = sorted({task.item for task in bodies if task.step == landing and task.item})
    if landing is None or not items:
        return bodies
    asked = {"loop_id": loop["id"], "step": landing, "items": [item - 1 for item in items]}
    before = {row["item"]: row["id"] for row in work.tx.read("landings_of_items", **asked)}
    before |= {task.item: task.id for task in bodies if task.step == landing}
    return [
        replace(task, needs=(*task.needs, before[task.item - 1]))
        if task.step == landing and task.item is not None and task.item - 1 in before
        else task
        for task in bodies
    ]


def _item_value(work: UnitOfWork, item_id: str) -> object:
    return read_value(work.tx.read("items_around", ids=[item_id])[0]["payload"])


def _item_variables(work: UnitOfWork, run: RunFacts, item: object) -> dict[str, Any]:
    """The variables that an item has before any step of it is done."""
    workspace = work.workflow_cache.workspace(work.tx, run.workflow, run.version)
    return {**build_known_variables(run, workspace), "item": item}


def _item_title(work: UnitOfWork, run: RunFacts, step: Step, item: object) -> str | None:
    """The title of an item; None if its step has none, or its text cannot be written."""
    if step.title is None:
        return None
    with suppress(Unresolved):
        return render_title(step, _item_variables(work, run, item))
    return None


def _resolve_list(work: UnitOfWork, row: Row, step: Step) -> list[Any]:
    found = (
        None if step.for_each is None else step_texts.resolve_reference(work, row, step.for_each)
    )
    if found is SKIPPED:
        return []
    if not isinstance(found, list):
        raise Unresolved(f"{step.for_each} is no list, but {type(found).__name__}")
    return found


def _is_met(value: object) -> bool:
    return value is not SKIPPED and bool(value)
