"""What a task with all its needs still waits for: its condition, its list, its turn."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from holdfast.engine import calls, creation, verdicts
from holdfast.engine.asked import TaskRow
from holdfast.engine.blueprint import Place, draw, limits
from holdfast.engine.facts import RunFacts
from holdfast.engine.group import Group
from holdfast.engine.looking import number_of_item
from holdfast.engine.records import read_value
from holdfast.engine.scripts import Script, gather, read_output, tell_run
from holdfast.model.reference import Reference, Unresolved
from holdfast.model.rendering import render_title
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Kind
from holdfast.model.step import Step
from holdfast.model.template import SKIPPED
from holdfast.store.database import Row
from holdfast.store.patience import Contended

ITEMS_AT_ONCE = 2_000


def consider(group: Group, ids: Iterable[str]) -> None:
    """Let start, skip or expand the tasks whose needs are all done."""
    rows = group.tx.read("ripe_tasks", ids=sorted(set(ids)))
    written = _scripts(group, rows)
    titles: list[tuple[str, str]] = []
    starting: list[str] = []
    skipped: list[str] = []
    loops: list[tuple[str, int]] = []
    called: list[calls.Call] = []
    broken: dict[str, str] = {}
    for row in rows:
        step = _step(group, row)
        try:
            wanted = step.when is None or _holds(_resolve(group, row, step.when))
            listed = _list(group, row, step) if wanted and step.for_each is not None else None
            title = written[row["id"]].try_out() if wanted and row["id"] in written else None
        except Unresolved as error:
            broken[row["id"]] = json.dumps(_told(step, error))
            continue
        if not wanted:
            skipped.append(row["id"])
        else:
            titles += [] if title is None else [(row["id"], title)]
            starting += [row["id"]] if row["conditional"] else []
            if listed is not None:
                loops.append((row["id"], len(listed)))
            if step.calls is not None:
                called.append(calls.Call(row=row, script=written[row["id"]]))
    _apply(group, starting, skipped)
    if titles:
        group.change_tasks("tell_titles", rows=titles)
    if called:
        broken |= calls.begin(group, called)
    for loop_id, total in loops:
        if group.change_tasks("expand_loop", task_id=loop_id, total=total):
            group.parents.add(loop_id)
    # Last, for who goes back takes along what has just begun.
    _break(group, [row for row in rows if row["id"] in broken], broken)


def _scripts(group: Group, rows: list[Row]) -> dict[str, Script]:
    """The texts of those that are steps of a workflow file, to see whether they can be told."""
    found = []
    for row in rows:
        run = _facts(group, row)
        known = group.graphs.scripted(group.tx, run.workflow, run.version)
        if row["step"] in known:
            found.append((row, known[row["step"]], run))
    return gather(group, found)


def _told(step: Step, error: Unresolved) -> str:
    return f"{'step' if step.for_each is None else 'loop'} {step.id!r}: {error}"


def _break(group: Group, rows: list[Row], problems: dict[str, str]) -> None:
    """Go back, or end what cannot begin, as its step says."""
    for row in rows:
        problem, plan = problems[row["id"]], _step(group, row).on_failure
        if row["on_failure"] == "goto" and group.change_tasks(
            "turn_back_unresolved", rows=[(row["id"], problem, plan.max_rounds)]
        ):
            verdicts.go_to(group, row, str(plan.step), problem)
            del problems[row["id"]]
    if problems:
        ended = group.change_tasks("fail_unresolved", rows=sorted(problems.items()))
        verdicts.leave_out(group, ended)


def _apply(group: Group, starting: list[str], skipped: list[str]) -> None:
    if skipped:
        group.change_tasks("skip_tasks", ids=skipped)
    if starting:
        group.change_tasks("let_tasks_start", ids=starting)


def refill(group: Group, ids: Iterable[str]) -> None:
    """Start the next items of loops that have room; make more of them when they run out."""
    for row in group.tx.read("loops_with_room", ids=sorted(set(ids))):
        step = _step(group, row)
        room = step.parallel - row["active"]
        started = _start(group, row, room)
        while len(started) < room and row["made"] < row["total"]:
            _make_items(group, row, step)
            started += _start(group, row, room - len(started))
        bodies = [task for item in started for task in _body(group, row, step, item)]
        creation.insert_tasks(
            group, [(task, "advance") for task in bodies], {}, run_holds=row["run_holds"]
        )


def _start(group: Group, loop: Row, count: int) -> list[Row]:
    if count <= 0:
        return []
    rows = group.change_tasks("start_items", loop_id=loop["id"], first=loop["first"], count=count)
    # RETURNING has no order; the ids of what is made next follow that of the list.
    return sorted(rows, key=lambda row: int(row["item"]))


def _make_items(group: Group, loop: Row, step: Step) -> None:
    """Make the next items, idle, each with its value; its body comes with its turn."""
    values = _list(group, loop, step)
    first = loop["made"]
    chosen = values[first : first + ITEMS_AT_ONCE]
    run = _facts(group, loop)
    items = [
        TaskRow(
            id=group.ids.task(),
            kind=Kind.GROUP,
            run_id=loop["run_id"],
            parent_id=loop["id"],
            parent_epoch=loop["epoch"],
            item=first + place,
            position=first + place,
            step=loop["step"],
            title=_title(run, step, value) or f"{loop['step']}.{number_of_item(first + place)}",
            agent="default",
            status="idle",
            priority=loop["priority"],
            payload=json.dumps(value, ensure_ascii=False, separators=(",", ":")),
            **limits(RetryPolicy(), None, None),
        )
        for place, value in enumerate(chosen)
    ]
    (found,) = group.tx.read("first_open_item", loop_id=loop["id"], first=loop["first"])
    creation.insert_tasks(
        group, [(item, "advance") for item in items], {}, run_holds=loop["run_holds"]
    )
    place = first if found["place"] is None else min(first, found["place"])
    counted = {"count": len(items), "seen": first, "place": place}
    if not group.tx.write("count_items", task_id=loop["id"], **counted):
        message = "the items of a loop were made by another process"
        raise Contended(message)
    loop["made"] = first + len(items)


def _body(group: Group, loop: Row, step: Step, item: Row) -> tuple[TaskRow, ...]:
    place = Place(
        run_id=loop["run_id"],
        priority=loop["priority"] - step.priority,
        parent_id=item["entity"],
        parent_epoch=item["epoch"],
        item=item["item"],
        scope=lambda: _scope(_facts(group, loop), _value(group, item["entity"])),
    )
    return draw(step.steps, place, group.ids)


def _value(group: Group, item_id: str) -> object:
    return read_value(group.tx.read("items_around", ids=[item_id])[0]["payload"])


def _scope(run: RunFacts, item: object) -> dict[str, Any]:
    """What is known of an item before any step of it is done."""
    return {"input": run.value, "run": tell_run(run.id, run.workflow, run.key), "item": item}


def _title(run: RunFacts, step: Step, item: object) -> str | None:
    """What people read of an item; its place where that cannot be told."""
    if step.title is None:
        return None
    with suppress(Unresolved):
        return render_title(step, _scope(run, item))
    return None


def _list(group: Group, row: Row, step: Step) -> list[Any]:
    found = None if step.for_each is None else _resolve(group, row, step.for_each)
    if found is SKIPPED:
        return []
    if not isinstance(found, list):
        raise Unresolved(f"{step.for_each} is no list, but {type(found).__name__}")
    return found


def _holds(value: object) -> bool:
    return value is not SKIPPED and bool(value)


def _resolve(group: Group, row: Row, reference: Reference) -> object:
    """The value of a reference as the task sees it: in its item, around it, in its run."""
    root = reference.parts[0]
    if root == "input":
        return reference.resolve({"input": _facts(group, row).value})
    around = group.tx.read("ancestors", task_id=row["id"])
    if root == "item":
        items = [above for above in around if above["item"] is not None]
        if not items:
            raise Unresolved(f"{reference} stands in no loop")
        return reference.resolve({"item": json.loads(items[0]["payload"])})
    name = str(reference.step)
    found: list[Row] = []
    for above in around:
        found = found or group.tx.read("output_beside", parent_id=above["id"], step=name)
    found = found or group.tx.read("output_in_run", run_id=row["run_id"], step=name)
    if not found:
        raise Unresolved(f"step {name!r} is not done")
    run = _facts(group, row)
    work = group.graphs.step(group.tx, run.workflow, run.version, name).work
    output = read_output(found[0], None if work is None else work.outputs)
    return SKIPPED if output is SKIPPED else reference.resolve({"steps": {name: output}})


def _step(group: Group, row: Row) -> Step:
    run = _facts(group, row)
    return group.graphs.step(group.tx, run.workflow, run.version, row["step"])


def _facts(group: Group, row: Row) -> RunFacts:
    return group.facts.of(group.tx, (row["run_id"],))[row["run_id"]]
