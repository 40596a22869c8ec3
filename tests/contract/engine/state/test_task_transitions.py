"""Every operation on a task in every status: what the table allows happens, the rest is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import TASK_TRANSITIONS, TERMINAL, Status, is_allowed
from holdfast.model.task import Renewal
from tests.contract.raw_store import dump
from tests.contract.task_states import MISSING_TASK, NOT_GENUINE, Stage, bring, create

ANOTHER_AGENT = "another"
Expected = str | Refusal

OPEN = ("idle", "queued", "running")
ENDED = ("done", "failed", "cancelled")


def expect(refusal: Refusal, **targets: Expected) -> dict[str, Expected]:
    return {status: targets.get(status, refusal) for status in (*OPEN, *ENDED)}


def same(*statuses: str) -> dict[str, Expected]:
    return {status: status for status in statuses}


@dataclass(frozen=True, kw_only=True)
class Scene:
    engine: Engine
    clock: ManualClock
    stage: Stage

    @property
    def task_id(self) -> str:
        return self.stage.task_id


Operate = Callable[[Scene], TransitionResult]
INVALID = Refusal.INVALID_TRANSITION
LATE: dict[str, Expected] = {
    "done": Refusal.RESULT_CONFLICT,
    "failed": Refusal.RESULT_CONFLICT,
    "cancelled": Refusal.ALREADY_TERMINAL,
}
STOP: dict[str, Expected] = {
    "done": Refusal.ALREADY_TERMINAL,
    "failed": Refusal.ALREADY_TERMINAL,
    "cancelled": Refusal.CANCELLED,
}


def claimed(scene: Scene, *, by_id: bool) -> TransitionResult:
    work = scene.engine.work
    found = work.claim_by_id(scene.task_id, "worker") if by_id else work.claim("worker", count=9)
    if not found:
        return TransitionResult(ok=False, reason=Refusal.INVALID_TRANSITION)
    return TransitionResult(ok=True, status="running")


def recovered(scene: Scene) -> TransitionResult:
    scene.clock.advance(31)
    answers = scene.engine.work.recover()
    return answers[0] if answers else TransitionResult(ok=False, reason=INVALID)


def renewed(scene: Scene) -> TransitionResult:
    (answer,) = scene.engine.work.renew([Renewal(task_id=scene.task_id, token=scene.stage.token)])
    return answer


OPERATIONS: dict[str, tuple[Operate, dict[str, Expected]]] = {
    "enqueue": (lambda s: s.engine.tasks.enqueue(s.task_id), expect(INVALID, idle="queued")),
    "run_now": (
        lambda s: s.engine.tasks.run_now(s.task_id),
        expect(INVALID, idle="queued", queued="queued"),
    ),
    "cancel": (
        lambda s: s.engine.tasks.cancel(s.task_id),
        expect(Refusal.ALREADY_TERMINAL, **dict.fromkeys(OPEN, "cancelled")),
    ),
    "reset": (
        lambda s: s.engine.tasks.reset(s.task_id),
        expect(INVALID, **dict.fromkeys(("queued", *ENDED), "idle")),
    ),
    "retry": (
        lambda s: s.engine.tasks.retry(s.task_id),
        expect(INVALID, failed="queued", cancelled="queued"),
    ),
    "reopen": (
        lambda s: s.engine.tasks.reopen(s.task_id),
        expect(INVALID, **dict.fromkeys(ENDED, "queued")),
    ),
    "hold": (
        lambda s: s.engine.tasks.hold(s.task_id),
        expect(Refusal.ALREADY_TERMINAL, **same(*OPEN)),
    ),
    "unhold": (
        lambda s: s.engine.tasks.unhold(s.task_id, "approval"),
        expect(Refusal.ALREADY_TERMINAL, **same(*OPEN)),
    ),
    "block": (
        lambda s: s.engine.tasks.block(s.task_id, [create(s.engine, agent=ANOTHER_AGENT)]),
        expect(INVALID, **same("idle", "queued")),
    ),
    "unblock": (
        lambda s: s.engine.tasks.unblock(s.task_id),
        expect(INVALID, **same("idle", "queued")),
    ),
    "edit": (
        lambda s: s.engine.tasks.edit(s.task_id, {"title": "other"}),
        expect(INVALID, **same("idle", "queued")),
    ),
    "claim": (lambda s: claimed(s, by_id=False), expect(INVALID, queued="running")),
    "claim_by_id": (
        lambda s: claimed(s, by_id=True),
        expect(INVALID, idle="running", queued="running"),
    ),
    "complete": (
        lambda s: s.engine.work.complete(s.task_id, s.stage.token, "other output"),
        expect(Refusal.STALE_TOKEN, running="done", **LATE),
    ),
    "fail_and_retry": (
        lambda s: s.engine.work.fail(s.task_id, s.stage.token, "other error"),
        expect(Refusal.STALE_TOKEN, running="queued", **LATE),
    ),
    "fail_for_good": (
        lambda s: s.engine.work.fail(s.task_id, s.stage.token, "other error", retryable=False),
        expect(Refusal.STALE_TOKEN, running="failed", **LATE),
    ),
    "release": (
        lambda s: s.engine.work.release(s.task_id, s.stage.token),
        expect(Refusal.STALE_TOKEN, queued="queued", running="queued", **LATE),
    ),
    "renew": (renewed, expect(Refusal.STALE_TOKEN, running="running", **STOP)),
    "guard": (
        lambda s: s.engine.work.guard(s.task_id, s.stage.token),
        # One that has never been claimed has no token that could have run out.
        expect(Refusal.LEASE_EXPIRED, idle=Refusal.STALE_TOKEN, running="running", **STOP),
    ),
    "recover": (recovered, expect(INVALID, running="queued")),
}
# Answered ok, but nothing was left to change: these write neither version nor event.
WITHOUT_A_CHANGE = {
    ("unhold", "idle"),
    ("unhold", "queued"),
    ("unhold", "running"),
    ("unblock", "idle"),
    ("unblock", "queued"),
    ("release", "queued"),
    ("renew", "running"),
    ("guard", "running"),
}
REPEATED = WITHOUT_A_CHANGE - {("renew", "running"), ("guard", "running")}
# Moves without a worker: of groups, approvals, skips and prompts that cannot be rendered.
WITHOUT_A_WORKER = {("idle", "done"), ("idle", "failed"), ("queued", "done"), ("queued", "failed")}

PAIRS = [(name, status) for name in OPERATIONS for status in Status]


@pytest.fixture
def scene(engine: Engine, clock: ManualClock, status: Status) -> Scene:
    return Scene(engine=engine, clock=clock, stage=bring(engine, status))


@pytest.mark.parametrize(("name", "status"), PAIRS)
def test_an_operation_moves_a_task_along_the_table_or_is_refused_without_a_trace(
    scene: Scene, store_url: str, name: str, status: Status
) -> None:
    operate, expected = OPERATIONS[name]
    before, store = scene.engine.tasks.get(scene.task_id), dump(store_url)
    answer = operate(scene)
    after, events = scene.engine.tasks.get(scene.task_id), scene.engine.tasks.events(scene.task_id)
    target = expected[status]
    if isinstance(target, Refusal):
        assert (answer.ok, answer.reason) == (False, target)
        assert after == before
        if name != "block":
            assert dump(store_url) == store
        return
    assert answer.ok
    assert answer.reason is None
    assert answer.repeated == ((name, status) in REPEATED)
    assert after.status == answer.status == target
    assert after.version == len(events) == before.version + ((name, status) not in WITHOUT_A_CHANGE)
    if after.version > before.version:
        assert (events[-1].source, events[-1].target) == (status, target)
        assert status == target or is_allowed(TASK_TRANSITIONS, status, target)


@pytest.mark.parametrize("status", list(Status))
def test_a_task_is_deleted_unless_it_runs(scene: Scene, store_url: str, status: Status) -> None:
    store = dump(store_url)
    answer = scene.engine.tasks.delete(scene.task_id)
    if status is Status.RUNNING:
        assert (answer.ok, answer.reason, answer.status) == (False, INVALID, "running")
        assert dump(store_url) == store
        return
    assert answer.ok
    last = scene.engine.tasks.events(scene.task_id)[-1]
    assert (last.type, last.source, last.target) == ("task.deleted", status, None)
    assert dump(store_url)["holdfast_task"] == []


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "recover"])
def test_an_operation_on_a_missing_task_is_not_found(
    engine: Engine, clock: ManualClock, store_url: str, name: str
) -> None:
    scene = Scene(engine=engine, clock=clock, stage=Stage(task_id=MISSING_TASK))
    answer = OPERATIONS[name][0](scene)
    if name in {"claim", "claim_by_id"}:
        assert not answer.ok
    else:
        assert (answer.ok, answer.reason, answer.status) == (False, Refusal.NOT_FOUND, None)
    assert [row for row in dump(store_url)["holdfast_event"] if row["entity"] == MISSING_TASK] == []
    assert engine.tasks.delete(MISSING_TASK).reason is Refusal.NOT_FOUND


def test_every_move_of_the_table_is_driven_and_no_other_one_is_made() -> None:
    driven = {
        (str(status), str(target))
        for _, expected in OPERATIONS.values()
        for status, target in expected.items()
        if not isinstance(target, Refusal) and target != status
    }
    table = {(move.source, move.target) for move in TASK_TRANSITIONS}
    assert driven == table - WITHOUT_A_WORKER


@pytest.mark.parametrize("status", list(Status))
def test_only_a_move_out_of_an_end_or_a_reset_begins_a_new_generation(
    scene: Scene, status: Status
) -> None:
    before = scene.engine.tasks.get(scene.task_id)
    for name in ("retry", "reopen", "reset"):
        if OPERATIONS[name][0](scene).ok:
            after = scene.engine.tasks.get(scene.task_id)
            assert after.generation == before.generation + 1
            assert after.epoch == before.epoch + (name != "retry")
            assert (after.failures, after.lost, after.attempt) == (0, 0, before.attempt)
            return
    assert status not in TERMINAL
    assert scene.engine.tasks.get(scene.task_id) == before


def test_a_token_that_is_not_genuine_moves_nothing(engine: Engine) -> None:
    stage = bring(engine, Status.RUNNING)
    another = bring(engine, Status.RUNNING)
    for token in (NOT_GENUINE, another.token, "", "1", stage.token + "0", "9" * 400):
        for answer in (
            engine.work.complete(stage.task_id, token, "output"),
            engine.work.fail(stage.task_id, token, "error"),
            engine.work.release(stage.task_id, token),
            engine.work.renew([Renewal(task_id=stage.task_id, token=token)])[0],
            engine.work.guard(stage.task_id, token),
        ):
            assert (answer.ok, answer.reason) == (False, Refusal.STALE_TOKEN)
    assert engine.tasks.get(stage.task_id).version == 2
