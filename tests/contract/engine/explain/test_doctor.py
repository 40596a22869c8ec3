"""The doctor: a healthy store passes, and each check finds the one thing it is there for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.bus import Channel, Consumer, ConsumerOptions, Handler, SqlBus, Subscription
from holdfast.clock import ManualClock
from holdfast.definition.workflow_file import read_workflow_text
from holdfast.engine.engine import Engine
from holdfast.engine.explain.doctor import CHECKS, Diagnosis
from holdfast.model.run import NewRun
from holdfast.model.status import RUN_TRANSITIONS, TASK_TRANSITIONS, Status
from holdfast.model.workflow.graph import Concurrency
from holdfast.model.workflow.line import NewHead
from holdfast.store.sql_text.queries import load
from tests.contract.raw_store import Raw, drop_guards, raw
from tests.contract.task_states import bring, create, finish, start
from tests.engines import opened

PLANTS = {
    "needs_done_before_start": (
        "INSERT INTO holdfast_need (task_id, need_id, since) "
        "SELECT done.id, ready.id, 1 FROM holdfast_task AS done, holdfast_task AS ready "
        "WHERE done.title = 'done' AND ready.title = 'ready'"
    ),
    "transitions_allowed": (
        "UPDATE holdfast_event SET from_status = 'done' WHERE type = 'task.running'"
    ),
    "terminal_needs_generation": (
        "UPDATE holdfast_event SET generation = 1 WHERE type = 'task.retried'"
    ),
    "versions_gapless": "DELETE FROM holdfast_event WHERE type = 'task.running'",
    "fold_status": "UPDATE holdfast_task SET status = 'idle' WHERE title = 'ready'",
    "fold_numbers": "UPDATE holdfast_task SET priority = 99 WHERE title = 'ready'",
    "fold_marks": "UPDATE holdfast_task SET skipped = NOT skipped WHERE title = 'ready'",
    "one_live_lease": "UPDATE holdfast_task SET lease_expires_at = 5 WHERE title = 'ready'",
    "fence_increases": "UPDATE holdfast_event SET attempt = 7 WHERE type = 'task.running'",
    "end_carries_fence": "UPDATE holdfast_event SET attempt = 7 WHERE type = 'task.done'",
    "cancel_wins": "UPDATE holdfast_event SET generation = 1 WHERE type = 'task.retried'",
    "terminal_run_is_still": (
        "UPDATE holdfast_run SET status = 'failed', finished_at = 5 WHERE status = 'running'"
    ),
    "completed_means_done": (
        "UPDATE holdfast_run SET status = 'completed', finished_at = 5 WHERE status = 'running'"
    ),
    "one_key_one_row": "UPDATE holdfast_task SET key = 'same' WHERE run_id IS NULL",
    "budgets": "UPDATE holdfast_task SET failures = 99 WHERE title = 'ready'",
    "no_early_start": "UPDATE holdfast_event SET at = 0 WHERE type = 'task.running'",
    "concurrency_limits": "UPDATE holdfast_slot SET used = used + 1",
    "blocked_is_true": "UPDATE holdfast_task SET blocked = NOT blocked WHERE title = 'ready'",
    "needs_still_count": (
        "UPDATE holdfast_task SET superseded = true WHERE step = 'work' AND status <> 'done'"
    ),
    "run_holds_copied": "UPDATE holdfast_task SET run_holds = 8 WHERE run_id IS NOT NULL",
    "failing_is_marked": "UPDATE holdfast_run SET holds = 64 WHERE status = 'running'",
    "rows_are_there": "DELETE FROM holdfast_task WHERE title = 'ready'",
    "times_make_sense": "UPDATE holdfast_task SET due = false WHERE title = 'ready'",
    "ended_plans_are_still": (
        "UPDATE holdfast_task SET parent_id = (SELECT plan.id FROM holdfast_task AS plan "
        "WHERE plan.title = 'planned') WHERE title = 'ready'"
    ),
    "plans_wait_for_no_part": (
        "INSERT INTO holdfast_need (task_id, need_id, since) "
        "SELECT task.id, part.id, 1 FROM holdfast_task AS task, holdfast_task AS part "
        "WHERE task.title IN ('open', 'one') AND part.title = 'two'"
    ),
    "plans_end_with_children": (
        "UPDATE holdfast_task SET status = 'idle', finished_at = NULL WHERE title = 'planned'"
    ),
    "waits_end_with_children": (
        "UPDATE holdfast_task SET due = false, waits_for = 'children' WHERE title = 'ready'"
    ),
    "waits_end_with_signals": (
        "UPDATE holdfast_task SET due = false, waits_for = id || ' ,go,stop,' WHERE title = 'ready'"
    ),
    "schedules_end_with_runs": (
        "INSERT INTO holdfast_schedule (name, cron, zone, missed, template, input, run_id, "
        "body_digest, created_at) SELECT 'left', '0 9 * * *', 'UTC', 'one', '{}', '1', id, '', 5 "
        "FROM holdfast_run WHERE status = 'completed'"
    ),
    "results_are_kept": "UPDATE holdfast_task SET result_digest = 'other' WHERE title = 'done'",
    "calls_end_with_runs": (
        "UPDATE holdfast_run SET parent_id = (SELECT id FROM holdfast_task WHERE title = 'done'), "
        "parent_epoch = 1 WHERE status = 'running'"
    ),
    "messages_done_once": (
        "INSERT INTO holdfast_delivery "
        "(handler, message_id, channel, about, slot, envelope, tries) "
        "SELECT handler, message_id, 'workflow.events', 'r', 0, '{}', 1 "
        "FROM holdfast_processed_message"
    ),
    "events_reach_groups": "UPDATE holdfast_position SET passed = passed + 1000",
    "heads_follow_events": "UPDATE holdfast_commit SET sha = 'other'",
}
BAD_HEADS = {
    "head 3 follows no head 2": "UPDATE holdfast_commit SET number = 3 WHERE number = 2",
    ", attempt 1, is in no event": "UPDATE holdfast_commit SET sha = 'other' WHERE number = 1",
    "tells of head 2, which is not there": (
        "UPDATE holdfast_commit SET kind = 'draft', number = NULL WHERE number = 2"
    ),
    "began it anew, and did not fail": (
        "UPDATE holdfast_commit SET kind = 'anew' WHERE number = 1"
    ),
}
CALLS = "UPDATE holdfast_task SET calls = 'other', waits_for = ({}) WHERE title = '{}'"
RUN = "SELECT id FROM holdfast_run WHERE status = '{}'"
BAD_CALLS = {
    "which has completed": CALLS.format(RUN.format("completed"), "ready"),
    "which has never been": CALLS.format("SELECT 'r_none'", "ready"),
    "waits for no run": CALLS.format("SELECT NULL", "ready"),
    "its run is running": CALLS.format(RUN.format("running"), "done"),
}
PLACE = "INSERT INTO holdfast_position (channel, consumers, place, passed) VALUES {}"
BAD_READERS = {
    "has no place for some partition": ("DELETE FROM holdfast_position WHERE place = 0",),
    "acknowledged, and sent only up to": (
        PLACE.format("('workflow.events', 'relay/redis', 0, 1)"),
        PLACE.format("('workflow.events', 'relay/redis', 1, 2)"),
    ),
    "on workflow.commands, and the last number given was 0": (
        PLACE.format("('workflow.commands', 'ahead', 0, 1)"),
    ),
}
KEYED = "UPDATE holdfast_{0} SET key = 'same' WHERE id = (SELECT min(id) FROM holdfast_{0})"
TOMBSTONE = """
INSERT INTO holdfast_tombstone
  (entity, kind, name, key, body_digest, status, created_at, removed_at)
VALUES (?, ?, '', 'same', '', 'done', 1, 2)
"""
MORE_PLANTS = {
    "completed_means_done": (
        "UPDATE holdfast_task SET status = 'done', finished_at = 5 WHERE run_id IS NOT NULL"
    ),
    "concurrency_limits": "UPDATE holdfast_slot SET highest = 0",
    "failing_is_marked": (
        "UPDATE holdfast_task SET status = 'failed', finished_at = 5 WHERE run_id IS NOT NULL"
    ),
    "fold_numbers": "UPDATE holdfast_run SET holds = 8",
    "fold_status": "UPDATE holdfast_run SET generation = 2",
    "one_key_one_row": "UPDATE holdfast_run SET key = 'same'",
    "times_make_sense": "UPDATE holdfast_task SET held_until = 5 WHERE title = 'ready'",
    "versions_gapless": "UPDATE holdfast_run SET version = version + 1",
}


@pytest.fixture
def healthy(store_url: str) -> str:
    """A store in which a little of everything has happened."""
    clock = ManualClock()
    with opened(store_url, clock=clock) as engine:
        start(engine).finish("plan")
        start(engine).finish("plan", "work", "review")
        assert engine.signals.send(create(engine, "ready"), "go").ok
        scheduled = create(
            engine, "done", scheduled_for=clock.now() + 1, concurrency=Concurrency(key="k")
        )
        clock.advance(1)
        finish(engine, scheduled)
        cancelled = bring(engine, Status.CANCELLED)
        assert engine.tasks.retry(cancelled.task_id).ok
        planned = create(engine, "planned", enqueue=False)
        assert engine.tasks.start_planning(planned).ok
        child = create(engine, "child", parent=planned, enqueue=False)
        assert engine.tasks.finalize_plan(planned).ok
        finish(engine, child)
        _commit(engine)
        under_way = create(engine, "open", enqueue=False)
        assert engine.tasks.start_planning(under_way).ok
        for each in ("one", "two"):
            create(engine, each, parent=under_way, enqueue=False)
        assert engine.tasks.finalize_plan(under_way).ok
        _consume(engine)
    return store_url


def _commit(engine: Engine) -> None:
    """Let two steps of a run record the heads of its line."""
    steps = "[{id: a, run: [x]}, {id: b, run: [y]}, {id: c, approval: ok}]"
    flow = f"name: w\nworkspace: https://h/shop.git\nsteps: {steps}"
    run = engine.runs.start(NewRun(workflow=read_workflow_text(flow)))
    for number, sha in enumerate(("a" * 40, "b" * 40)):
        (held,) = engine.work.claim_by_id(engine.runs.task(run.id, "ab"[number]).id, "me")
        line = engine.work.open_line(held.task_id, held.token, "0" * 40).line
        assert line is not None
        new = NewHead(line=line.id, number=number, base=line.head, sha=sha)
        assert engine.work.complete(held.task_id, held.token, {}, commit=new).ok
    assert engine.runs.cancel(run.id).ok


def _consume(engine: Engine) -> None:
    """Have a group do with all that has happened what it does."""
    bus = SqlBus(engine)
    subscription = Subscription(channel=Channel.EVENTS, group="audit")
    handler = Handler(name="note", handle=lambda *_: None, types=frozenset({"run.completed"}))
    consumer = Consumer(engine, bus, subscription, [handler], ConsumerOptions(name="audit-1"))
    consumer.drain()
    consumer.close()
    bus.close()


@contextmanager
def without_guards(url: str) -> Iterator[Raw]:
    with raw(url) as run:
        drop_guards(run)
        run("DROP INDEX holdfast_task_key")
        run("DROP INDEX holdfast_run_key")
        yield run


def diagnose(url: str) -> Diagnosis:
    engine = Engine(url, clock=ManualClock())
    try:
        return engine.doctor()
    finally:
        engine.close()


def test_a_healthy_store_passes_every_check(healthy: str) -> None:
    diagnosis = diagnose(healthy)
    assert diagnosis.ok
    assert [check.name for check in diagnosis.checks] == list(CHECKS)
    assert str(diagnosis) == f"{len(CHECKS)} checks, no violations"


@pytest.mark.parametrize(
    ("check", "plant"), [*PLANTS.items(), *MORE_PLANTS.items()], ids=lambda value: value[:40]
)
def test_each_check_finds_what_it_is_there_for(healthy: str, check: str, plant: str) -> None:
    with without_guards(healthy) as run:
        run(plant)
    diagnosis = diagnose(healthy)
    assert not diagnosis.ok
    found = {each.name for each in diagnosis.checks if each.violations}
    assert check in found
    assert f"{check}: " in str(diagnosis)


def test_each_way_in_which_a_call_and_its_run_part_is_found(healthy: str) -> None:
    for told, plant in BAD_CALLS.items():
        with raw(healthy) as run:
            run(plant)
        assert told in str(diagnose(healthy))


def test_each_way_in_which_heads_and_events_part_is_found(healthy: str) -> None:
    assert diagnose(healthy).ok
    for told, plant in BAD_HEADS.items():
        with raw(healthy) as run:
            run("CREATE TABLE kept_commits AS SELECT * FROM holdfast_commit")
            run(plant)
        assert told in str(diagnose(healthy))
        with raw(healthy) as run:
            run("DELETE FROM holdfast_commit")
            run("INSERT INTO holdfast_commit SELECT * FROM kept_commits")
            run("DROP TABLE kept_commits")


def test_each_way_in_which_events_are_kept_from_readers_is_found(healthy: str) -> None:
    assert diagnose(healthy).ok
    for told, plants in BAD_READERS.items():
        with raw(healthy) as run:
            for plant in plants:
                run(plant)
        assert told in str(diagnose(healthy))


def test_a_key_that_a_removed_run_or_task_has_is_found(healthy: str) -> None:
    with raw(healthy) as run:
        for kind in ("run", "task"):
            run(KEYED.format(kind))
            run(TOMBSTONE, f"gone {kind}", kind)
    said = str(diagnose(healthy))
    assert [f"gone {kind}, which was removed" in said for kind in ("run", "task")] == [True, True]


def test_every_check_has_a_plant() -> None:
    assert PLANTS.keys() == set(CHECKS)


@pytest.mark.parametrize("entity", ["task", "run"])
def test_the_doctor_knows_the_transition_table(entity: str) -> None:
    text = load("sqlite")["check_transitions_allowed"].text
    tasks, _, runs = text.partition("event.entity = event.run_id")
    listed = set(re.findall(r"'(\w+)>(\w+)'", tasks if entity == "task" else runs))
    table = TASK_TRANSITIONS if entity == "task" else RUN_TRANSITIONS
    assert listed == {(move.source, move.target) for move in table}


def test_a_move_that_only_runs_may_make_is_none_for_a_task(healthy: str) -> None:
    change = (
        "UPDATE holdfast_event SET {} WHERE entity = "
        "(SELECT entity FROM holdfast_event WHERE type = 'task.retried') AND version = {}"
    )
    with raw(healthy) as run:
        run(change.format("to_status = 'running'", 4))
    allowed = next(c for c in diagnose(healthy).checks if c.name == "transitions_allowed")
    assert [each.detail for each in allowed.violations] == ["version 4: cancelled → running"]
