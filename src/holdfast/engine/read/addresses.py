"""Addresses of tasks in a run: `plan`, or `build.2.implement` in a loop.

An address that leads to no task is described: there is no such step, or its task is not made yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.engine.read.task_records import read_task
from holdfast.engine.read.task_state import name_tasks, place_of_item
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.advice import Action, advise
from holdfast.model.status import TERMINAL
from holdfast.model.workflow.graph_text import read_steps
from holdfast.model.workflow.step import Step, all_steps
from holdfast.store.database import Row, Transaction

_ITEM_NUMBER = re.compile("[0-9]{1,9}")
# An error about an address of several tasks names this many.
SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowedAddress:
    """The task of an address; without one, the last task on the way and the rest after it."""

    found: Row | None
    last_found: Row | None = None
    rest: tuple[str, ...] = ()
    # The text about an address that leads to more than one task.
    ambiguity: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingTask:
    """The text about an address without a task; `yet` when the task can still be made."""

    hint: str
    yet: bool = False


def follow_address(tx: Transaction, run_id: str, address: str) -> FollowedAddress:
    """Follow an address; items count from 1: `build.2` is the item itself, `build` the loop."""
    first, *rest = address.split(".")
    found = tx.read("task_at_top", run_id=run_id, step=first)
    last_found = None
    while found and rest:
        last_found = found[0]
        found = _find_below(tx, last_found, rest[0])
        if len(found) > 1:
            return FollowedAddress(
                found=None, last_found=last_found, ambiguity=_describe_ambiguity(address, found)
            )
        rest = rest[1:] if found else rest
    return FollowedAddress(
        found=found[0] if found else None, last_found=last_found, rest=tuple(rest)
    )


def read_task_at(tx: Transaction, run_id: str, address: str) -> Row:
    """Read the task of an address; `NotFound` says which steps there are, or when it is made."""
    sought = follow_address(tx, run_id, address)
    if sought.found is not None:
        return sought.found
    if sought.ambiguity is not None:
        raise InvalidInput("address", sought.ambiguity)
    if not tx.read("run_by_id", run_id=run_id):
        raise NotFound(run_id)
    missing = describe_missing_task(tx, run_id, sought)
    raise NotFound(f"{run_id}:{address}", "task", missing.hint, yet=missing.yet)


def _find_below(tx: Transaction, row: Row, part: str) -> list[Row]:
    if row["calls"] is not None:
        return tx.read("task_at_top", run_id=find_called_run(tx, row) or "", step=part)
    if row["item"] is None and is_item_number(part):
        asked = {"parent_id": row["id"], "place": place_of_item(part)}
        return tx.read("item_of", **asked) or tx.read("moved_item_of", **asked)
    return tx.read("task_of_item", parent_id=row["id"], step=part)


def _describe_ambiguity(address: str, found: list[Row]) -> str:
    """Describe tasks of one address: a step has made them of one function, as `map` does."""
    told = ", ".join(f"{row['id']} ({row['status']})" for row in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{address} leads to {len(found)} tasks; give the id of one: {told}{more}"


def find_called_run(tx: Transaction, row: Row) -> str | None:
    """Find the run that a step has called, also when the step does not wait for it now."""
    if row["waits_for"] is not None:
        return str(row["waits_for"])
    known = tx.read("child_runs", ids=[row["id"]])
    return str(known[0]["id"]) if known else None


def is_item_number(part: str) -> bool:
    """Whether a part of an address is the number of an item."""
    return _ITEM_NUMBER.fullmatch(part) is not None


def describe_missing_task(tx: Transaction, run_id: str, followed: FollowedAddress) -> MissingTask:
    """Describe which steps there are where an address goes wrong, or when its task is made."""
    last_found = followed.last_found
    if last_found is None:
        return MissingTask(hint=_list_steps(_read_made_steps(tx, run_id, None)))
    if last_found["calls"] is not None:
        return _describe_below_call(tx, last_found)
    step = _read_step(tx, last_found)
    if step is None or step.for_each is None:
        return MissingTask(hint=_list_steps(_read_made_steps(tx, run_id, last_found["id"])))
    (name,) = name_tasks(tx, [last_found["id"]]).values()
    describe = _describe_below_loop if last_found["item"] is None else _describe_below_item
    return describe(tx, last_found, step, name, followed.rest)


def describe_unknown_address(
    tx: Transaction, run_id: str, address: str, followed: FollowedAddress
) -> str:
    """Describe why no task can begin again at an address; for a step in a loop, name an item."""
    if followed.ambiguity is not None:
        return followed.ambiguity
    inner = tx.read("task_in_run", run_id=run_id, step=address)
    if not inner:
        missing = describe_missing_task(tx, run_id, followed)
        unknown = f"{run_id} has no step {address!r}"
        return f"{f'{address!r} has not been made yet' if missing.yet else unknown}; {missing.hint}"
    (name,) = name_tasks(tx, [inner[0]["id"]]).values()
    meant = advise(Action.RETRY, run_id, ("step", name))
    return f"{address!r} stands in a loop, once for each item; say which one is meant: " + meant


def _describe_below_loop(
    tx: Transaction, row: Row, step: Step, name: str, rest: Sequence[str]
) -> MissingTask:
    number, *inner = rest
    if not is_item_number(number):
        return MissingTask(hint=f"{name} is a loop: name an item, {name}.1")
    total, made = row["total"], row["made"]
    if total is not None and not 0 <= place_of_item(number) < total:
        return MissingTask(hint=f"{name} has {_describe_item_count(total)}, counted from 1")
    if inner and not _leads_to_step(step.steps, inner):
        return MissingTask(hint=_list_steps(each.id for each in step.steps))
    if row["status"] in TERMINAL:
        return MissingTask(hint=f"{name} is {row['status']}")
    if total is None:
        return MissingTask(
            hint=f"{name} makes its items when it begins{_describe_needs(tx, row)}", yet=True
        )
    rest_of = (
        f"{made} of the {_describe_item_count(total)} of {name} have been made, the rest come later"
    )
    return MissingTask(hint=rest_of, yet=True)


def _describe_below_item(
    tx: Transaction, row: Row, step: Step, name: str, rest: Sequence[str]
) -> MissingTask:
    if not _leads_to_step(step.steps, rest):
        return MissingTask(hint=_list_steps(each.id for each in step.steps))
    if row["status"] in TERMINAL:
        return MissingTask(hint=f"{name} is {row['status']}")
    (counted,) = tx.read("count_children", ids=[row["parent_id"]])
    (loop,) = name_tasks(tx, [row["parent_id"]]).values()
    at_a_time = f"{loop} has {_describe_item_count(step.parallel)} at a time"
    done = f"{counted['done']} of {counted['whole']} are done"
    begins = f"the steps of {name} are made when it begins: {at_a_time}, and {done}"
    return MissingTask(hint=begins, yet=True)


def _describe_below_call(tx: Transaction, row: Row) -> MissingTask:
    (name,) = name_tasks(tx, [row["id"]]).values()
    called = find_called_run(tx, row)
    if called is not None:
        return MissingTask(hint=_list_steps(_read_made_steps(tx, called, None)))
    if row["status"] in TERMINAL:
        return MissingTask(hint=f"{name} is {row['status']}, and has called nothing")
    return MissingTask(
        hint=f"{name} has not called {row['calls']} yet{_describe_needs(tx, row)}", yet=True
    )


def _read_step(tx: Transaction, row: Row) -> Step | None:
    """Read the step that a task carries out from the workflow of its run."""
    (run,) = tx.read("run_by_id", run_id=row["run_id"])
    named = {"name": run["workflow"], "version": run["workflow_version"]}
    (kept,) = tx.read("workflow_definition", **named)
    return next(
        (each for each in all_steps(read_steps(kept["definition"])) if each.id == row["step"]), None
    )


def _leads_to_step(steps: Sequence[Step], parts: Sequence[str]) -> bool:
    """Whether an address leads to one of these steps or below; below a call, any address may."""
    first, *rest = parts
    step = next((each for each in steps if each.id == first), None)
    if step is None or not rest:
        return step is not None
    if step.for_each is None:
        return step.calls is not None
    number, *inner = rest
    return is_item_number(number) and (not inner or _leads_to_step(step.steps, inner))


def _read_made_steps(tx: Transaction, run_id: str, parent: str | None) -> list[str]:
    tasks = [read_task(row) for row in tx.read("run_tasks", run_id=run_id)]
    there = [task for task in tasks if task.parent_id == parent and not task.superseded]
    return [str(task.step) for task in there]


def _list_steps(steps: Iterable[str]) -> str:
    names = ", ".join(dict.fromkeys(steps))
    return f"the steps there are {names}" if names else "there is nothing below a step"


def _describe_needs(tx: Transaction, row: Row) -> str:
    """Describe the needs that a task which has not begun waits for."""
    unmet = tx.read("unmet_needs", ids=[row["id"]])
    names = name_tasks(tx, [each["id"] for each in unmet])
    told = ", ".join(f"{names[each['id']]} ({each['status']})" for each in unmet)
    return f", after {told}" if told else ""


def _describe_item_count(number: int) -> str:
    return f"{number} {'item' if number == 1 else 'items'}"
