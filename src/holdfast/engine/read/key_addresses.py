"""Key addresses: `order-7` or `key:order-7` stands for the id of the run or task with this key.

A run and a task may have the same key: then the call decides which of both is meant, or refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from holdfast.engine.core.context import EngineContext
from holdfast.engine.read import pages
from holdfast.engine.read.addresses import read_task_at
from holdfast.errors import InvalidInput, NotFound
from holdfast.ids import AnyId, id_of
from holdfast.model.moment import describe_moment
from holdfast.model.task import NewTask
from holdfast.model.text import clean_key, clean_text
from holdfast.store.database import Row, Transaction

KEY_PREFIX = "key:"
RUN_PREFIX, TASK_PREFIX = "r_", "t_"
NEIGHBOURS = 20
SHOWN_KEYS = 3
_LIKENESS = 0.7


def read_key(given: object, field: str = "key") -> str | None:
    """The key that an address names, with the step behind it if any; None for an id.

    A text that is no id is a key. `key:` before it is needed only where the key looks like an id.
    """
    text = id_of(given)
    if not isinstance(text, str) or text.startswith((RUN_PREFIX, TASK_PREFIX)):
        return None
    return clean_key(field, text.removeprefix(KEY_PREFIX))


def find_task_id(
    context: EngineContext, given: object, field: str = "task_id", connection: object = None
) -> str:
    """The id of the task that an id, a record or a key address means."""
    key = read_key(given, field)
    if key is None:
        return pages.task_id(given, field)
    found = context.view(lambda tx: find_by_key(tx, key, TASK_PREFIX), connection)
    return pages.task_id(found, field)


def find_run_id(
    context: EngineContext, given: object, field: str = "run_id", connection: object = None
) -> str:
    """The id of the run that an id, a record or a key address means."""
    key = read_key(given, field)
    if key is None:
        return pages.run_id(given, field)
    found = context.view(lambda tx: find_by_key(tx, key, RUN_PREFIX), connection)
    return pages.run_id(found, field)


def find_id(
    context: EngineContext, given: AnyId, field: str = "id", connection: object = None
) -> str:
    """The id of the run or task that an id, a record or a key address means."""
    key = read_key(given, field)
    if key is None:
        return clean_text(field, id_of(given))
    return context.view(lambda tx: find_by_key(tx, key), connection)


def find_task_ids(
    context: EngineContext, given: Sequence[object], field: str, connection: object = None
) -> tuple[str, ...]:
    return tuple(find_task_id(context, each, field, connection) for each in given)


def follow_keys(context: EngineContext, task: NewTask, connection: object = None) -> NewTask:
    """The task with ids in place of the keys by which it names its needs and its parent."""
    if not isinstance(task, NewTask):
        return task
    needed: object = task.needs
    if isinstance(needed, list | tuple) and any(read_key(each, "needs") for each in needed):
        task = replace(task, needs=find_task_ids(context, needed, "needs", connection))
    if read_key(task.parent, "parent") is not None:
        parent = find_task_id(context, task.parent, "parent", connection)
        task = replace(task, parent=parent)
    return task


def choose_id_or_key(field: str, given: AnyId | None, key: str | None) -> AnyId:
    """The address of one run or task, of which a caller gives either the id or the key."""
    if (given is None) == (key is None):
        raise InvalidInput(field, "give an id or a key, one of both")
    return given if given is not None else KEY_PREFIX + clean_key("key", key)


def find_by_key(tx: Transaction, key: str, wanted: str = "") -> str:
    """The id of the run or task that has a key, or of a step of such a run: `order-7:build.2.test`.

    A key may have colons in it: the longest key that a run or task has comes first. `wanted` is the
    prefix of the ids preferred; the other one is returned where only that has the key, so that its
    kind can be told.
    """
    rows, run, step = tx.read("holders_of_key", key=key), key, ""
    while not rows and ":" in run:
        run, _, last = run.rpartition(":")
        step = f"{last}:{step}" if step else last
        rows = tx.read("holders_of_key", key=run)
    if not step or not rows:
        return _choose_holder(tx, key, rows, wanted)
    found = _choose_holder(tx, run, rows, RUN_PREFIX)
    return str(read_task_at(tx, pages.run_id(found), step)["id"])


def _choose_holder(tx: Transaction, key: str, rows: Sequence[Row], wanted: str) -> str:
    kept = [row for row in rows if row["removed_at"] is None]
    chosen = [row for row in kept if row["id"].startswith(wanted)] or kept
    if len(chosen) > 1:
        told = " and ".join(f"{row['id']} ({row['name']}, {row['status']})" for row in chosen)
        raise InvalidInput(
            "id", f"a run and a task have the key {key!r}; give the id of one: {told}"
        )
    if not chosen:
        kind = {RUN_PREFIX: "run", TASK_PREFIX: "task"}.get(wanted, "run or task")
        hint = _describe_removed(rows) or _describe_neighbours(tx, key)
        raise NotFound(f"{KEY_PREFIX}{key}", kind, hint)
    return str(chosen[0]["id"])


def read_neighbours(tx: Transaction, key: str) -> list[str]:
    """The keys before and after a text in the order of keys."""
    return [row["key"] for row in tx.read("keys_near", key=key, count=NEIGHBOURS)]


def _describe_removed(rows: Sequence[Row]) -> str:
    for row in rows:
        removed = describe_moment(row["removed_at"])
        return f"{row['id']} had it, was {row['status']}, and removed {removed}"
    return ""


def _describe_neighbours(tx: Transaction, key: str) -> str:
    known = read_neighbours(tx, key)
    if not known:
        return "no run or task has a key yet"
    close = get_close_matches(key, known, n=SHOWN_KEYS, cutoff=_LIKENESS)
    return f"near it: {', '.join(map(repr, close))}" if close else ""
