"""The worker's protocol for front ends: claims, renewals and reports of attempts, as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.engine.input import validation
from holdfast.engine.input.host_tags import add_own_host
from holdfast.engine.state.effects import EFFECTS_AT_ONCE
from holdfast.errors import InvalidInput, StoreBusy, StoreError
from holdfast.model.effect import EffectRecord, WakeCondition
from holdfast.model.result import TransitionResult
from holdfast.model.task import Assignment, Completion, Renewal
from holdfast.model.text import clean_key, clean_name, clean_text, digest
from holdfast.model.units import Moment
from holdfast.model.workflow.line import Draft
from holdfast.service.commands.request_errors import require_accepted, require_may_act
from holdfast.service.commands.task_fields import read_new_task
from holdfast.service.commands.token_scope import TokenScope
from holdfast.service.protocol.artifacts import keep_artifact
from holdfast.service.queries.command_lines import describe_message
from holdfast.service.queries.history import view_page_of_effects
from holdfast.service.queries.plain_tasks import is_plain, view_plain
from holdfast.service.queries.queries import Queries
from holdfast.service.queries.views import View, format_time, view_task, without_nulls
from holdfast.worker.files.attempt_log import append_to_log
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.remote.assignment_format import (
    INVALID_CODE,
    UNAVAILABLE_CODE,
    Prefetch,
    pack_assignment,
)
from holdfast.worker.remote.line_format import pack_host_line, pack_line

# A call that renews leases waits a third of the lease for its first reply, within these bounds.
MIN_REPLY_WAIT, MAX_REPLY_WAIT = 1.0, 10.0
# After the first reply, the call waits so long for renewals whose rows others have locked.
LOCKED_ROW_WAIT = 1.0
RenewalOutcome = TransitionResult | InvalidInput | StoreError
_WAIT_NOTE = re.compile(r"wait ([0-9]{1,9})")
Note = tuple[str, object]


def view_assignment(assignment: Assignment) -> View:
    """A claimed task, with its attempt and token; its payload is the whole input of its step."""
    row = assignment.fields()
    task = view_plain(row) if is_plain(row) else view_task(assignment.task)
    for name, value in (
        ("payload", assignment.payload_with_context),
        ("workflow", assignment.workflow),
    ):
        if value is not None:
            task[name] = value
    return {
        "task": task,
        "attempt": assignment.attempt,
        "token": assignment.token,
        "lease_expires_at": format_time(assignment.expires_at),
    }


def renew_leases(engine: Engine, renewals: Sequence[Renewal], lease: float | None) -> list[View]:
    """Renew leases, each with an outcome of its own; an error that all of them share is raised."""
    replies = engine.work.renew_each(renewals, lease=lease)
    _wait_for_replies(replies, engine.settings.lease if lease is None else lease)
    outcomes = [_read_outcome(each) for each in replies]
    errors = [each for each in outcomes if not isinstance(each, TransitionResult)]
    if len(errors) == len(outcomes) and len({_error_code(each) for each in errors}) == 1:
        raise errors[0]
    return [_view_outcome(each, outcome) for each, outcome in zip(renewals, outcomes, strict=True)]


def _wait_for_replies(replies: Sequence[Future[TransitionResult]], lease: float) -> None:
    pending = [each for each in replies if not each.done()]
    wait(pending, min(MAX_REPLY_WAIT, max(MIN_REPLY_WAIT, lease / 3)), FIRST_COMPLETED)
    wait(pending, LOCKED_ROW_WAIT)


def _read_outcome(reply: Future[TransitionResult]) -> RenewalOutcome:
    if not reply.done():
        return StoreBusy("another transaction holds a row that this needs")
    error = reply.exception()
    return error if isinstance(error, InvalidInput | StoreError) else reply.result()


def _error_code(error: InvalidInput | StoreError) -> str:
    return INVALID_CODE if isinstance(error, InvalidInput) else UNAVAILABLE_CODE


def _view_outcome(renewal: Renewal, outcome: RenewalOutcome) -> View:
    if isinstance(outcome, TransitionResult):
        return without_nulls(task_id=renewal.task_id, ok=outcome.ok, reason=outcome.reason)
    known = isinstance(outcome, InvalidInput)
    detail = describe_message(outcome) if known else "it is not written yet; ask again"
    return {
        "task_id": renewal.task_id,
        "ok": False,
        "reason": _error_code(outcome),
        "detail": detail,
    }


def build_wait_notes(attempt: int, wait: WakeCondition) -> list[tuple[str, object]]:
    """The notes that an attempt leaves when it is given back until a signal comes."""
    return [(f"wait {attempt}", {"wait_for": signal}) for signal in wait.signals]


def take_awaited_signal(engine: Engine, task_id: str, token: str) -> dict[str, Any]:
    """Take the signal that a task waited for last, if it came; returns every signal taken, by name.

    This is for workers that are no functions: what an attempt has taken is kept as an effect.
    """
    known = engine.work.effects(task_id)
    waits = _read_wait_notes(known)
    if waits and (last := _name_of_taken_signal(max(waits))) not in known:
        target = engine.tasks.get(task_id).run_id or task_id
        taken = engine.work.take_signal(task_id, token, target, waits[max(waits)], name=last)
        if taken.found:
            known[last] = taken.value
    heard = {each: known.get(_name_of_taken_signal(each)) for each in sorted(waits)}
    # A worker may have recorded any value under these names.
    return {
        waits[each]: said["signal"]
        for each, said in heard.items()
        if isinstance(said, dict) and "signal" in said
    }


def _name_of_taken_signal(attempt: int) -> str:
    return f"wait {attempt} heard"


def _read_wait_notes(known: dict[str, Any]) -> dict[int, str]:
    """The signal that each attempt was given back for, by the number of the attempt."""
    found = {name: _WAIT_NOTE.fullmatch(name) for name in known}
    noted = {int(each[1]): known[name] for name, each in found.items() if each}
    return {
        attempt: said["wait_for"]
        for attempt, said in noted.items()
        if isinstance(said, dict) and isinstance(said.get("wait_for"), str)
    }


@dataclass(frozen=True, kw_only=True)
class ClaimTerms:
    """The terms of a claim: the worker, its agents and tags, the lease, and its process and token.

    `agents` is None where the worker leaves its agents open.
    """

    worker: str
    agents: Sequence[str] | None = None
    tags: Sequence[str] = ()
    # The agents of which it takes tasks that name neither function nor program; None for all.
    equipped: Sequence[str] | None = None
    lease: float = 30.0
    # Another text with each start of the worker.
    process: str | None = None
    # The name of the token that the worker shows to a server.
    token: str | None = None

    def __post_init__(self) -> None:
        clean_name("worker", self.worker)
        validation.tags(self.tags)
        if self.process is not None:
            clean_text("process", self.process)
        if self.agents is not None:
            validation.agents(self.agents)
        validation.names("equipped", self.equipped or ())

    @property
    def served_agents(self) -> Sequence[str]:
        """The agents whose tasks the worker takes."""
        return ["default"] if self.agents is None else self.agents

    @property
    def equipped_agents(self) -> Sequence[str]:
        return self.served_agents if self.equipped is None else self.equipped

    def offer_own_host(self) -> ClaimTerms:
        """The terms with the tag of this machine too, for whoever works in its folders."""
        return replace(self, tags=add_own_host(self.tags))

    @property
    def origin(self) -> str | None:
        """The text by which the store knows the process; no other token can produce it."""
        return self.process if self.token is None else json.dumps([self.token, self.process])


class Protocol:
    """The worker's protocol. A report carries its attempt's token; a refusal raises `Refused`.

    Where the caller's token is for some agents alone, a task of another agent raises `Forbidden`.
    """

    def __init__(
        self, engine: Engine, queries: Queries, state: StateDirectory, token_scope: TokenScope
    ) -> None:
        self._engine = engine
        self._token_scope = token_scope
        self._queries = queries
        self._state = state

    def claim(self, terms: ClaimTerms, *, most: int = 1, task_id: str | None = None) -> View:
        """Lease the first ready tasks, or one named task; open agents mean its own agent."""
        assignments = self.claim_assignments(terms, most=most, task_id=task_id)
        return {"assignments": [view_assignment(each) for each in assignments]}

    def claim_assignments(
        self,
        terms: ClaimTerms,
        *,
        most: int = 1,
        task_id: str | None = None,
        request: str | None = None,
    ) -> list[Assignment]:
        """The same as `claim`, with the key of the request if there is one, and not yet as JSON."""
        # Perhaps no other process is there to take back the tasks of a dead worker.
        self._engine.work.recover()
        if task_id is not None:
            return self.claim_by_id(terms, task_id, request)
        return self._engine.work.claim(
            terms.worker,
            agents=terms.served_agents,
            tags=terms.tags,
            lease=terms.lease,
            count=most,
            request=request,
        )

    def claim_by_id(
        self, terms: ClaimTerms, task_id: str, request: str | None = None
    ) -> list[Assignment]:
        self._token_scope.check_tasks([task_id])
        return self._engine.work.claim_by_id(
            task_id,
            terms.worker,
            agents=terms.agents or [self._engine.tasks.get(task_id).agent],
            tags=terms.tags,
            lease=terms.lease,
            request=request,
        )

    def release_unheard(self, assignments: list[Assignment]) -> None:
        """Give tasks back whose caller will get no answer, without waiting for the write."""
        self._engine.work.give_back(assignments)

    def renew(self, renewal: Renewal, lease: float | None = None) -> View:
        self._token_scope.check_tasks([renewal.task_id])
        (answer,) = self._engine.work.renew([renewal], lease=lease)
        return self.view_report(renewal.task_id, answer)

    def renew_many(self, renewals: Sequence[Renewal], lease: float | None = None) -> View:
        """Renew several leases; the answer has an outcome for each."""
        self._token_scope.check_tasks([each.task_id for each in renewals])
        return {"leases": renew_leases(self._engine, renewals, lease)}

    def read_attempts(self, leases: Sequence[tuple[str, str]]) -> list[tuple[str, int]]:
        """The attempts of some tasks and tokens; that of a wrong token is none, and is over."""
        self._token_scope.check_tasks([task_id for task_id, _ in leases])
        held = [self._engine.work.reports.read_token(*each) for each in leases]
        return [(each["task_id"], each["fence"]) for each in held]

    def complete(self, task_id: str, token: str, output: object, usage: object = None) -> View:
        self._token_scope.check_tasks([task_id])
        answer = self._engine.work.complete(task_id, token, output, usage=usage)
        return self.view_report(task_id, answer)

    def complete_many(self, results: Sequence[Completion]) -> View:
        """Report several results together; the answer has an outcome for each."""
        self._token_scope.check_tasks([each.task_id for each in results])
        answers = self._engine.work.complete_many(results)
        told = [
            without_nulls(
                task_id=each.task_id,
                ok=answer.ok,
                repeated=answer.repeated,
                reason=answer.reason,
                detail=answer.detail or None,
            )
            for each, answer in zip(results, answers, strict=True)
        ]
        return {"results": told}

    def fail(  # noqa: PLR0913 - what failed, and what it left
        self,
        task_id: str,
        token: str,
        error: object,
        *,
        retryable: bool = True,
        usage: object = None,
        left: Draft | None = None,
        anew: bool = False,
    ) -> View:
        self._token_scope.check_tasks([task_id])
        answer = self._engine.work.fail(
            task_id, token, error, retryable=retryable, usage=usage, left=left, anew=anew
        )
        return self.view_report(task_id, answer)

    def reach_limit(
        self,
        task_id: str,
        token: str,
        until: Moment,
        usage: object = None,
        draft: Draft | None = None,
    ) -> View:
        """Give back a task that a usage limit stopped, and hold the agent's other tasks."""
        self._token_scope.check_tasks([task_id])
        answer = self._engine.work.reach_limit(task_id, token, until, usage=usage, draft=draft)
        return self.view_report(task_id, answer)

    def release(
        self,
        task_id: str,
        token: str,
        until: Moment | None = None,
        usage: object = None,
        draft: Draft | None = None,
    ) -> View:
        self._token_scope.check_tasks([task_id])
        answer = self._engine.work.release(task_id, token, until=until, usage=usage, draft=draft)
        return self.view_report(task_id, answer)

    def open_line(
        self, task_id: str, token: str, base: str | None, repository: str | None, host: str | None
    ) -> View:
        """The line that an attempt works on, once its run has one."""
        self._token_scope.check_tasks([task_id])
        opened = self._engine.work.open_line(task_id, token, base, repository, host)
        require_accepted(task_id, opened.answer)
        line = opened.line
        return {"ok": True} | without_nulls(line=None if line is None else pack_line(line))

    def keep_aside(self, task_id: str, token: str, attempt: int, left: Draft) -> View:
        """Record what a former attempt of a task left."""
        self._token_scope.check_tasks([task_id])
        answer = self._engine.work.keep_aside(task_id, token, attempt, left.base, left.sha)
        return self.view_report(task_id, answer)

    def lines_of_host(self, host: str) -> View:
        """The lines of runs in repositories of a host; refused to a token of some agents alone.

        An answer without some lines would say that their runs are over.
        """
        self._token_scope.check_all_agents()
        lines = self._engine.work.lines_of_host(host)
        return {"items": [pack_host_line(each) for each in lines]}

    def wait_for(
        self,
        task_id: str,
        token: str,
        wait: WakeCondition,
        notes: Sequence[Note] = (),
        draft: Draft | None = None,
    ) -> View:
        """Give a task back until a signal comes to its run, or to itself where it has no run."""
        self._token_scope.check_tasks([task_id])
        task = self._engine.tasks.get(task_id)
        whole = replace(wait, target=task.run_id or task_id)
        if self._engine.work.check_write(task_id, token).ok:
            # The signal that woke the attempt is taken here, even if the attempt has not read it.
            take_awaited_signal(self._engine, task_id, token)
        said = [*build_wait_notes(task.attempt, wait), *notes]
        return self.suspend(task_id, token, whole, said, draft)

    def ask(
        self,
        task_id: str,
        token: str,
        question: object,
        notes: Sequence[Note] = (),
        draft: Draft | None = None,
    ) -> View:
        self._token_scope.check_tasks([task_id])
        answer = self._engine.work.ask(task_id, token, question, notes=notes, draft=draft)
        return self.view_report(task_id, answer)

    def suspend(
        self,
        task_id: str,
        token: str,
        wait: WakeCondition,
        notes: Sequence[Note] = (),
        draft: Draft | None = None,
    ) -> View:
        """Give a task back until a wait is over, and record notes with it."""
        self._token_scope.check_tasks([task_id])
        answer = self._engine.work.suspend(task_id, token, wait, notes=notes, draft=draft)
        return self.view_report(task_id, answer)

    def note_stop(self, task_id: str, token: str, *, ended: int, left: int) -> View:
        """Note that no process of an attempt runs any more, whatever the outcome of the attempt."""
        self._token_scope.check_tasks([task_id])
        told = self._engine.workers.note_stop(task_id, token, ended=ended, left=left)
        return {"ok": True, "repeated": require_accepted(task_id, told).repeated}

    def view_whole_assignments(self, assignments: Sequence[Assignment]) -> list[View]:
        """Assignments with everything that the executors of a remote worker need."""
        return [
            view_assignment(each) | {"whole": pack_assignment(each, self._prefetch(each))}
            for each in assignments
        ]

    def _prefetch(self, assignment: Assignment) -> Prefetch:
        work = self._engine.work
        workflow, version = assignment.workflow, assignment.workflow_version
        inside = assignment.item_number is not None
        return Prefetch(
            # There may be very many effects: a worker that needs them asks for them in pages.
            effects={},
            needed=work.needed_around(assignment.task_id) if inside else {},
            secrets=work.secrets_of(workflow, version) if workflow and version else frozenset(),
            trace_id=work.trace_of(assignment.run_id or assignment.task_id),
        )

    def guard(self, task_id: str, token: str) -> View:
        self._token_scope.check_tasks([task_id])
        return self.view_report(
            task_id, require_may_act(task_id, self._engine.work.guard(task_id, token))
        )

    def effects(
        self, task_id: str, token: str, after: str | None = None, limit: int | None = None
    ) -> View:
        """A page of the effects for an attempt that may still act, and the signals it has taken."""
        self._token_scope.check_tasks([task_id])
        require_accepted(task_id, self._engine.work.check_write(task_id, token))
        signals = take_awaited_signal(self._engine, task_id, token) if after is None else None
        page = view_page_of_effects(
            self._engine, task_id, after, EFFECTS_AT_ONCE if limit is None else limit
        )
        return page | without_nulls(signals=signals or None)

    def record_effect(self, task_id: str, token: str, name: str, value: object) -> View:
        """Record the value of a side effect; the first value under a name stays."""
        self._token_scope.check_tasks([task_id])
        recorded = self._engine.work.record_effect(task_id, token, name, value)
        return _view_recorded(task_id, name, recorded)

    def spawn(
        self, task_id: str, token: str, tasks: Sequence[Mapping[str, Any]], name: str
    ) -> View:
        """Make children of a running task, once under one name; their default agent is its own."""
        agent, settings = self._engine.tasks.get(task_id).agent, self._engine.settings
        wanted = [read_new_task({"agent": agent, **each}, settings) for each in tasks]
        self._token_scope.check_tasks([task_id])
        self._token_scope.check_children(wanted)
        recorded = self._engine.work.spawn(task_id, token, wanted, name=name)
        told = _view_recorded(task_id, name, recorded)
        # The name may belong to an effect, whose value may name any task.
        value = recorded.value if isinstance(recorded.value, list) else []
        ids = [each for each in value if isinstance(each, str)]
        below = [
            each for each in self._queries.tasks_by_id(ids) if each.get("parent_id") == task_id
        ]
        found = {each["id"]: each for each in below}
        return {**told, "items": [found[each] for each in ids if each in found]}

    def log(self, task_id: str, token: str, chunk: bytes) -> int:
        """Append to the log of an attempt that may still act; returns the length of the log."""
        self._token_scope.check_tasks([task_id])
        require_accepted(task_id, self._engine.work.check_write(task_id, token))
        return append_to_log(self._state.log(task_id, int(token.partition(".")[0])), chunk)

    def keep_artifact(self, task_id: str, token: str, name: str, content: bytes) -> View:
        """Keep a file of an attempt that may still act, under a name of its own."""
        self._token_scope.check_tasks([task_id])
        return keep_artifact(self._engine, self._state, (task_id, token), name, content)

    def view_report(self, task_id: str, answer: TransitionResult) -> View:
        """The task after a report; raises `Refused` where the report was refused."""
        told = require_accepted(task_id, answer)
        return {"ok": True, "repeated": told.repeated, "task": self._queries.task(task_id)}


def make_request_key(owner: str, worker: str, request_id: str) -> str:
    """The key that a claim is remembered under, made of its caller, worker and request id."""
    return digest(owner, clean_name("worker", worker), clean_key("request_id", request_id))


def _view_recorded(task_id: str, name: str, recorded: EffectRecord) -> View:
    told = require_accepted(task_id, recorded.answer)
    return {"ok": True, "repeated": told.repeated, "name": name, "value": recorded.value}
