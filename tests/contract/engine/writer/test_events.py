"""The events: one for each version, enough to fold back every row, and the attempts in them."""

from __future__ import annotations

from collections import Counter

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.event import RUN_FIELDS, TASK_FIELDS, fold_events
from holdfast.model.moment import to_datetime
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.task import Renewal
from holdfast.model.workflow.graph import Concurrency
from tests.contract.raw_store import Row, dump
from tests.contract.task_states import FORK, bring, create, finish, start, take

COMMON = ("status", "version", "generation")
UNTOLD = {
    "blocked": False,
    "holds": 0,
    "run_holds": 0,
    "failures": 0,
    "lost": 0,
    "epoch": 1,
    "priority": 0,
    "position": 0,
    "scheduled_for": None,
    "planning_phase": "none",
    "skipped": False,
    "run_now": False,
    "superseded": False,
    "waits_for": None,
    "round": 0,
}


RUN_UNTOLD = {"budget_usd": None, "budget_attempts": None, "deadline": None}


def live(engine: Engine, clock: ManualClock) -> None:
    """A little of everything that can happen to tasks and runs."""
    failing, retried, cancelled = (start(engine, FORK, priority=n) for n in range(3))
    for run in (failing, retried):
        run.finish("plan")
        left = run.take("left")
        run.break_for_good("right")
        assert engine.work.complete(left.task.id, left.token, 1, usage={"usd": 1}).ok
    assert engine.runs.retry(retried.id, step="left").ok
    retried.finish("left", "right", "join")
    assert engine.runs.pause(cancelled.id).ok
    assert engine.tasks.run_now(cancelled.steps["plan"]).ok
    assert engine.runs.cancel(cancelled.id).ok
    edited = create(engine, scheduled_for=clock.now() + 5, position=4)
    assert engine.tasks.edit(edited, {"priority": 3, "scheduled_for": None}).ok
    assert engine.tasks.hold(edited, "limit", until=clock.now() + 1).ok
    clock.advance(1)
    engine.recovery.step()
    assert engine.work.fail(edited, take(engine, edited).token, {"lost": 1}).ok
    lost = create(engine, retry=RetryPolicy(max_lost=1), needs=(edited,))
    assert engine.tasks.unblock(lost).ok
    take(engine, lost)
    clock.advance(31)
    engine.recovery.step()
    for status in Status:
        stage = bring(engine, status, concurrency=Concurrency(key="k", limit=9))
        engine.tasks.reset(stage.task_id)


def test_folding_the_events_gives_back_every_row(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    live(engine, clock)
    store = dump(store_url)
    assert len(store["holdfast_task"]) == 20
    for row in store["holdfast_task"]:
        told = UNTOLD | fold_events(engine.tasks.events(row["id"]))
        assert told == {name: row[name] for name in (*TASK_FIELDS, *COMMON, "attempt")}
    for row in store["holdfast_run"]:
        own = [event for event in engine.runs.events(row["id"]) if event.task_id is None]
        assert RUN_UNTOLD | fold_events(own) == {name: row[name] for name in (*RUN_FIELDS, *COMMON)}


def test_every_version_of_a_row_has_exactly_one_event(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    live(engine, clock)
    store = dump(store_url)
    versions = Counter((row["entity"], row["version"]) for row in store["holdfast_event"])
    assert set(versions.values()) == {1}
    rows: list[Row] = store["holdfast_task"] + store["holdfast_run"]
    expected = {(row["id"], n) for row in rows for n in range(1, row["version"] + 1)}
    assert versions.keys() == expected


def test_a_renewal_a_guard_and_time_passing_write_no_event(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    stage = bring(engine, Status.RUNNING)
    create(engine, scheduled_for=clock.now() + 5_000_000)
    events = dump(store_url)["holdfast_event"]
    for _ in range(5):
        clock.advance(1)
        assert engine.work.renew([Renewal(task_id=stage.task_id, token=stage.token, usage=5)])[0].ok
        assert engine.work.guard(stage.task_id, stage.token).ok
        engine.recovery.step()
    assert dump(store_url)["holdfast_event"] == events


def test_an_event_says_what_who_and_when(engine: Engine, clock: ManualClock) -> None:
    run = start(engine)
    clock.advance(1)
    (claimed,) = engine.work.claim("ada")
    last = engine.runs.events(run.id)[-1]
    assert (last.type, last.run_id, last.task_id) == ("task.running", run.id, claimed.task.id)
    assert (last.source, last.target, last.attempt) == ("queued", "running", 1)
    assert (last.actor, last.at, last.generation) == ("ada", to_datetime(clock.now()), 1)
    assert engine.tasks.events(claimed.task.id)[-1] == last


def test_the_history_of_a_run_is_in_the_order_it_was_written(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan", "work", "review")
    assert [event.type for event in engine.runs.events(run.id)] == [
        "run.started",
        *["task.created"] * 3,
        *["task.running", "task.done", "task.unblocked"] * 2,
        "task.running",
        "task.done",
        "run.completed",
    ]
    seqs = [event.seq for event in engine.runs.events(run.id)]
    assert seqs == sorted(seqs)


def test_the_attempts_of_a_task_are_kept_through_resets(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine, retry=RetryPolicy(max_lost=2))
    began = to_datetime(clock.now())
    assert engine.work.fail(task_id, take(engine, task_id).token, {"code": 7}, usage=[1]).ok
    clock.advance(300)
    assert engine.work.release(task_id, take(engine, task_id).token).ok
    for _ in range(2):
        take(engine, task_id)
        clock.advance(30)
        engine.work.recover()
    assert engine.tasks.retry(task_id).ok
    take(engine, task_id)
    assert engine.tasks.cancel(task_id).ok
    assert engine.tasks.reset(task_id).ok
    finish(engine, task_id)
    assert engine.tasks.reopen(task_id).ok
    take(engine, task_id)
    attempts = engine.tasks.attempts(task_id)
    assert [(attempt.number, attempt.outcome) for attempt in attempts] == [
        (1, "failed"),
        (2, "released"),
        (3, "lost"),
        (4, "lost"),
        (5, "cancelled"),
        (6, "completed"),
        (7, None),
    ]
    first = attempts[0]
    assert (first.claimed_at, first.ended_at, first.owner) == (began, began, "worker")
    assert (first.error, first.usage) == ({"code": 7}, [1])
    assert first.digest is not None
    assert attempts[-1].ended_at is None


def test_reports_whose_keys_match_those_of_events_do_not_mislead_the_doctor(
    engine: Engine, clock: ManualClock
) -> None:
    """Usage, errors and outputs may hold any key, also those that events use."""
    words = {"scheduled_for": 1, "holds": 9, "lost": 9, "blocked": True, "epoch": 7}
    first, second = (create(engine, scheduled_for=clock.now() + 1) for _ in range(2))
    clock.advance(1)
    one, two = take(engine, first), take(engine, second)
    assert engine.work.complete(first, one.token, words, usage=words).ok
    assert engine.work.fail(second, two.token, words, usage=words).ok
    assert [each.outcome for each in engine.tasks.attempts(second)] == ["failed"]
    assert str(engine.doctor()).endswith("no violations")
