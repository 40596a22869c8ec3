"""Commands: the changes that front ends make to runs, tasks, schedules, workers and leases.

Each command answers with the state of what it has changed. Commands that control runs and tasks can
also be carried out in a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from holdfast.engine.engine import Engine
from holdfast.engine.runs import Runs
from holdfast.engine.tasks import Tasks
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.effect import read_awaited
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.run import CreateResult, NewRun
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.model.text import clean_name
from holdfast.model.verdict import Comments
from holdfast.model.workflow.graph import MAX_CALL_DEPTH, Workflow, read_workflow
from holdfast.model.workflow.run_input import fill_input, make_paths_absolute
from holdfast.model.workflow.step import all_steps
from holdfast.service.commands.request_errors import rename_fields, require_accepted
from holdfast.service.queries.child_runs import read_runs_below
from holdfast.service.queries.queries import Queries
from holdfast.service.queries.views import View, view_lease, view_schedule
from holdfast.store.database import Row, Transaction

Change = Callable[..., TransitionResult]
FindVersion = Callable[[str, str | None], Row | None]
# The holds that `resume` lifts from a task, one at a time, in this order.
HOLDS_TO_RESUME = ("paused", "limit", "version")
MAX_AWAITED_SIGNALS = 100
# What a task that is a run of a workflow has not: the steps of the run have it.
_NOT_OF_CALLS = ("tags", "timeout", "scheduled_for")


class RunAndTaskFacades(Protocol):
    """The runs and tasks that commands act on: of an engine, or of a caller's transaction."""

    @property
    def runs(self) -> Runs: ...

    @property
    def tasks(self) -> Tasks: ...


class ControlCommands:
    """Commands that control runs and tasks for one actor; a refusal raises `Refused`."""

    def __init__(self, facades: RunAndTaskFacades, queries: Queries, actor: str = "user") -> None:
        self._facades = facades
        self._queries = queries
        self._actor = actor

    def cancel(self, identifier: str) -> View:
        return self._change_either(
            identifier, self._facades.runs.cancel, self._facades.tasks.cancel
        )

    def retry(self, identifier: str, *, step: str | None = None) -> View:
        """Retry the failed tasks; with a step, retry that step of a run and all that needs it."""
        if step is None:
            return self._change_either(
                identifier, self._facades.runs.retry, self._facades.tasks.retry
            )
        return self._change(identifier, self._facades.runs.retry, step=step)

    def reopen(self, task_id: str) -> View:
        """Do an ended task again, and every task that needs it."""
        return self._change(task_id, self._facades.tasks.reopen)

    def follow_up(self, task_id: str, message: object = None, comments: Comments = ()) -> View:
        """Have the agent of an ended task go on with a message, and dependent tasks done again."""
        return self._change(task_id, self._facades.tasks.follow_up, message, comments=comments)

    def pause(self, identifier: str) -> View:
        return self._change_either(identifier, self._facades.runs.pause, self._facades.tasks.hold)

    def resume(
        self, identifier: str, *, add_usd: float | None = None, add_attempts: int | None = None
    ) -> View:
        """Resume a paused run or task; added dollars and attempts raise the budget of a run."""
        if add_usd is None and add_attempts is None:
            return self._change_either(identifier, self._facades.runs.resume, self._lift_hold)
        if identifier.startswith("t_"):
            raise InvalidInput("run", f"{identifier} is a task, and only runs have a budget")
        resume = self._facades.runs.resume
        return self._change(identifier, resume, add_usd=add_usd, add_attempts=add_attempts)

    def approve(self, task_id: str, note: object = None) -> View:
        return self._change(task_id, self._facades.tasks.approve, note)

    def reject(self, task_id: str, reason: object = None, comments: Comments = ()) -> View:
        return self._change(task_id, self._facades.tasks.reject, reason, comments=comments)

    def answer(self, task_id: str, answer: object) -> View:
        return self._change(task_id, self._facades.tasks.answer, answer)

    def enqueue(self, task_id: str) -> View:
        return self._change(task_id, self._facades.tasks.enqueue)

    def run_now(self, task_id: str) -> View:
        return self._change(task_id, self._facades.tasks.run_now)

    def reset(self, task_id: str) -> View:
        return self._change(task_id, self._facades.tasks.reset)

    def block(self, task_id: str, needs: Sequence[str]) -> View:
        """Have a task that has not begun wait for other tasks as well."""
        return self._change(task_id, self._facades.tasks.block, _require_needs(needs))

    def unblock(self, task_id: str, needs: Sequence[str] | None = None) -> View:
        """Remove links made by hand: to some tasks that a task needs, or all of them.

        The needs from its workflow or plan stay: an approval may be among them.
        """
        chosen = None if needs is None else _require_needs(needs)
        return self._change(task_id, self._facades.tasks.unblock, chosen, by_hand=True)

    def delete(self, task_id: str) -> View:
        answer = require_accepted(task_id, self._facades.tasks.delete(task_id, actor=self._actor))
        return {"ok": True, "repeated": answer.repeated, "id": task_id}

    def start_planning(self, task_id: str) -> View:
        return self._change(task_id, self._facades.tasks.start_planning)

    def finalize_plan(self, task_id: str, graph: Mapping[str, Sequence[str]] | None) -> View:
        return self._change(task_id, self._facades.tasks.finalize_plan, graph=graph)

    def reorder_plan(self, task_id: str, order: Sequence[str]) -> View:
        return self._change(task_id, self._facades.tasks.reorder_plan, order)

    def _lift_hold(self, task_id: str, *, actor: str) -> TransitionResult:
        """Lift one hold of a task: a pause, else a usage limit or a missing function."""
        held = self._queries.task(task_id)["holds"]
        reason = next((each for each in HOLDS_TO_RESUME if each in held), "paused")
        return self._facades.tasks.unhold(task_id, reason, actor=actor)

    def _change_either(self, identifier: str, of_run: Change, of_task: Change) -> View:
        return self._change(identifier, of_run if identifier.startswith("r_") else of_task)

    def _change(self, identifier: str, change: Change, *args: Any, **options: Any) -> View:
        answer = require_accepted(
            identifier, change(identifier, *args, actor=self._actor, **options)
        )
        kind = "run" if identifier.startswith("r_") else "task"
        now = self._queries.run(identifier) if kind == "run" else self._queries.task(identifier)
        # What a repetition would say is why nothing changed, and that is no news.
        told = {"detail": answer.detail} if answer.detail and not answer.repeated else {}
        return {"ok": True, "repeated": answer.repeated, **told, kind: now}


def _require_needs(needs: Sequence[str]) -> Sequence[str]:
    if not needs:
        raise InvalidInput("needs", "must name at least one task")
    return needs


def find_awaited_signals(tx: Transaction, target: str, name: str) -> list[View]:
    """The signals that a run or task waits for now, and those that the runs below it wait for.

    A signal that nothing waits for may be misspelt. Of very many signals only some are returned,
    the one of that name among them.
    """
    below = read_runs_below(tx, [target]).get(target, []) if target.startswith("r_") else []
    found = [
        (each, signal)
        for each in (target, *below)
        for row in tx.read("signals_awaited", target=each, name=name, count=MAX_AWAITED_SIGNALS)
        for signal in read_awaited(row["waits_for"]).signals
    ]
    return [{"target": each, "name": signal} for each, signal in dict.fromkeys(found)]


class Commands(ControlCommands):
    """Every command of one actor; a refusal raises `Refused`."""

    def __init__(self, engine: Engine, queries: Queries, actor: str = "user") -> None:
        super().__init__(engine, queries, actor)
        self._engine = engine

    def lift_limit(self, agent: str) -> View:
        """Lift the usage limit of an agent, and the holds on the tasks that waited for it."""
        view = self._engine.database.view
        number = len(view(lambda tx: tx.read("waiting_tasks", agent=agent)))
        lifted, *tasks = self._engine.tasks.lift_limit(agent, actor=self._actor)
        number = 0 if lifted.repeated else number + sum(each.ok for each in tasks)
        return {"ok": True, "repeated": lifted.repeated, "agent": agent, "tasks": number}

    def signal(
        self, target: str, name: str, payload: object = None, key: str | None = None
    ) -> View:
        """Send a signal; the answer says which signals were waited for when it came.

        A repeated signal has no such answer: by then nothing may wait any more.
        """
        signal = clean_name("name", name)
        awaited = self._engine.database.view(lambda tx: find_awaited_signals(tx, target, signal))
        sent = self._change(target, self._engine.signals.send, name, payload, key=key)
        if sent["repeated"]:
            return sent
        heard = {"target": target, "name": name} in awaited
        return {**sent, "waited_for": heard, "awaited": awaited}

    def edit(self, task_id: str, changes: dict[str, object], version: int | None = None) -> View:
        """Change a task that is idle or queued; with a version, only if it has that version."""
        edit, checked = self._engine.tasks.edit, self._check_edit(task_id, changes)
        return self._change(task_id, edit, checked, expected_version=version)

    def _check_edit(self, task_id: str, changes: dict[str, object]) -> dict[str, object]:
        """The changes of a task that is a run, checked as when it was made; others as they are."""
        task = self._queries.task(task_id)
        called = task.get("calls")
        if called is None or "run_id" in task:
            return changes
        for field in _NOT_OF_CALLS:
            if field in changes:
                raise InvalidInput(field, "is not for a task that is a run of a workflow")
        if "payload" not in changes:
            return changes
        return changes | {"payload": self._fill_call(called, changes["payload"])}

    def add_task(self, task: NewTask) -> View:
        """Add a task; the answer says whether this call created it."""
        checked = self._check_call(task)
        return self.view_created(self._engine.tasks.create(checked, actor=self._actor))

    def _check_call(self, task: NewTask) -> NewTask:
        """The task, with its input as its workflow takes it; the store has to know that."""
        if task.workflow is None:
            return task
        return replace(task, payload=self._fill_call(task.workflow, task.payload))

    def _fill_call(self, workflow: str, given: object) -> Any:  # noqa: ANN401 - JSON is any value
        with rename_fields(name="workflow"):
            run = self.prepare_run(workflow, given)
        return fill_input(run.workflow, run.input)

    def view_created(self, made: CreateResult) -> View:
        """The view of a task that was created, or was there before."""
        return {**self._read_created(made, self._queries.task), "created": made.created}

    def add_tasks(self, tasks: Sequence[NewTask]) -> View:
        """Add several tasks, all or none of them; the answer keeps their order."""
        checked = [self._check_call(each) for each in tasks]
        made = self._engine.tasks.create_many(checked, actor=self._actor)
        known = {each["id"]: each for each in self._queries.tasks_by_id([each.id for each in made])}
        told = [known.get(each.id) or self._read_created(each, self._queries.task) for each in made]
        pairs = zip(told, made, strict=True)
        return {"items": [{**task, "created": each.created} for task, each in pairs]}

    def start_by_name(
        self, name: str, given: object, *, version: str | None = None, **more: Any
    ) -> View:
        """Start a workflow that the store knows by its name; paths start from this folder."""
        return self.start(self.prepare_run(name, given, version=version, **more))

    def prepare_run(
        self, name: str, given: object, *, version: str | None = None, **more: Any
    ) -> NewRun:
        workflow = self.find_workflow(name, version)
        placed = make_paths_absolute(workflow, given, str(Path.cwd()))
        return NewRun(workflow=workflow, input=placed, **more)

    def start(self, run: NewRun) -> View:
        """Start a run; the answer says whether this call started it.

        A run that the key has started before keeps its version of the workflow; where another one
        is asked for, the answer has that too.
        """
        made = self._engine.runs.start(run, actor=self._actor)
        told = {**self._read_created(made, self._queries.run), "created": made.created}
        asked = run.workflow.version
        other = told.get("workflow_version", asked) != asked
        return {**told, "asked_version": asked} if other else told

    def _read_created(self, made: CreateResult, look: Callable[[str], View]) -> View:
        """The view of what was created, or was there by its key; if removed, its tombstone."""
        left = None if made.created else self._queries.tombstone(made.id)
        return left or look(made.id)

    def add_workflow(self, workflow: Workflow) -> View:
        """Keep a version of a workflow, so that it can be started by its name."""
        added = self._engine.workflows.add(workflow)
        return {"name": workflow.name, "version": workflow.version, "created": added}

    def add_schedule(self, schedule: NewSchedule) -> View:
        """Keep a schedule; another of its name is replaced, and the same again changes nothing."""
        return view_schedule(self._engine.schedules.put(schedule))

    def control_schedule(self, name: str, verb: str) -> View:
        """Pause, resume or remove a schedule."""
        told = getattr(self._engine.schedules, verb)(name)
        if told.reason is Refusal.NOT_FOUND:
            known = [each["name"] for each in self._queries.schedules(limit=1_000)["items"]]
            raise NotFound(
                name, "schedule", _suggest_name(name, known) if known else "there is none"
            )
        answer = require_accepted(name, told)
        return {"ok": True, "repeated": answer.repeated, "name": name}

    def control_worker(self, name: str, verb: str) -> View:
        """Have a worker finish and leave, or give back what it runs and leave."""
        told = getattr(self._engine.workers, verb)(name)
        if told.reason is Refusal.NOT_FOUND:
            known = [each["name"] for each in self._queries.workers()["items"]]
            hint = _suggest_name(name, known) if known else "no worker lives"
            raise NotFound(name, "worker", hint)
        answer = require_accepted(name, told)
        return {"ok": True, "repeated": answer.repeated, "name": name}

    def acquire_lease(self, key: str, owner: str, ttl: float) -> View | None:
        """Acquire a named lease; None when somebody else holds it."""
        lease = self._engine.leases.acquire(key, owner, ttl=ttl)
        return None if lease is None else view_lease(lease)

    def renew_lease(self, key: str, token: str, ttl: float) -> View:
        require_accepted(key, self._engine.leases.renew(key, token, ttl=ttl))
        return {"ok": True, "key": key}

    def release_lease(self, key: str, token: str) -> View:
        require_accepted(key, self._engine.leases.release(key, token))
        return {"ok": True, "key": key}

    def find_workflow(self, name: str, version: str | None = None) -> Workflow:
        """A workflow that the store knows by its name: the newest version, or the one asked for."""
        chosen_name = clean_name("workflow", name)
        rows = self._engine.database.view(
            lambda tx: tx.read("versions_of_workflow", name=chosen_name)
        )
        if not rows:
            known = [each["name"] for each in self._queries.workflows()["items"]]
            raise NotFound(name, "workflow", _suggest_name(name, known))
        chosen = [row for row in rows if version is None or row["version"].startswith(version)]
        if not chosen:
            there = ", ".join(row["version"] for row in rows)
            raise NotFound(f"{name}@{version}", "version of a workflow", f"there are {there}")
        if version is not None and len(chosen) > 1:
            there = ", ".join(row["version"] for row in chosen)
            raise InvalidInput("version", f"{version} is the beginning of several: {there}")
        return self.attach_called(read_workflow(chosen[0]["definition"]))

    def attach_called(self, workflow: Workflow) -> Workflow:
        """A workflow with the workflows that its steps call, as far as this store knows them."""

        def look(tx: Transaction, name: str, version: str | None) -> Row | None:
            rows = tx.read("versions_of_workflow", name=name)
            return next((row for row in rows if version in {None, row["version"]}), None)

        return self._engine.database.view(
            lambda tx: _attach_called_workflows(workflow, partial(look, tx))
        )

    def find_task_for_person(self, identifier: str) -> str:
        """The task that waits for a person: the task itself, or the only such task of a run."""
        if identifier.startswith("t_"):
            return identifier
        waiting = self._queries.tasks_for_people(run=identifier)
        if len(waiting) == 1:
            return str(waiting[0]["id"])
        if not waiting:
            reason = f"nothing of {identifier} waits for a person; `holdfast why {identifier}`"
            raise InvalidInput("task", f"{reason} tells what it waits for")
        names = ", ".join(f"{each['id']} ({each['address']})" for each in waiting)
        raise InvalidInput("task", f"several tasks of {identifier} wait: {names}; name one")


def _attach_called_workflows(
    workflow: Workflow, find_version: FindVersion, callers: tuple[str, ...] = ()
) -> Workflow:
    """A workflow with the workflows that its steps call, as far as the store knows them."""
    here = (*callers, workflow.name)
    found = {flow.name: flow for flow in workflow.called}
    for step in all_steps(workflow.steps):
        name = step.calls
        if name is None or name in found or name in here or len(here) > MAX_CALL_DEPTH:
            continue
        row = find_version(name, None if step.work is None else step.work.version)
        if row is not None:
            found[name] = read_workflow(row["definition"])
    called = tuple(_attach_called_workflows(flow, find_version, here) for flow in found.values())
    return replace(workflow, called=called) if called else workflow


def _suggest_name(name: str, known: list[str]) -> str:
    if not known:
        return "no workflow was ever started or scheduled in this store"
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"known are {', '.join(known)}{hint}"
