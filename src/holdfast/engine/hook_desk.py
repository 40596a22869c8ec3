"""Hooks: say what is to follow which ends, look at it, take it back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

from holdfast.engine import hook_template, validation
from holdfast.engine.desk import Desk
from holdfast.engine.edge import operation, reading
from holdfast.engine.hook_operations import RegisterHooks, RemoveHook
from holdfast.engine.listing import Page
from holdfast.engine.unreadable import UNREADABLE, tell_problem
from holdfast.model.hook import Hook, NewHook, check_ends
from holdfast.model.result import TransitionResult
from holdfast.model.task import NewTask
from holdfast.model.text import clean_name
from holdfast.store.database import Row

Kept = tuple[str, str, str | None, str]


class Hooks:
    """What follows the end of a run or of a lone task."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @operation
    def register(self, hooks: Sequence[NewHook]) -> Future[None]:
        """Have each hook follow every end it is for from now on; again, it changes nothing."""
        wanted = {row[0]: row for row in map(self._row, hooks)}
        rows = self._desk.view(lambda tx: tx.read("list_hooks")) if wanted else []
        known = {(row["name"], row["events"], row["about"], row["template"]) for row in rows}
        new = tuple(row for row in wanted.values() if row not in known)
        if new:
            return self._desk.submit(RegisterHooks(hooks=new))
        unchanged: Future[None] = Future()
        unchanged.set_result(None)
        return unchanged

    @operation
    def remove(self, name: str) -> Future[TransitionResult]:
        """Let nothing more follow; what it has queued already stays in the queue."""
        return self._desk.submit(RemoveHook(name=clean_name("name", name)))

    @reading
    def list(self) -> Page[Hook]:
        """Every hook of the store, of whatever program."""
        return [_read(row) for row in self._desk.view(lambda tx: tx.read("list_hooks"))]

    def _row(self, hook: NewHook) -> Kept:
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
        limit = self._desk.settings.max_payload
        row = validation.new_task(task, self._desk.ids, max_payload=limit, now=self._desk.now)
        about = None if hook.about is None else clean_name("about", hook.about)
        return hook.name, _ends(hook.events), about, hook_template.write(row)


def _ends(events: object) -> str:
    chosen = sorted(validation.names("events", events))
    check_ends(chosen)
    return json.dumps(chosen)


def _read(row: Row) -> Hook:
    kept = Hook(name=row["name"], about=row["about"], created_at=row["created_at"])
    try:
        template = hook_template.read(row["template"])
        return replace(
            kept,
            events=validation.names("events", json.loads(row["events"])),
            agent=template["agent"],
            max_attempts=template["max_attempts"],
        )
    except UNREADABLE as error:
        return replace(kept, problem=tell_problem(error))
