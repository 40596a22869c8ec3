"""What durable functions leave behind is guarded statement by statement: fence, target and turn."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.engine.state.durable import TakeSignal
from holdfast.model.advice import Action, Advice
from holdfast.model.effect import CHILDREN, WakeCondition
from holdfast.model.result import Refusal
from holdfast.model.status import Status
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from holdfast.service.admin.store_repair import repair_store
from tests.contract.advised import advised
from tests.contract.raw_store import raw
from tests.contract.single_statements import complete, keep, write
from tests.contract.task_states import MISSING_TASK, create, finish, start, take
from tests.race.racers import COMMIT, Racer


def listening(engine: Engine, *signals: str, target: str | None = None) -> str:
    """A task that waits for a signal to itself, or to another."""
    task_id = create(engine)
    wait = WakeCondition(target=target or task_id, signals=signals or ("go",))
    assert engine.work.suspend(task_id, take(engine, task_id).token, wait).ok
    return task_id


def send(engine: Engine, aim: str, *, name: str = "go", number: int = 1) -> bool:
    """Keep a signal, and wake nobody."""
    row = (f"s_{number}", aim, name, str(number), None, "user")
    return keep(engine, "send_signals", rows=[row]) != []


def take_signal(engine: Engine, attempt: Assignment, target: str, **more: Any) -> list[str]:
    asked: dict[str, Any] = {"name": "go", "effect": "wait", "fence": attempt.attempt, **more}
    rows = keep(engine, "take_signal", task_id=attempt.task.id, target=target, **asked)
    return [row["payload"] for row in rows]


def spawn(engine: Engine, attempt: Assignment, title: str = "child") -> str:
    made = engine.work.spawn(
        attempt.task.id, attempt.token, [NewTask(title=title)], name=f"spawn {title}"
    )
    return str(made.value[0])


def test_an_effect_is_kept_only_for_the_attempt_that_holds_the_lease(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine)
    take(engine, task_id)
    most = {"max_effects": 9, "max_kept": 9, "max_run_effects": 9, "max_run_kept": 9}

    def record(fence: int, name: str) -> list[dict[str, Any]]:
        row = (task_id, fence, name, "1", 1, 1, 1)
        return keep(engine, "record_effects", rows=[row], **most)

    assert record(0, "pay") == record(2, "pay") == []
    assert record(1, "pay") == [{"task_id": task_id, "name": "pay"}]
    clock.advance(31)
    assert record(1, "tip") == []
    assert engine.work.effects(task_id) == {"pay": 1}


def test_a_signal_is_kept_for_nobody_who_has_ended_whoever_else_is_open(engine: Engine) -> None:
    gone = start(engine)
    assert engine.runs.cancel(gone.id).ok
    ended = [create(engine) for _ in range(2)]
    finish(engine, ended[0])
    assert engine.tasks.cancel(ended[1]).ok
    run, task_id = start(engine), create(engine)
    for aim in (gone.id, *ended, MISSING_TASK):
        assert not send(engine, aim)
    for number, aim in enumerate((run.id, task_id)):
        assert send(engine, aim, number=number)


def test_a_signal_to_a_task_of_a_run_is_refused_with_who_would_hear_it(engine: Engine) -> None:
    run = start(engine)
    answer = engine.signals.send(run.steps["plan"], "go", key="once")
    assert (answer.reason, answer.status) == (Refusal.PART_OF_RUN, "queued")
    send = Advice(Action.SIGNAL, run.id, (("signal", "go"),))
    assert advised(answer) == [send]
    assert engine.signals.send(run.id, "go").ok


def wake(engine: Engine, *targets: str) -> set[str]:
    rows = [(f"{each} go", each, "go") for each in targets]
    return write(engine, "wake_for_signals", rows=rows)


def test_a_signal_wakes_only_who_waits_for_it(engine: Engine) -> None:
    named, other, silent, cancelled = (listening(engine) for _ in range(4))
    assert engine.tasks.cancel(cancelled).ok
    for number, aim in enumerate((named, other)):
        assert send(engine, aim, number=number)
    assert send(engine, silent, name="stop", number=9)
    assert wake(engine, named, silent, cancelled) == {named}
    assert wake(engine, named, silent, cancelled) == set()


def test_a_signal_wakes_who_waits_for_it_among_others_and_nobody_else(engine: Engine) -> None:
    before, named, after = (listening(engine, "stop", "go") for _ in range(3))
    second = listening(engine, "go", "other", target=named)
    deaf = [
        listening(engine, *others, target=named)
        for others in (("stop", "gone"), ("a-go", "go.on"), ("stop",))
    ]
    assert engine.signals.send(named, "go").ok
    woken = (named, second)
    assert {engine.tasks.get(each).state for each in woken} == {"ready"}
    assert {engine.tasks.get(each).state for each in (before, after, *deaf)} == {"waiting"}


def test_a_signal_that_somebody_has_taken_wakes_nobody(engine: Engine) -> None:
    waiting = listening(engine)
    assert send(engine, waiting)
    assert take_signal(engine, take(engine, create(engine)), waiting) == ["1"]
    assert wake(engine, waiting) == set()


def test_a_task_that_ended_while_waiting_is_woken_by_no_signal(engine: Engine) -> None:
    waiting, target = create(engine), create(engine)
    wait = WakeCondition(target=target, signals=("go",))
    assert engine.work.suspend(waiting, take(engine, waiting).token, wait).ok
    assert engine.tasks.cancel(waiting).ok
    assert send(engine, target)
    assert wake(engine, target) == set()


def with_child(engine: Engine, wait: WakeCondition) -> tuple[str, str]:
    """A waiting task with one child that is running."""
    parent = create(engine)
    attempt = take(engine, parent)
    child = spawn(engine, attempt)
    take(engine, child)
    assert engine.work.suspend(parent, attempt.token, wait).ok
    return parent, child


def test_a_task_that_waits_for_children_or_a_signal_wakes_with_either(engine: Engine) -> None:
    target = create(engine)
    first, second = (
        with_child(engine, WakeCondition(target=target, signals=("go",), children=True))
        for _ in range(2)
    )
    complete(engine, first[1])
    assert write(engine, "wake_parents", ids=[first[0], second[0]]) == {first[0]}
    assert engine.signals.send(target, "go").ok
    assert engine.tasks.get(second[0]).state == "ready"


def test_a_waiting_task_that_has_become_due_is_not_woken_as_well(
    engine: Engine, clock: ManualClock
) -> None:
    later = clock.now() + 5_000_000
    parent, child = with_child(engine, WakeCondition(children=True, until=later))
    heard = create(engine)
    wait = WakeCondition(target=heard, signals=("go",), until=later)
    assert engine.work.suspend(heard, take(engine, heard).token, wait).ok
    assert send(engine, heard)
    clock.advance(6)
    keep(engine, "mark_due", count=10)
    complete(engine, child)
    assert wake(engine, heard) == set()
    assert write(engine, "wake_parents", ids=[parent]) == set()


def test_a_task_that_waits_for_a_child_deleted_by_an_older_release_is_found_and_woken(
    engine: Engine, store_url: str
) -> None:
    parent, child = create(engine), create(engine, "child")
    attempt = take(engine, parent)
    gone, kept = (spawn(engine, attempt, title) for title in ("gone", "kept"))
    assert engine.work.suspend(parent, attempt.token, WakeCondition(children=True)).ok
    finish(engine, kept)
    # That release did not ask who had made it, and let nobody know.
    with raw(store_url) as run:
        run("UPDATE holdfast_task SET parent_epoch = NULL WHERE id = ?", gone)
    assert write(engine, "delete_task", task_id=gone, actor="user") == {gone}
    assert "waits for its children, and none of them is open" in str(engine.doctor())
    assert repair_store(engine, dry_run=True)["woken"] == [parent]
    assert repair_store(engine)["woken"] == [parent]
    assert engine.tasks.get(parent).state == "ready"
    assert [each.status for each in engine.work.children(parent, [gone, kept])] == [
        Status.CANCELLED,
        Status.DONE,
    ]
    assert engine.tasks.advance(child).reason is Refusal.INVALID_TRANSITION


def test_a_signal_that_a_release_before_this_one_has_sent_is_heard(
    engine: Engine, clock: ManualClock
) -> None:
    before = listening(engine, "go", "stop")
    heard, twice, late = (
        listening(engine, "stop", "go"),
        listening(engine, "a", "go"),
        create(engine),
    )
    ended = listening(engine, "go", "stop", target=heard)
    deaf = [listening(engine, *each, target=heard) for each in (("stop", "gone"), ("a-go", "Go"))]
    robbed = listening(engine, "go", "stop")
    wait = WakeCondition(target=late, signals=("go", "stop"), until=clock.now() + 1_000_000)
    assert engine.work.suspend(late, take(engine, late).token, wait).ok
    assert engine.tasks.cancel(ended).ok
    clock.advance(1)
    keep(engine, "mark_due", count=10)
    # That release woke only who waited for this signal and nothing else.
    for number, aim in enumerate((heard, twice, late, robbed)):
        assert send(engine, aim, number=number)
    assert send(engine, twice, name="a", number=9)
    assert take_signal(engine, take(engine, create(engine)), robbed) == ["3"]
    assert "waits for go, which was sent" in str(engine.doctor())
    woken = sorted([heard, twice])
    assert repair_store(engine, dry_run=True)["woken"] == woken
    assert engine.tasks.get(heard).state == "waiting"
    assert repair_store(engine)["woken"] == woken
    assert {engine.tasks.get(each).state for each in woken} == {"ready"}
    assert {engine.tasks.get(each).state for each in (before, robbed, *deaf)} == {"waiting"}


def test_parents_wake_when_their_own_children_have_ended(
    engine: Engine, clock: ManualClock
) -> None:
    pairs = [with_child(engine, WakeCondition(children=True)) for _ in range(4)]
    asleep = with_child(engine, WakeCondition(until=clock.now() + 9_000_000))
    (named, one), (other, two), (open_one, _), (cancelled, three) = pairs
    for child in (one, two, three, asleep[1]):
        complete(engine, child)
    assert engine.tasks.cancel(cancelled).ok
    deaf = with_child(engine, WakeCondition(target=named, signals=("children",)))
    complete(engine, deaf[1])
    ids = [named, open_one, cancelled, asleep[0], deaf[0]]
    assert write(engine, "wake_parents", ids=ids) == {named}
    assert write(engine, "wake_parents", ids=ids) == set()
    assert engine.tasks.get(other).waits_for == CHILDREN
    assert engine.tasks.advance(other).ok
    assert engine.tasks.get(other).state == "ready"


def test_the_oldest_signal_of_one_name_and_target_is_taken(engine: Engine) -> None:
    target, other = create(engine), create(engine)
    attempt = take(engine, create(engine))
    assert send(engine, other, number=1)
    assert send(engine, target, name="stop", number=2)
    for number in (3, 4):
        assert send(engine, target, number=number)
    assert [take_signal(engine, attempt, target) for _ in range(3)] == [["3"], ["4"], []]


def test_a_signal_is_taken_only_by_the_attempt_that_holds_the_lease(
    engine: Engine, clock: ManualClock
) -> None:
    target = create(engine)
    attempt, released = (take(engine, create(engine)) for _ in range(2))
    assert engine.work.release(released.task.id, released.token).ok
    assert send(engine, target)
    assert take_signal(engine, attempt, target, fence=2) == []
    assert take_signal(engine, released, target) == []
    assert take_signal(engine, attempt, target, fence=0) == []
    clock.advance(31)
    assert take_signal(engine, attempt, target) == []


def test_two_tasks_that_take_the_same_signal_at_once_share_nothing(
    engine: Engine, store_url: str, clock: ManualClock
) -> None:
    target = create(engine)
    attempts = [take(engine, create(engine)) for _ in range(2)]
    assert send(engine, target)
    wants = [
        TakeSignal(task_id=each.task.id, fence=1, target=target, signal="go", name="wait")
        for each in attempts
    ]
    racers = [Racer(store_url, name, clock) for name in ("first", "second")]
    try:
        stopped = racers[0].start_up_to(COMMIT, wants[:1])
        behind = racers[1].start(wants[1:])
        assert racers[1].go_as_far_as_possible(behind)
        stopped.finish()
        behind.result()
    finally:
        for racer in racers:
            racer.close()
    found = [engine.work.effects(each.task.id) for each in attempts]
    assert found == [{"wait": {"signal": 1}}, {}]


def test_only_children_that_a_task_made_itself_are_superseded_and_only_once(engine: Engine) -> None:
    attempts = [take(engine, create(engine)) for _ in range(2)]
    children = [spawn(engine, each) for each in attempts]
    below = spawn(engine, take(engine, children[0]))
    given = create(engine, parent=attempts[0].task.id)
    ids = [attempts[0].task.id]
    expected = {children[0], below}
    assert write(engine, "supersede_children", ids=ids, actor="user") == expected
    assert write(engine, "supersede_children", ids=ids, actor="user") == set()
    assert engine.tasks.get(given).status is Status.QUEUED


@pytest.mark.parametrize("back", ["reset", "reopen"])
def test_a_superseded_child_comes_back_by_no_operation(engine: Engine, back: str) -> None:
    parent = create(engine)
    child = spawn(engine, take(engine, parent))
    assert engine.tasks.cancel(parent).ok
    assert engine.tasks.reopen(parent).ok
    before = engine.tasks.get(child)
    assert before.superseded
    assert not getattr(engine.tasks, back)(child).ok
    assert engine.tasks.cancel(parent).ok
    assert engine.tasks.retry(parent).ok
    assert engine.tasks.get(child) == before


def test_a_task_that_is_begun_again_waits_for_nothing_it_waited_for_before(engine: Engine) -> None:
    wanted = Reference.parse("when", "steps.plan")
    steps = (Step(id="plan"), Step(id="wait", needs=("plan",), when=wanted))
    run = start(engine, Workflow.define("again", steps))
    run.finish("plan")
    attempt = run.take("wait")
    wait = WakeCondition(target=run.id, signals=("go",))
    assert engine.work.suspend(attempt.task.id, attempt.token, wait).ok
    assert engine.runs.retry(run.id, step="plan").ok
    assert run.task("wait").waits_for is None
    assert engine.signals.send(run.id, "go").ok
    finish(engine, run.steps["plan"], 0)
    assert run.statuses == {"plan": "done", "wait": "done"}
    assert run.task("wait").skipped
