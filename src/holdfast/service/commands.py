"""What front ends have done: each a command on a run or a task, answered with how it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.result import Refusal
from holdfast.model.run import Created, NewRun
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.model.text import clean_name
from holdfast.model.workflow.graph import Workflow, read_workflow
from holdfast.model.workflow.run_input import place_paths
from holdfast.service.awaiting import signals_awaited
from holdfast.service.called import with_called
from holdfast.service.expecting import await_version
from holdfast.service.queries import Queries
from holdfast.service.refused import accepted
from holdfast.service.steering import Steering
from holdfast.service.views import View, view_lease, view_schedule
from holdfast.store.database import Row, Transaction


class Commands(Steering):
    """What one actor has done; what is refused raises `Refused`."""

    def __init__(self, engine: Engine, queries: Queries, actor: str = "user") -> None:
        super().__init__(engine, queries, actor)
        self._engine = engine

    def lift_limit(self, agent: str) -> View:
        """Let an agent go on that has reached its usage limit, with all that waited for it."""
        view = self._engine.database.view
        number = len(view(lambda tx: tx.read("waiting_tasks", agent=agent)))
        lifted, *tasks = self._engine.tasks.lift_limit(agent, actor=self._actor)
        number = 0 if lifted.repeated else number + sum(each.ok for each in tasks)
        return {"ok": True, "repeated": lifted.repeated, "agent": agent, "tasks": number}

    def signal(
        self, target: str, name: str, payload: object = None, key: str | None = None
    ) -> View:
        """Send what is waited for, now or later; what was waited for when it came is told.

        Whoever sends under a key again may well come when nobody waits any more.
        """
        signal = clean_name("name", name)
        awaited = self._engine.database.view(lambda tx: signals_awaited(tx, target, signal))
        sent = self._changed(target, self._engine.signals.send, name, payload, key=key)
        if sent["repeated"]:
            return sent
        heard = {"target": target, "name": name} in awaited
        return {**sent, "waited_for": heard, "awaited": awaited}

    def edit(self, task_id: str, changes: dict[str, object], version: int | None = None) -> View:
        """Change a task that is idle or queued; with a version, only while it is at that."""
        if version is not None:
            await_version(self._engine, task_id, version)
        edit = self._engine.tasks.edit
        return self._changed(task_id, edit, changes, expected_version=version)

    def add_task(self, task: NewTask) -> View:
        """The task, and whether this made it."""
        return self.tell(self._engine.tasks.create(task, actor=self._actor))

    def tell(self, made: Created) -> View:
        """How a task stands that was made, or was there."""
        return {**self._made(made, self._queries.task), "created": made.created}

    def add_tasks(self, tasks: Sequence[NewTask]) -> View:
        """Several tasks, all or none of them, in the order they were asked for."""
        made = self._engine.tasks.create_many(tasks, actor=self._actor)
        known = {each["id"]: each for each in self._queries.some_tasks([each.id for each in made])}
        told = [known.get(each.id) or self._made(each, self._queries.task) for each in made]
        pairs = zip(told, made, strict=True)
        return {"items": [{**task, "created": each.created} for task, each in pairs]}

    def start_by_name(
        self, name: str, given: object, *, version: str | None = None, **more: Any
    ) -> View:
        """Start what the store knows by a name; paths are from this folder."""
        return self.start(self.run_by_name(name, given, version=version, **more))

    def run_by_name(
        self, name: str, given: object, *, version: str | None = None, **more: Any
    ) -> NewRun:
        workflow = self.known_workflow(name, version)
        placed = place_paths(workflow, given, str(Path.cwd()))
        return NewRun(workflow=workflow, input=placed, **more)

    def start(self, run: NewRun) -> View:
        """The run, and whether this started it."""
        made = self._engine.runs.start(run, actor=self._actor)
        return {**self._made(made, self._queries.run), "created": made.created}

    def _made(self, made: Created, look: Callable[[str], View]) -> View:
        """What was made, or was there by its key; of what was removed since, what is left."""
        left = None if made.created else self._queries.tombstone(made.id)
        return left or look(made.id)

    def add_workflow(self, workflow: Workflow) -> View:
        """Keep a version of a workflow, so that it can be started by its name."""
        added = self._engine.workflows.add(workflow)
        return {"name": workflow.name, "version": workflow.version, "created": added}

    def add_schedule(self, schedule: NewSchedule) -> View:
        """Keep a schedule; another of its name is replaced, and the same again changes nothing."""
        return view_schedule(self._engine.schedules.put(schedule))

    def steer_schedule(self, name: str, verb: str) -> View:
        """Pause, resume or remove a schedule."""
        told = getattr(self._engine.schedules, verb)(name)
        if told.reason is Refusal.NOT_FOUND:
            known = [each["name"] for each in self._queries.schedules(limit=1_000)["items"]]
            raise NotFound(name, "schedule", _suggest(name, known) if known else "there is none")
        answer = accepted(name, told)
        return {"ok": True, "repeated": answer.repeated, "name": name}

    def steer_worker(self, name: str, verb: str) -> View:
        """Have a worker finish and leave, or give back what it runs and leave."""
        told = getattr(self._engine.workers, verb)(name)
        if told.reason is Refusal.NOT_FOUND:
            known = [each["name"] for each in self._queries.workers()["items"]]
            hint = _suggest(name, known) if known else "no worker lives"
            raise NotFound(name, "worker", hint)
        answer = accepted(name, told)
        return {"ok": True, "repeated": answer.repeated, "name": name}

    def acquire_lease(self, key: str, owner: str, ttl: float) -> View | None:
        """A named lease, or nothing when somebody holds it."""
        lease = self._engine.leases.acquire(key, owner, ttl=ttl)
        return None if lease is None else view_lease(lease)

    def renew_lease(self, key: str, token: str, ttl: float) -> View:
        accepted(key, self._engine.leases.renew(key, token, ttl=ttl))
        return {"ok": True, "key": key}

    def release_lease(self, key: str, token: str) -> View:
        accepted(key, self._engine.leases.release(key, token))
        return {"ok": True, "key": key}

    def known_workflow(self, name: str, version: str | None = None) -> Workflow:
        """A workflow that the store knows, by its name: the newest version, or the one named."""
        chosen_name = clean_name("workflow", name)
        rows = self._engine.database.view(
            lambda tx: tx.read("versions_of_workflow", name=chosen_name)
        )
        if not rows:
            known = [each["name"] for each in self._queries.workflows()["items"]]
            raise NotFound(name, "workflow", _suggest(name, known))
        chosen = [row for row in rows if version is None or row["version"].startswith(version)]
        if not chosen:
            there = ", ".join(row["version"] for row in rows)
            raise NotFound(f"{name}@{version}", "version of a workflow", f"there are {there}")
        if version is not None and len(chosen) > 1:
            there = ", ".join(row["version"] for row in chosen)
            raise InvalidInput("version", f"{version} is the beginning of several: {there}")
        return self.with_called(read_workflow(chosen[0]["definition"]))

    def with_called(self, workflow: Workflow) -> Workflow:
        """A workflow with those that its steps call, as far as this store knows them."""

        def look(tx: Transaction, name: str, version: str | None) -> Row | None:
            rows = tx.read("versions_of_workflow", name=name)
            return next((row for row in rows if version in {None, row["version"]}), None)

        return self._engine.database.view(lambda tx: with_called(workflow, partial(look, tx)))

    def asked_of_person(self, identifier: str) -> str:
        """The task that waits for somebody's word: itself, or the only one of a run."""
        if identifier.startswith("t_"):
            return identifier
        waiting = self._queries.for_people(run=identifier)
        if len(waiting) == 1:
            return str(waiting[0]["id"])
        if not waiting:
            reason = f"nothing of {identifier} waits for a person; `holdfast why {identifier}`"
            raise InvalidInput("task", f"{reason} tells what it waits for")
        names = ", ".join(f"{each['id']} ({each['address']})" for each in waiting)
        raise InvalidInput("task", f"several tasks of {identifier} wait: {names}; name one")


def _suggest(name: str, known: list[str]) -> str:
    if not known:
        return "no workflow was ever started or scheduled in this store"
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"known are {', '.join(known)}{hint}"
