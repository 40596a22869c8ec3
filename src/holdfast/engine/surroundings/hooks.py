"""Hooks: each end queues one task of every hook that is for it, in the commit of the end."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from typing import Any

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Keys, Operation
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.core.task_rows import TASK_DEFAULTS, TaskRow
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.engine.read.pages import Page
from holdfast.engine.read.records import UNREADABLE_ERRORS, describe_problem, read_event, read_value
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.state import creation
from holdfast.errors import summarize_error
from holdfast.ids import Ids
from holdfast.model.advice import Action, advise
from holdfast.model.hook import Ended, Hook, NewHook, check_ends, hook_step, read_end
from holdfast.model.moment import count_microseconds, to_datetime
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import MAX_COUNT, MAX_SECONDS, MICROSECONDS
from holdfast.model.task import NewTask
from holdfast.model.text import clean_name, clean_text
from holdfast.store.database import Row

ACTOR = "hook"
log = logging.getLogger("holdfast.hooks")
_MAX_MICROSECONDS = MAX_SECONDS * MICROSECONDS
FieldReader = Callable[[object], object]
HookRow = tuple[str, str, str | None, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisterHooks(Operation):
    """Hooks to register, each with its name, ends, subject and the template of its tasks."""

    hooks: tuple[tuple[str, str, str | None, str], ...]

    @property
    def keys(self) -> Keys:
        return tuple(hook_step(name) for name, *_ in self.hooks)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveHook(Operation):
    name: str

    @property
    def keys(self) -> Keys:
        return (hook_step(self.name),)


def register_hooks(work: UnitOfWork, operations: Sequence[RegisterHooks]) -> list[None]:
    # In one order, because two processes that register the same hooks lock the same rows.
    rows = [hook for operation in operations for hook in operation.hooks]
    rows.sort(key=lambda hook: hook[0])
    work.tx.run("register_hooks", rows=rows)
    return [None for _ in operations]


def remove_hook(work: UnitOfWork, operation: RemoveHook) -> TransitionResult:
    if work.tx.write("remove_hook", hook=operation.name):
        return TransitionResult(ok=True)
    names = ", ".join(row["name"] for row in work.tx.read("list_hooks"))
    there = f"there are {names}" if names else "there is none at all"
    detail = f"no hook of this store is called {operation.name!r}; {there}"
    return refuse(Refusal.NOT_FOUND, None, detail)


def fire_hooks(work: UnitOfWork) -> None:
    """Queue a task for each hook of each end in this unit of work, exactly once."""
    if not work.ends:
        return
    ends, work.ends = work.ends, []
    found = work.tx.read("hooks_to_fire", rows=[(end["entity"], end["version"]) for end in ends])
    tasks: list[tuple[TaskRow, str]] = []
    for row in found:
        try:
            tasks.append((_build_task(row, work.ids), ACTOR))
        except UNREADABLE_ERRORS as error:
            work.passed_hooks.append({**row, "problem": describe_problem(error)})
    creation.insert_tasks(work, tasks, {}, run_holds=0)
    failed = [end["entity"] for end in ends if end["status"] == "failed" and end["run_id"] is None]
    if failed:
        work.failed_hooks += work.tx.read("failed_hooks", ids=failed)


def _build_task(row: Row, ids: Ids) -> TaskRow:
    name, entity = row["name"], row["entity"]
    event = read_end(read_event(row), workflow=row["workflow"], step=row["step"])
    told = {**asdict(event), "at": count_microseconds(event.at)}
    return TaskRow(
        id=ids.task(),
        step=hook_step(name),
        title=f"{name} after {row['type']} of {entity}",
        status="queued",
        key=f"{hook_step(name)} {entity} {row['version']}",
        payload=json.dumps({"event": told}, ensure_ascii=False, separators=(",", ":")),
        **read_template(row["template"]),
    )


def log_hook_failures(failed: Sequence[Row], passed: Sequence[Row]) -> None:
    """Log which hooks failed for good or were passed over, after which end, and the remedy."""
    for row in failed:
        log.error(
            "hook %s failed for good: %s; what it follows stays as it ended; %s tries it again",
            row["title"],
            summarize_error(read_value(row["error"])),
            advise(Action.RETRY, row["id"]),
        )
    for row in passed:
        log.error(
            "hook %s was passed over after %s of %s, because this program cannot read it: %s; "
            "hf.hooks.list() tells it too; the program that has this hook registers it anew",
            row["name"],
            row["type"],
            row["entity"],
            row["problem"],
        )


def read_payload(payload: dict[str, Any]) -> Ended:
    """The event in the payload of a hook's task."""
    told = payload["event"]
    return Ended(**{**told, "at": to_datetime(told["at"])})


class Hooks:
    """Hooks: functions that follow the end of a run, or of a task without a run."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def register(self, hooks: Sequence[NewHook]) -> Future[None]:
        """Have each hook follow every end it is for from now on; a known hook changes nothing."""
        wanted = {row[0]: row for row in map(self._build_row, hooks)}
        rows = self._context.view(lambda tx: tx.read("list_hooks")) if wanted else []
        known = {(row["name"], row["events"], row["about"], row["template"]) for row in rows}
        new = tuple(row for row in wanted.values() if row not in known)
        if new:
            return self._context.submit(RegisterHooks(hooks=new))
        unchanged: Future[None] = Future()
        unchanged.set_result(None)
        return unchanged

    @operation
    def remove(self, name: str) -> Future[TransitionResult]:
        """Remove a hook; the tasks that it has queued already stay in the queue."""
        return self._context.submit(RemoveHook(name=clean_name("name", name)))

    @reading
    def list(self) -> Page[Hook]:
        """Every hook of the store, whichever program has registered it."""
        return [_read_hook(row) for row in self._context.view(lambda tx: tx.read("list_hooks"))]

    def _build_row(self, hook: NewHook) -> HookRow:
        validation.instance("hook", hook, NewHook)
        task = NewTask(
            title=clean_name("name", hook.name),
            agent=hook.agent,
            tags=hook.tags,
            priority=hook.priority,
            retry=hook.retry,
            timeout=hook.timeout,
            concurrency=hook.concurrency,
        )
        limit = self._context.settings.max_payload
        row = validation.new_task(task, self._context.ids, max_payload=limit, now=self._context.now)
        about = None if hook.about is None else clean_name("about", hook.about)
        return hook.name, _encode_ends(hook.events), about, write_template(row)


def _encode_ends(events: object) -> str:
    chosen = sorted(validation.names("events", events))
    check_ends(chosen)
    return json.dumps(chosen)


def _read_hook(row: Row) -> Hook:
    kept = Hook(name=row["name"], about=row["about"], created_at=to_datetime(row["created_at"]))
    try:
        template = read_template(row["template"])
        return replace(
            kept,
            events=validation.names("events", json.loads(row["events"])),
            agent=template["agent"],
            max_attempts=template["max_attempts"],
        )
    except UNREADABLE_ERRORS as error:
        return replace(kept, problem=describe_problem(error))


def write_template(row: TaskRow) -> str:
    """Write the fields that all tasks of a hook have in common."""
    return json.dumps({name: getattr(row, name) for name in _FIELD_READERS}, sort_keys=True)


def read_template(text: str) -> dict[str, Any]:
    """Read the fields of a hook's tasks: unknown ones are left out, bad values are refused."""
    template = {**TASK_DEFAULTS, **json.loads(text)}
    return {name: reader(template[name]) for name, reader in _FIELD_READERS.items()}


def _whole_number(field: str, *, least: int, most: int) -> FieldReader:
    return lambda value: validation.number(field, value, least=least, most=most)


def _optional(reader: FieldReader) -> FieldReader:
    return lambda value: None if value is None else reader(value)


_FIELD_READERS: dict[str, FieldReader] = {
    "agent": lambda value: clean_name("agent", value),
    "priority": lambda value: validation.signed("priority", value),
    "tags": lambda value: validation.tags(json.loads(clean_text("tags", value))),
    "timeout": _optional(_whole_number("timeout", least=1, most=_MAX_MICROSECONDS)),
    "concurrency_key": _optional(lambda value: clean_text("concurrency_key", value)),
    "capacity": _whole_number("capacity", least=1, most=validation.MAX_INTEGER),
    "max_attempts": _whole_number("max_attempts", least=1, most=MAX_COUNT),
    "max_lost": _whole_number("max_lost", least=1, most=MAX_COUNT),
    "backoff": _whole_number("backoff", least=0, most=_MAX_MICROSECONDS),
    "backoff_max": _whole_number("backoff_max", least=0, most=_MAX_MICROSECONDS),
}
