"""Durable functions: what a running one records, each under its fence.

Those are effects, questions, waits, signals taken and child tasks. A signal that is sent is kept
until an attempt takes it, once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from holdfast.engine import lines
from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.effect_limits import find_refusal, keep_effects
from holdfast.engine.core.operation import Keys, Operation, Report
from holdfast.engine.core.sync_async import operation
from holdfast.engine.core.task_rows import TaskRow, measure_tasks
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.engine.read.key_addresses import find_id
from holdfast.engine.read.report_refusals import answer_renewal, answer_report, refuse
from holdfast.engine.state import creation
from holdfast.errors import HoldfastError, KeyConflict
from holdfast.ids import AnyId
from holdfast.model.advice import Action, advise
from holdfast.model.effect import EffectRecord, read_awaited
from holdfast.model.placeholder import refuse_placeholder
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.text import clean_key, clean_name, encode_json
from holdfast.model.workflow.line import Draft
from holdfast.store.database import Row

# Names of effects, each with its value as JSON.
Notes = tuple[tuple[str, str], ...]
_SIGNAL_TEMPLATE = '{"signal":*}'
_KEY_ADVICE = "use another key, or send the same payload to have it counted once"


@dataclass(frozen=True, kw_only=True, slots=True)
class AskQuestion(Report):
    """Give the task back until a person answers; `notes` are recorded as effects with it."""

    question: str
    notes: Notes = ()
    draft: Draft | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.question, *(value for _, value in self.notes))


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordEffect(Report):
    name: str
    value: str
    # The bytes of a file that is kept with the effect.
    beside: int = 0

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.value,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspend(Report):
    """Give the task back until a time, a signal or its children.

    `notes` are recorded as effects with it.
    """

    until: int | None = None
    awaited: str | None = None
    notes: Notes = ()
    draft: Draft | None = None

    @property
    def texts(self) -> tuple[str | None, ...]:
        return tuple(value for _, value in self.notes)


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeSignal(Report):
    target: str
    signal: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Spawn(Report):
    """Children of a running attempt, made once: their ids are an effect under `name`."""

    name: str
    tasks: tuple[TaskRow, ...]
    actor: str

    @property
    def size(self) -> int:
        return measure_tasks(self.tasks)


@dataclass(frozen=True, kw_only=True, slots=True)
class SendSignal(Operation):
    id: str
    target: str
    signal: str
    payload: str
    key: str | None
    actor: str

    @property
    def keys(self) -> Keys:
        return (self.target,)

    @property
    def texts(self) -> tuple[str | None, ...]:
        return (self.payload,)


def record_effects(
    work: UnitOfWork, reports: Sequence[RecordEffect]
) -> list[EffectRecord | HoldfastError]:
    effects = [(r.task_id, r.fence, r.name, r.value, r.beside) for r in reports]
    kept = keep_effects(work.tx, work.bounds, effects)
    return [
        EffectRecord(answer=TransitionResult(ok=True, status="running"), value=json.loads(r.value))
        if (r.task_id, r.name) in kept
        else _explain_unkept(work, r)
        for r in reports
    ]


def _explain_unkept(work: UnitOfWork, report: RecordEffect) -> EffectRecord | HoldfastError:
    known = _find_effect(work, report)
    if known.found or not known.answer.ok:
        return known
    effect, size = (report.task_id, report.fence, report.name), len(report.value.encode())
    return find_refusal(work.tx, work.bounds, effect, size + report.beside) or known


def record_notes(
    work: UnitOfWork, reports: Sequence[AskQuestion] | Sequence[Suspend]
) -> dict[str, HoldfastError]:
    """Record the notes as effects for the next attempt.

    Return the tasks that have no room for them.
    """
    effects = [(r.task_id, r.fence, name, value, 0) for r in reports for name, value in r.notes]
    kept = keep_effects(work.tx, work.bounds, effects) if effects else set()
    refused: dict[str, HoldfastError] = {}
    for task_id, fence, name, value, _ in effects:
        if (task_id, name) not in kept:
            effect = (task_id, fence, name)
            no_room = find_refusal(work.tx, work.bounds, effect, len(value.encode()))
            if no_room is not None:
                refused[task_id] = no_room
    return refused


def suspend_tasks(
    work: UnitOfWork, reports: Sequence[Suspend]
) -> list[TransitionResult | HoldfastError]:
    refused = record_notes(work, reports)
    taken = [report for report in reports if report.task_id not in refused]
    lines.record_drafts(work, taken)
    changed = work.change_tasks(
        "suspend_tasks", rows=[(r.task_id, r.fence, r.until, r.awaited) for r in taken]
    )
    for row in changed:
        awaited = read_awaited(row["waits_for"] or "")
        if awaited.children:
            work.groups_to_settle.add(row["entity"])
        work.awaited |= {(row["waits_for"], awaited.target, name) for name in awaited.signals}
    suspended = {row["entity"] for row in changed}
    return [
        TransitionResult(ok=True, status="queued")
        if r.task_id in suspended
        else refused.get(r.task_id) or answer_report(r, _attempt_record(work, r))
        for r in reports
    ]


def send_signals(
    work: UnitOfWork, signals: Sequence[SendSignal]
) -> list[TransitionResult | HoldfastError]:
    rows = [(s.id, s.target, s.signal, s.payload, s.key, s.actor) for s in signals]
    sent = {row["id"] for row in work.tx.write("send_signals", rows=rows)}
    work.awaited |= _find_awaited(work, {(s.target, s.signal) for s in signals if s.id in sent})
    return [
        TransitionResult(ok=True) if s.id in sent else _explain_unsent(work, s) for s in signals
    ]


def _find_awaited(work: UnitOfWork, sent: set[tuple[str, str]]) -> set[tuple[str, str, str]]:
    """The waits that these signals may end: on one signal alone, and on several things at once."""
    targets = sorted({target for target, _ in sent})
    rows = work.tx.read("several_awaited", targets=targets) if targets else []
    alone = {(f"{target} {name}", target, name) for target, name in sent}
    return alone | {
        (text, row["target"], name)
        for row in rows
        for text in (row["texts"] or "").split(";")
        for name in read_awaited(text).signals
        if (row["target"], name) in sent
    }


def take_signal(work: UnitOfWork, report: TakeSignal) -> EffectRecord:
    """Give the attempt the oldest signal of the name, or the one that this effect holds already."""
    known = _find_effect(work, report)
    if known.found or not known.answer.ok:
        return known
    # The payload is not known before the signal is taken, so there must be room for the largest.
    _require_room(work, report, work.bounds.max_payload + len(_SIGNAL_TEMPLATE))
    taken = work.tx.write(
        "take_signal",
        task_id=report.task_id,
        fence=report.fence,
        target=report.target,
        name=report.signal,
        effect=report.name,
    )
    if not taken:
        return known
    value = _SIGNAL_TEMPLATE.replace("*", taken[0]["payload"], 1)
    keep_effects(work.tx, work.bounds, [(report.task_id, report.fence, report.name, value, 0)])
    return replace(known, value=json.loads(value), found=True)


def wake_for_signals(work: UnitOfWork) -> None:
    """Make the tasks due that wait for a signal which is there."""
    if work.awaited:
        awaited, work.awaited = sorted(work.awaited), set()
        work.change_tasks("wake_for_signals", rows=awaited)


def spawn_tasks(work: UnitOfWork, report: Spawn) -> EffectRecord:
    known = _find_effect(work, report)
    if known.found or not known.answer.ok:
        return known
    ids = [task.id for task in report.tasks]
    value = json.dumps(ids)
    _require_room(work, report, len(value) + report.size)
    parent = work.tx.read("live_attempts", rows=[(report.task_id, report.fence)])[0]
    tasks = [
        replace(task, parent_id=parent["id"], parent_epoch=parent["epoch"], run_id=parent["run_id"])
        for task in report.tasks
    ]
    creation.insert_tasks(
        work, [(task, report.actor) for task in tasks], {}, run_holds=parent["run_holds"]
    )
    # The payloads of the children count against the bounds too, under the effect with their ids.
    effect = (report.task_id, report.fence, report.name, value, report.size)
    keep_effects(work.tx, work.bounds, [effect])
    return replace(known, value=ids, found=True)


def _find_effect(work: UnitOfWork, report: RecordEffect | TakeSignal | Spawn) -> EffectRecord:
    """The effect that the task has under the name already, if the attempt may still act."""
    if not work.tx.read("live_attempts", rows=[(report.task_id, report.fence)]):
        return EffectRecord(
            answer=answer_renewal(report, _attempt_record(work, report)), found=False
        )
    for row in work.tx.read("effect_named", task_id=report.task_id, name=report.name):
        answer = TransitionResult(ok=True, repeated=True, status="running")
        return EffectRecord(answer=answer, value=json.loads(row["value"]))
    return EffectRecord(answer=TransitionResult(ok=True, status="running"), found=False)


def _require_room(work: UnitOfWork, report: TakeSignal | Spawn, size: int) -> None:
    no_room = find_refusal(work.tx, work.bounds, (report.task_id, report.fence, report.name), size)
    if no_room is not None:
        raise no_room


def _attempt_record(work: UnitOfWork, report: Report) -> Row:
    return work.tx.read("attempt_records", rows=[(report.task_id, report.fence)])[0]


def _explain_unsent(work: UnitOfWork, signal: SendSignal) -> TransitionResult | HoldfastError:
    """Say why no signal was kept: its key was sent before, or its target receives none."""
    rows = work.tx.read("signal_target", target=signal.target)
    if not rows:
        return refuse(Refusal.NOT_FOUND, None)
    status, run_id = rows[0]["status"], rows[0]["run_id"]
    if run_id is not None:
        send = advise(Action.SIGNAL, run_id, ("signal", signal.signal))
        detail = "it waits for signals to its run: " + send
        return refuse(Refusal.PART_OF_RUN, status, detail)
    about = {"target": signal.target, "name": signal.signal, "key": signal.key}
    # Before the check for an end: the same signal again succeeds, even after the target has ended.
    sent = work.tx.read("signal_by_key", **about)
    if signal.key is None or not sent:
        return refuse(Refusal.ALREADY_TERMINAL, status, "it waits for nothing any more")
    if sent[0]["payload"] != signal.payload:
        advice = f"to which {signal.signal!r} was sent under it with another payload; {_KEY_ADVICE}"
        return KeyConflict(signal.key, signal.target, advice)
    return TransitionResult(ok=True, repeated=True, status=status)


class Signals:
    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def send(  # noqa: PLR0913 - what is sent, who sends it, and in which transaction
        self,
        target: AnyId,
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        actor: str = "user",
        connection: object = None,
    ) -> Future[TransitionResult]:
        """Send a run, or a task without one, what it waits for; a `key` is sent once.

        The target is an id or the key of the run or task. Another payload under the key of the
        signal is a `KeyConflict`. With a `connection` the signal is part of the application's own
        transaction there.
        """
        refuse_placeholder("payload", payload)
        return self._context.submit(
            SendSignal(
                id=self._context.ids.signal(),
                target=validation.target(find_id(self._context, target, "target", connection)),
                signal=clean_name("name", name),
                payload=encode_json("payload", payload, limit=self._context.settings.max_payload),
                key=None if key is None else clean_key("key", key),
                actor=validation.actor(actor),
            ),
            connection,
        )
