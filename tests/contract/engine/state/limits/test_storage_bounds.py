"""What an attempt and its run keep has bounds: effects, notes, signals and children alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.core.effect_limits import Bounds
from holdfast.engine.engine import Engine
from holdfast.engine.state.durable import RecordEffect
from holdfast.engine.state.effects import EFFECTS_AT_ONCE
from holdfast.errors import HoldfastError, TooMuchKept
from holdfast.model.effect import EffectRecord, WakeCondition
from holdfast.model.status import Status
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.settings import Settings
from tests.contract.raw_store import raw
from tests.contract.task_states import create, start, take
from tests.engines import opened
from tests.race.racers import COMMIT, Racer

PAIR = Workflow.define("pair", (Step(id="a"), Step(id="b")))
FEW = {"max_effects": 4, "max_run_effects": 6, "max_kept": 40, "max_run_kept": 60}


@pytest.fixture
def few(store_url: str, clock: ManualClock) -> Iterator[Engine]:
    with opened(
        store_url, clock=clock, settings=Settings(url=store_url, max_payload=20, **FEW)
    ) as engine:
        yield engine


def pair(engine: Engine) -> list[Assignment]:
    """Attempts of two tasks of one run."""
    return [take(engine, each) for each in start(engine, PAIR).steps.values()]


def remember(engine: Engine, attempt: Assignment, name: object, value: object = 1) -> EffectRecord:
    return engine.work.record_effect(attempt.task.id, attempt.token, f"effect {name}", value)


def test_an_attempt_keeps_so_many_effects_and_another_as_many_again(few: Engine) -> None:
    task = create(few)
    attempt = take(few, task)
    for number in range(4):
        assert remember(few, attempt, number).answer.ok
    with pytest.raises(TooMuchKept, match=r"max_effects=…\) allows more"):
        remember(few, attempt, "more")
    assert remember(few, attempt, 0).answer.repeated
    assert few.work.release(task, attempt.token).ok
    again = take(few, task)
    assert remember(few, again, "more").answer.ok
    assert remember(few, again, "and more").answer.ok
    with pytest.raises(TooMuchKept, match="max_run_effects"):
        remember(few, again, "too many")


def test_an_attempt_keeps_so_many_bytes_and_what_lies_beside_counts(few: Engine) -> None:
    attempt = take(few, create(few))
    asked = (attempt.task.id, attempt.token)
    assert few.work.record_effect(*asked, "file", 1, beside=30).answer.ok
    few.work.check_room(*asked, "file", 1_000)
    with pytest.raises(TooMuchKept, match="max_kept"):
        few.work.check_room(*asked, "other", 10)
    with pytest.raises(TooMuchKept, match="max_kept"):
        few.work.record_effect(*asked, "other", "aaaaaaaa")
    assert remember(few, attempt, "other", "aaa").answer.ok


def test_payloads_of_children_count_as_bytes_kept_by_the_attempt_that_spawns_them(
    store_url: str, clock: ManualClock
) -> None:
    settings = Settings(url=store_url, max_kept=20_000, max_run_kept=25_000)
    with opened(store_url, clock=clock, settings=settings) as engine:
        task = create(engine)
        attempt = take(engine, task)
        children = [NewTask(title="child", payload="x" * 9_000)]
        first = engine.work.spawn(task, attempt.token, children, name="first")
        assert engine.work.spawn(task, attempt.token, children, name="second").answer.ok
        with pytest.raises(TooMuchKept, match="max_kept"):
            engine.work.spawn(task, attempt.token, children, name="third")
        assert engine.work.spawn(task, attempt.token, children, name="first").value == first.value
        assert engine.work.release(task, attempt.token).ok
        again = take(engine, task)
        with pytest.raises(TooMuchKept, match="max_run_kept"):
            engine.work.spawn(task, again.token, children, name="third")
        assert len(engine.tasks.list()) == 3


def test_a_run_keeps_no_more_than_it_may_however_its_attempts_share_it(few: Engine) -> None:
    one, other = pair(few)
    for number in range(3):
        assert remember(few, one, number).answer.ok
        assert remember(few, other, number).answer.ok
    with pytest.raises(TooMuchKept, match="max_run_effects"):
        remember(few, other, "more")
    assert remember(few, take(few, create(few)), "else").answer.ok


def test_a_run_keeps_no_more_bytes_than_it_may(few: Engine) -> None:
    one, other = pair(few)
    assert remember(few, one, "long", "a" * 30).answer.ok
    with pytest.raises(TooMuchKept, match="max_run_kept"):
        remember(few, other, "long", "a" * 30)


@pytest.mark.parametrize("verb", ["suspend", "ask", "spawn", "take_signal"])
def test_effects_recorded_with_another_change_count_as_kept(few: Engine, verb: str) -> None:
    task = create(few)
    attempt = take(few, task)
    for number in range(4):
        assert remember(few, attempt, number).answer.ok
    few.signals.send(task, "go", "a")
    token = attempt.token
    calls: dict[str, Callable[[], object]] = {
        "suspend": lambda: few.work.suspend(
            task, token, WakeCondition(until=2**50), notes=[("nap", 1)]
        ),
        "ask": lambda: few.work.ask(task, token, "why?", notes=[("asked", 1)]),
        "spawn": lambda: few.work.spawn(task, token, [NewTask(title="child")], name="spawn"),
        "take_signal": lambda: few.work.take_signal(task, token, task, "go", name="wait"),
    }
    with pytest.raises(TooMuchKept):
        calls[verb]()
    assert few.tasks.get(task).status is Status.RUNNING
    assert len(few.tasks.list()) == 1
    assert few.work.release(task, attempt.token).ok
    again = take(few, task)
    assert few.work.take_signal(task, again.token, task, "go", name="wait").found


def together(attempts: list[Assignment], name: str) -> list[RecordEffect]:
    return [
        RecordEffect(task_id=each.task.id, fence=each.attempt, name=name, value="1")
        for each in attempts
    ]


def refused(replies: list[object]) -> int:
    assert all(isinstance(each, EffectRecord | TooMuchKept) for each in replies)
    return sum(isinstance(each, HoldfastError) for each in replies)


def test_two_attempts_of_a_run_that_race_do_not_pass_its_bound(
    few: Engine, store_url: str, clock: ManualClock
) -> None:
    attempts = pair(few)
    for each in (0, 1, 2):
        assert remember(few, attempts[0], each).answer.ok
    for each in (0, 1):
        assert remember(few, attempts[1], each).answer.ok
    bounds = Bounds.of(few.settings)
    wants = together(attempts, "last")
    racers = [Racer(store_url, name, clock, bounds=bounds) for name in ("first", "second")]
    try:
        stopped = racers[0].start_up_to(COMMIT, wants[:1])
        behind = racers[1].start(wants[1:])
        assert racers[1].go_as_far_as_possible(behind)
        assert refused(stopped.finish()) == 0
        assert refused(behind.result()) == 1
        # In one group as well, where others are told what they would be alone.
        free = take(few, create(few))
        wanted = [*together(attempts[1:], "more"), *together([free], "more")]
        replies = racers[0].start(wanted).result()
        assert refused(replies[:1]) == 1
        assert refused(replies[1:]) == 0
    finally:
        for racer in racers:
            racer.close()


def test_effects_of_one_group_are_counted_together(
    few: Engine, store_url: str, clock: ManualClock
) -> None:
    attempts = pair(few)
    for each in (0, 1, 2):
        assert remember(few, attempts[0], each).answer.ok
    for each in (0, 1):
        assert remember(few, attempts[1], each).answer.ok
    racer = Racer(store_url, "one", clock, bounds=Bounds.of(few.settings))
    try:
        assert refused(racer.start(together(attempts, "last")).result()) == 1
    finally:
        racer.close()


def test_a_deleted_task_is_no_longer_counted_as_kept(few: Engine, store_url: str) -> None:
    task = create(few)
    assert remember(few, take(few, task), "one").answer.ok
    with raw(store_url) as run:
        assert len(run("SELECT owner FROM holdfast_kept WHERE owner = ?", task)) == 2
        assert few.tasks.cancel(task).ok
        assert few.tasks.delete(task).ok
        assert run("SELECT owner FROM holdfast_kept WHERE owner = ?", task) == []


def test_more_effects_than_are_read_at_once_are_read_all_in_order(engine: Engine) -> None:
    attempt = take(engine, create(engine))
    names = [f"effect {each}" for each in range(EFFECTS_AT_ONCE + 3)]
    asked = [
        engine.work.record_effect.submit(attempt.task.id, attempt.token, name, 1) for name in names
    ]
    assert all(each.result().answer.ok for each in asked)
    assert {*engine.work.effects(attempt.task.id)} == {*names}
    page = engine.work.effects_page(attempt.task.id)
    assert len(page) == EFFECTS_AT_ONCE
    rest = engine.work.effects_page(attempt.task.id, next(reversed(page)))
    assert [*page, *rest] == [*engine.work.effects(attempt.task.id)]
