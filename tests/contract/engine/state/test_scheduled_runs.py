"""A run that is scheduled for later starts then, and nothing of it before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.event import fold_events
from holdfast.model.moment import to_datetime
from holdfast.model.run import NewRun
from holdfast.model.schedule import NewSchedule
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.task_states import CHAIN, StartedRun, create, start, take

REPO = Concurrency(key="repo")
HOUR = 3_600


def test_a_scheduled_run_starts_at_its_time(engine: Engine, clock: ManualClock) -> None:
    run, due = start(engine, scheduled_for="1h"), clock.now() + HOUR * MICROSECONDS
    assert engine.runs.get(run.id).scheduled_for == to_datetime(due)
    assert (run.status, run.holds) == ("running", ["scheduled"])
    assert run.states == {"plan": "scheduled", "work": "blocked", "review": "blocked"}
    assert engine.work.claim("worker", count=9) == []
    assert engine.recovery.step() <= HOUR
    clock.advance(HOUR - 1)
    engine.recovery.step()
    assert run.holds == ["scheduled"]
    clock.advance(1)
    engine.recovery.step()
    assert run.holds == []
    (claimed,) = engine.work.claim("worker", count=9)
    assert claimed.task_id == run.steps["plan"]
    assert engine.work.complete(claimed.task_id, claimed.token, None).ok
    run.finish("work", "review")
    assert run.status == "completed"
    told = fold_events(event for event in engine.runs.events(run.id) if event.task_id is None)
    assert told["holds"] == 0


def test_nothing_of_a_scheduled_run_is_evaluated_settled_or_skipped_before_its_time(
    engine: Engine, clock: ManualClock
) -> None:
    never = Workflow.define(
        "never",
        (
            Step(id="skipped", when=Reference.parse("when", "input.wanted")),
            Step(
                id="each", for_each=Reference.parse("over", "input.items"), steps=(Step(id="do"),)
            ),
        ),
    )
    run = start(engine, never, input={"wanted": False, "items": []}, scheduled_for="1h")
    asked = start(
        engine, Workflow.define("asked", (Step(id="ok", approval="Go?"),)), scheduled_for="1h"
    )
    assert engine.runs.advance(run.id).completed is False
    assert not engine.tasks.approve(asked.steps["ok"]).ok
    assert run.statuses == {"skipped": "queued", "each": "queued"}
    clock.advance(HOUR)
    engine.recovery.step()
    assert run.status == "completed"
    assert engine.tasks.approve(asked.steps["ok"]).ok
    assert asked.status == "completed"


def test_a_scheduled_run_takes_the_slot_of_its_key_only_when_it_begins(
    engine: Engine, clock: ManualClock
) -> None:
    later = start(engine, scheduled_for="1h", concurrency=REPO)
    gone = start(engine, scheduled_for="1h", concurrency=REPO)
    first = start(engine, concurrency=REPO)
    assert (later.holds, first.holds) == (["scheduled"], [])
    assert engine.runs.cancel(gone.id).ok
    clock.advance(HOUR)
    engine.recovery.step()
    assert (first.holds, later.holds) == ([], ["slot"])
    first.finish("plan", "work", "review")
    assert later.holds == []
    assert engine.recovery.step() > 0


def test_a_resume_starts_a_scheduled_run_at_once(engine: Engine, clock: ManualClock) -> None:
    run = start(engine, scheduled_for="1h")
    assert engine.runs.pause(run.id).ok
    assert engine.runs.resume(run.id).ok
    assert run.holds == ["scheduled"]
    assert engine.runs.resume(run.id).ok
    assert run.holds == []
    assert engine.runs.resume(run.id).repeated
    named = start(engine, scheduled_for="1h")
    assert engine.runs.unhold(named.id, "scheduled").ok
    assert named.states["plan"] == "ready"
    with pytest.raises(InvalidInput, match=r"^hold: a run is scheduled when it is started"):
        engine.runs.hold(run.id, "scheduled")
    with pytest.raises(InvalidInput, match=r"^hold: 'scheduled' is not one of"):
        engine.tasks.hold(run.steps["plan"], "scheduled")
    clock.advance(HOUR)
    assert engine.runs.begin_due() == []


def test_a_cancelled_run_does_not_start_and_a_retry_of_it_is_due_at_once(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine, scheduled_for="1h")
    assert engine.runs.cancel(run.id).ok
    clock.advance(HOUR)
    engine.recovery.step()
    assert run.status == "cancelled"
    run = start(engine, scheduled_for="1h")
    assert engine.runs.cancel(run.id).ok
    assert engine.runs.retry(run.id).ok
    assert (run.holds, run.states["plan"]) == ([], "ready")


def test_a_deadline_counts_from_the_time_of_a_scheduled_run(
    engine: Engine, clock: ManualClock
) -> None:
    due = datetime.now(UTC).replace(year=2040)
    run = start(engine, scheduled_for=due, deadline=60)
    assert engine.runs.get(run.id).deadline == due + timedelta(seconds=60)
    begun = start(engine, deadline=60, scheduled_for=due - timedelta(days=30 * 365))
    assert begun.holds == []
    assert engine.runs.get(begun.id).deadline == to_datetime(clock.now() + 60 * MICROSECONDS)


def test_the_deadline_of_a_run_that_begins_before_its_time_counts_from_then(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine, scheduled_for="1h", deadline=60)
    assert engine.runs.resume(run.id).ok
    until = clock.now() + 60 * MICROSECONDS
    assert engine.runs.get(run.id).deadline == to_datetime(until)
    told = fold_events(event for event in engine.runs.events(run.id) if event.task_id is None)
    assert told["deadline"] == until
    clock.advance(60)
    engine.recovery.step()
    assert run.status == "failed"


def test_the_runs_of_a_schedule_have_its_options(engine: Engine, clock: ManualClock) -> None:
    options: dict[str, Any] = {"priority": 3, "deadline": 60, "concurrency": REPO}
    starts = NewRun(workflow=CHAIN, **options)
    engine.schedules.put(NewSchedule(name="n", cron="0 2 * * *", starts=starts))
    clock.advance(24 * HOUR)
    engine.recovery.step()
    (run,) = engine.runs.list()
    assert (run.priority, run.concurrency_key) == (3, "run:repo")
    assert run.deadline == run.created_at + timedelta(seconds=60)


def test_options_are_not_what_a_key_stands_for(engine: Engine) -> None:
    made = engine.runs.start(NewRun(workflow=CHAIN, key="once", scheduled_for="1h", priority=3))
    before = engine.runs.get(made.id)
    others: list[dict[str, Any]] = [
        {"priority": 9},
        {"scheduled_for": "2h"},
        {"concurrency": REPO},
        {"deadline": 5},
    ]
    for options in others:
        again = engine.runs.start(NewRun(workflow=CHAIN, key="once", **options))
        assert (again.id, again.created) == (made.id, False)
    assert engine.runs.get(made.id) == before
    assert {task.priority for task in engine.runs.tasks(made.id)} == {3}


def test_why_says_until_when_a_run_waits_and_how_to_start_it_now(engine: Engine) -> None:
    run = start(engine, scheduled_for="90m")
    told = engine.why_run(run.id)
    assert ", starts 20" in told.summary
    assert told.summary.endswith("Z, in 1h 30m")
    assert told.fix == f'hf.runs.resume("{run.id}")'
    task = engine.why(run.steps["plan"])
    assert task.summary == "plan is queued, not running (scheduled)"
    assert "hold: scheduled, starts 20" in str(task)


@pytest.mark.parametrize("bad", [True, "soon", -5, "2030-01-01T00:00", 10**20])
def test_a_time_that_is_none_is_refused(engine: Engine, bad: object) -> None:
    with pytest.raises(InvalidInput, match=r"^scheduled_for: "):
        start(engine, scheduled_for=bad)
    with pytest.raises(InvalidInput, match=r"^concurrency: "):
        start(engine, concurrency="repo")
    with pytest.raises(InvalidInput, match=r"^scheduled_for: belongs to one call"):
        engine.schedules.put(
            NewSchedule(
                name="n", cron="0 2 * * *", starts=NewRun(workflow=CHAIN, scheduled_for="1h")
            )
        )


def test_only_the_named_run_begins_and_only_while_it_runs_and_is_scheduled(engine: Engine) -> None:
    other, run, gone = (start(engine, scheduled_for="1h") for _ in range(3))
    assert engine.runs.cancel(gone.id).ok
    before = engine.runs.get(gone.id)
    assert engine.runs.unhold(gone.id, "scheduled").reason == "already_terminal"
    assert engine.runs.get(gone.id) == before
    assert engine.runs.unhold(run.id, "scheduled").ok
    assert other.holds == ["scheduled"]
    begun = engine.runs.get(run.id)
    assert engine.runs.unhold(run.id, "scheduled").repeated
    assert engine.runs.get(run.id) == begun


def test_a_workflow_starts_with_options(hf: Holdfast) -> None:
    checkout = hf.workflow("checkout")

    @checkout.step
    def pack(order_id: int) -> int:
        return order_id

    later = datetime.now(UTC) + timedelta(hours=1)
    run = checkout.start(
        order_id=7, key="order-7", priority=5, scheduled_for=later, concurrency=("customer-7", 2)
    )
    found = hf.runs.get(run.id)
    assert (found.priority, found.concurrency_key) == (5, "run:customer-7")
    assert found.scheduled_for == later
    assert hf.runs.tasks(run.id)[0].priority == 5
    again = checkout.start(order_id=7, key="order-7", priority=9)
    assert (again.id, again.created) == (run.id, False)
    assert hf.runs.resume("key:order-7").ok
    with hf.worker():
        assert run.result("20s") == 7


def test_an_input_of_the_name_of_an_option_is_the_input(hf: Holdfast) -> None:
    tickets = hf.workflow("tickets")

    @tickets.step
    def sort(priority: str) -> str:
        return priority

    given: dict[str, Any] = {"priority": "high"}
    run = tickets.start(**given)
    assert hf.runs.get(run.id).priority == 0
    assert hf.runs.get(run.id).input == {"priority": "high"}


def test_tasks_of_a_scheduled_run_are_counted_as_scheduled(engine: Engine) -> None:
    run: StartedRun = start(engine, scheduled_for="1h")
    create(engine)
    counted = {
        row["state"]: row["tasks"]
        for row in engine.database.view(lambda tx: tx.read("open_tasks_by_agent"))
    }
    assert counted == {"ready": 1, "scheduled": 1, "blocked": 2}
    assert engine.runs.resume(run.id).ok
    take(engine, run.steps["plan"])
