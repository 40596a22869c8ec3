"""Explanation of a task: the clauses of its claim, one by one, in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property

from holdfast.clock import MICROSECONDS
from holdfast.engine.explain.explanation import (
    Clause,
    Explanation,
    TakenBy,
    describe_no_worker,
    describe_stored_error,
    describe_taker,
    find_taker,
)
from holdfast.engine.explain.why_missing_value import retry_for_value, retry_for_value_of_rows
from holdfast.engine.explain.why_slot import explain_place_in_key_queue, explain_slot
from holdfast.engine.explain.why_status import explain_status, is_open_plan
from holdfast.engine.explain.why_workers import WorkerExplainer
from holdfast.engine.input import validation
from holdfast.engine.read.spending import explain_budget_hold
from holdfast.engine.read.step_texts import render_current_titles
from holdfast.engine.read.task_state import name_tasks, read_tasks_with_state
from holdfast.engine.state import child_run_refusals
from holdfast.errors import NotFound
from holdfast.ids import AnyId
from holdfast.model.advice import ANSWER, PAYLOAD, Action, AdviceText, advice_of, advise, join_texts
from holdfast.model.effect import read_awaited
from holdfast.model.event import read_event_data, read_outcome
from holdfast.model.moment import count_microseconds, describe_moment, to_datetime
from holdfast.model.status import Hold, RunStatus, Status, TaskKind
from holdfast.model.units import describe_duration
from holdfast.model.worker import serves_agent
from holdfast.store.database import Database, Row, Transaction

_OUTCOMES = {"released": "was given back", "lost": "was lost: its worker fell silent"}


def explain_task(
    database: Database,
    task_id: AnyId,
    *,
    agents: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
) -> Explanation:
    """Explain a task as a worker with these agents and tags would find it, or any worker."""
    identifier = validation.task_id(task_id)
    serves = None if agents is None else validation.agents(agents)
    offered = None if tags is None else validation.tags(tags)

    def read(tx: Transaction) -> Explanation:
        rows = tx.read("task_by_id", task_id=identifier)
        if not rows:
            raise NotFound(identifier)
        return TaskExplainer(WorkerExplainer(tx), rows[0], serves, offered).explain()

    return database.view(read)


class TaskExplainer:
    def __init__(
        self,
        workers: WorkerExplainer,
        row: Row,
        agents: tuple[str, ...] | None,
        tags: str | None,
    ) -> None:
        self._tx = tx = workers.tx
        self._workers = workers
        self._row = row
        (self._task,) = read_tasks_with_state(tx, [row])
        self._name = name_tasks(tx, [self._task.id])[self._task.id]
        self._agents = agents
        self._tags = row["tags"] if tags is None else tags
        self._now: int = tx.read("now")[0]["now"]

    def explain(self) -> Explanation:
        agent = self._task.agent
        if self._agents is not None and not serves_agent(self._agents, agent):
            agent = self._agents[0]
        found = self._tx.read(
            "claim_tasks_clauses", task_id=self._task.id, agent=agent, tags=self._tags
        )[0]
        clauses = tuple(self._build_clause(name, ok=bool(ok)) for name, ok in found.items())
        broken = [clause.name for clause in clauses if not clause.ok]
        last = self._last_outcome()
        return Explanation(
            task=self._task,
            name=self._name,
            state=self._describe_state(broken, last),
            clauses=clauses,
            # A lost task needs a worker or server: a live one would have taken it back already.
            fix="" if broken and not self._is_lost else self._describe_taker(),
            worker=self._workers.explain_workers(self._task, self._taken_by, ready=not broken),
            last_outcome=last,
            taken_by=self._taken_by,
        )

    def _build_clause(self, name: str, *, ok: bool) -> Clause:
        # The next claim marks a task due whose time has come, so the time is not in the way.
        if name == "due" and not ok and (self._has_come() or self._awaits_evaluation()):
            ok = True
        if ok:
            return Clause(name=name, ok=True)
        detail, fix = self._explain_clause(name)
        if self._task.terminal and name != "status":
            fix = self._keep_resumes(fix)
        return Clause(name=name, ok=False, detail=detail, fix=fix)

    def _keep_resumes(self, fix: str) -> str:
        """Of the fixes of a task that has ended, those that it needs once it is retried."""
        task = self._task
        if task.status is Status.DONE or task.superseded:
            return ""
        if not child_run_refusals.goes_on_by_retry(self._tx, task.run_id):
            return ""
        resumes = (each for each in advice_of(fix) if each.action is Action.RESUME)
        return join_texts("; ", map(AdviceText, resumes))

    def _explain_clause(self, name: str) -> tuple[str, str]:
        words: dict[str, Callable[[], tuple[str, str]]] = {
            "status": lambda: explain_status(self._tx, self._task),
            "kind": self._explain_kind,
            "needs": self._explain_needs,
            "holds": lambda: self._explain_holds(Hold(self._row["holds"]), self._task.id),
            "run": self._explain_run,
            "due": self._explain_due,
            "agent": lambda: (f"it is for agent {self._task.agent!r}", self._describe_taker()),
            "tags": lambda: (
                f"it needs a worker with the tags {', '.join(self._task.tags)}",
                self._describe_taker(),
            ),
            "usage": self._explain_limit,
            "slot": self._explain_slot,
        }
        return words[name]()

    @property
    def _is_lost(self) -> bool:
        task = self._task
        if task.status is not Status.RUNNING or task.lease is None:
            return False
        return task.lease.expires_at <= to_datetime(self._now)

    def _describe_state(self, broken: Sequence[str], last: str | None) -> str:
        task = self._task
        if task.status is Status.RUNNING and task.lease is not None:
            left = f"for {self._describe_time_to(count_microseconds(task.lease.expires_at))} more"
            lost = "but has expired; the first worker or server that lives takes it back"
            until = f"leased by {task.lease.owner} {lost if self._is_lost else left}"
            running = f"is running: attempt {task.attempt}, {until}"
            return running + self._describe_escalation()
        if task.terminal:
            error = describe_stored_error(": ", task.error)
            return f"is {task.status}" + error + self._describe_escalation()
        if is_open_plan(task):
            return f"is {task.state}"
        state = {(): "ready", ("slot",): "waiting for a slot"}.get(tuple(broken), task.state)
        ended = None if broken else _OUTCOMES.get(last or "")
        before = "" if ended is None else f"; attempt {task.attempt} {ended}"
        stands = f"is {task.status}, not running ({state}){before}"
        return stands + self._describe_escalation()

    def _describe_escalation(self) -> str:
        task = self._task
        if task.escalated_from is None:
            return ""
        handed = f"; it was handed to {task.agent} after {task.escalated_from} had failed"
        return handed + describe_stored_error(" with ", task.feedback)

    def _last_outcome(self) -> str | None:
        task = self._task
        if not task.attempt or task.status is not Status.QUEUED:
            return None
        (row,) = self._tx.read("attempt_records", rows=[(task.id, task.attempt)])
        return read_outcome(row["type"], read_event_data(row["data"]))

    def _explain_kind(self) -> tuple[str, str]:
        task = self._task
        if task.calls is not None:
            return self._explain_call()
        if task.kind is TaskKind.GROUP:
            parts = "its items" if task.item is None and task.run_id is not None else "its children"
            return f"no worker runs it: it ends with {parts}", ""
        free = not (task.terminal or task.blocked or task.run_holds)
        asked = render_current_titles(self._tx, [self._row])[task.id]
        return f"a person settles it: {asked}", advise(Action.APPROVE, task.id) if free else ""

    def _explain_call(self) -> tuple[str, str]:
        task = self._task
        if task.waits_for is None:
            return self._explain_uncalled()
        found = self._tx.read("run_by_id", run_id=task.waits_for)
        status = found[0]["status"] if found else "gone"
        detail = f"no worker runs it: it ends with {task.calls} {task.waits_for} ({status})"
        look = advise(Action.WHY, task.waits_for)
        if status != RunStatus.RUNNING or not found[0]["holds"] & Hold.SLOT:
            return detail, look
        told, fix = explain_place_in_key_queue(self._tx, task.waits_for)
        return f"{detail}, {told}", fix or look

    def _explain_uncalled(self) -> tuple[str, str]:
        known = self._tx.read("child_runs", ids=[self._task.id])
        if not known:
            return f"no worker runs it: it will be a run of {self._task.calls}", ""
        name = f"{self._task.calls} {known[0]['id']} ({known[0]['status']})"
        return f"no worker runs it: it has called {name}, and will take that up again", ""

    def _explain_needs(self) -> tuple[str, str]:
        unmet = self._tx.read("unmet_needs", ids=[self._task.id])
        broken = [row for row in unmet if row["status"] in {"failed", "cancelled"}]
        if not broken:
            return f"waits for {self._describe_tasks(unmet)}", self._start_first(unmet)
        again = self._give_values(broken) or advise(Action.RETRY, broken[0]["id"])
        return f"waits for {self._describe_tasks(unmet)}", self._retry(again)

    def _give_values(self, broken: Sequence[Row]) -> str:
        rows = self._tx.read("tasks_by_id", ids=[row["id"] for row in broken])
        return retry_for_value_of_rows(self._tx, sorted(rows, key=lambda row: str(row["id"])))

    def _start_first(self, unmet: Sequence[Row]) -> str:
        """The call that starts the first idle task, of those that the task needs."""
        idle = [row["id"] for row in unmet if row["status"] == "idle"]
        found = (
            read_tasks_with_state(self._tx, self._tx.read("tasks_by_id", ids=idle)) if idle else []
        )
        ordered = sorted(found, key=lambda task: task.id)
        return next((fix for each in ordered if (fix := explain_status(self._tx, each)[1])), "")

    def _retry(self, retry: str) -> str:
        return child_run_refusals.fix_or_retry(self._tx, self._task.run_id, retry)

    def _describe_tasks(self, rows: Sequence[Row]) -> str:
        """Name tasks with their statuses; tasks without a run also with their ids."""
        names = name_tasks(self._tx, [row["id"] for row in rows])
        apart = self._task.run_id is None
        return ", ".join(
            f"{names[row['id']]}{' ' + row['id'] if apart else ''} ({row['status']})"
            for row in rows
        )

    def _explain_run(self) -> tuple[str, str]:
        run_id = self._task.run_id
        holds = self._task.run_holds
        if run_id is None:
            broken = self._tx.read("failed_around", task_id=self._task.id)
            retry = advise(Action.RETRY, broken[0]["id"]) if broken else ""
            return f"its plan is failing: {self._describe_tasks(broken)}", retry
        if holds & Hold.FAILING:
            broken = self._tx.read("failed_in_run", run_id=run_id)
            again = self._give_values(broken) or advise(Action.RETRY, run_id)
            fixes = [self._retry(again), *([_lift_paused(run_id)] if holds & Hold.PAUSED else [])]
            told = f"its run is failing: {self._describe_tasks(broken)}"
            return told, join_texts("; ", filter(None, fixes))
        return self._explain_holds(holds, run_id)

    def _explain_holds(self, holds: Hold, identifier: str) -> tuple[str, str]:
        names, turn = ", ".join(holds.names), ""
        if holds & Hold.SLOT and identifier != self._task.id:
            told, turn = explain_place_in_key_queue(self._tx, identifier)
            names += f", {told}"
        if holds & Hold.SCHEDULED:
            (run,) = self._tx.read("run_by_id", run_id=identifier)
            told, turn = describe_start(run["scheduled_for"], self._now), _lift_paused(identifier)
            names += f", {told}"
        if holds & Hold.LIMIT and self._row["held_until"] is not None:
            names += f", lifts in {self._describe_time_to(self._row['held_until'])}"
        if holds & Hold.VERSION:
            return self._explain_version_hold(names)
        if holds & (Hold.APPROVAL | Hold.QUESTION) and identifier == self._task.id:
            return self._explain_person_hold(holds, names)
        if self._task.kind is TaskKind.APPROVAL and identifier == self._task.id:
            # A person can settle an approval task whatever its own holds are.
            return f"hold: {names}", ""
        if holds & Hold.BUDGET and identifier != self._task.id:
            return explain_budget_hold(self._tx, identifier, names)
        if holds & Hold.LIMIT and not holds & Hold.PAUSED:
            return f"hold: {names}", self._lift_limit()
        return f"hold: {names}", _lift_paused(identifier) if holds & Hold.PAUSED else turn

    def _explain_person_hold(self, holds: Hold, names: str) -> tuple[str, str]:
        task = self._task
        details, fixes = [f"hold: {names}"], []
        if holds & Hold.APPROVAL:
            details.append(describe_stored_error("it ended with ", task.error))
            # A task that lacks a value would only fail and ask again, so the value comes first.
            again = retry_for_value(self._tx, [task])
            fixes.append(again or advise(Action.APPROVE, task.id))
        if holds & Hold.QUESTION:
            details += (
                []
                if task.question is None
                else [f"it asks {json.dumps(task.question, ensure_ascii=False)}"]
            )
            fixes.append(advise(Action.ANSWER, task.id, ANSWER))
        if holds & Hold.PAUSED:
            fixes.append(_lift_paused(task.id))
        return join_texts("; ", filter(None, details)), join_texts("; ", fixes)

    def _explain_version_hold(self, names: str) -> tuple[str, str]:
        task = self._task
        lift = advise(Action.RESUME, task.id, ("hold", "version"))
        if left := describe_no_worker(task, self._taken_by):
            return f"hold: {names}; {left}", lift
        if unfit := self._read_hold_detail():
            return f"hold: {names}; {unfit}", self._describe_taker()
        found = self._tx.read("run_by_id", run_id=task.run_id or "")
        of = f" of {found[0]['workflow']}@{found[0]['workflow_version'][:8]}" if found else ""
        detail = f"hold: {names}; the worker that claimed it has no function {task.step!r}{of}"
        if self._taken_by is TakenBy.PROGRAM:
            return f"{detail}: start one from the program that defines it", self._describe_taker()
        return detail, lift

    def _read_hold_detail(self) -> str:
        """What the worker said that put the task on hold last; empty if it said nothing."""
        rows = self._tx.read("last_hold", task_id=self._task.id)
        return next((str(read_event_data(row["data"]).get("detail", "")) for row in rows), "")

    def _has_come(self) -> bool:
        return self._task.scheduled_for is not None and self._task.scheduled_for <= to_datetime(
            self._now
        )

    def _awaits_evaluation(self) -> bool:
        """Whether the task is evaluated once nothing else stops it, and has no time of its own."""
        task = self._task
        stopped = task.blocked or task.holds or task.run_holds or task.status is not Status.QUEUED
        return bool(stopped) and task.scheduled_for is None and task.waits_for is None

    def _explain_due(self) -> tuple[str, str]:
        task = self._task
        if task.waits_for is not None:
            return self._explain_awaited(task.waits_for)
        if task.scheduled_for is None:
            return "it has all it needs, and is still to be looked at", ""
        due_at = count_microseconds(task.scheduled_for)
        left = self._describe_time_to(due_at)
        if self._sleeps_until(due_at):
            return f"it sleeps for {left} more", advise(Action.RUN_NOW, task.id)
        detail = f"its time comes in {left}"
        if self._last_outcome() == "failed" and task.error is not None:
            tries = task.retry.max_attempts - task.failures
            failed = f"; attempt {task.attempt} failed with "
            detail += describe_stored_error(failed, task.error)
            detail += f", {tries} {'attempt is' if tries == 1 else 'attempts are'} left"
        return detail, advise(Action.RUN_NOW, task.id)

    def _sleeps_until(self, moment: int) -> bool:
        asked = {"task_id": self._task.id, "value": str(moment)}
        return bool(self._tx.read("effect_valued", **asked))

    def _explain_awaited(self, awaited: str) -> tuple[str, str]:
        if self._task.calls is not None:
            return f"it waits for {awaited}", ""
        target, signals, children = read_awaited(awaited)
        parts = [f"for the signal {name!r}" for name in signals]
        parts += ["until its children have ended"] if children else []
        if self._task.scheduled_for is not None:
            due_at = count_microseconds(self._task.scheduled_for)
            parts.append(f"for its time, which comes in {self._describe_time_to(due_at)}")
        # Nothing tells whether the function wants a payload: only the function knows.
        fixes = [
            advise(Action.SIGNAL, target, ("signal", name), *payload)
            for name in signals
            for payload in ((), (PAYLOAD,))
        ]
        return f"it waits {' or '.join(parts)}", join_texts("; ", fixes)

    def _explain_limit(self) -> tuple[str, str]:
        agent = self._task.agent
        found = self._tx.read("limit_of_agent", agent=agent)
        if not found:
            return f"the usage limit of agent {agent!r} has just lifted", ""
        lifts = self._describe_time_to(found[0]["until"])
        detail = f"agent {agent!r} has reached its usage limit, as {found[0]['task_id']} told"
        return f"{detail}; it lifts in {lifts}", self._lift_limit()

    def _lift_limit(self) -> str:
        if self._tx.read("limit_of_agent", agent=self._task.agent):
            return advise(Action.LIFT_LIMIT, self._task.agent)
        return advise(Action.RESUME, self._task.id, ("hold", "limit"))

    def _explain_slot(self) -> tuple[str, str]:
        return explain_slot(self._tx, self._task.concurrency_key or "")

    @cached_property
    def _taken_by(self) -> TakenBy:
        found = find_taker(self._tx, self._row)
        # A claimant takes back no lost task; a worker or server does.
        return TakenBy.WORKER if self._is_lost and found is TakenBy.CLAIMANT else found

    def _describe_taker(self) -> str:
        return describe_taker(self._task, self._taken_by)

    def _describe_time_to(self, moment: int) -> str:
        return describe_time_to(moment, self._now)


def describe_time_to(moment: int, now: int) -> str:
    left = max(0, moment - now)
    return describe_duration(round(left / MICROSECONDS) * MICROSECONDS)


def describe_start(moment: int, now: int) -> str:
    """Say when a run starts that was scheduled for later."""
    whole = moment - moment % MICROSECONDS
    return f"starts {describe_moment(whole)}, in {describe_time_to(moment, now)}"


def _lift_paused(identifier: str) -> str:
    return advise(Action.RESUME, identifier)
