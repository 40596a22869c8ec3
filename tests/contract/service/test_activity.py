"""Activity by hour and costs by day, counted from events at times that the test decides."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.retry import RetryPolicy
from holdfast.service.queries import activity
from holdfast.service.queries.activity import DAY, HOUR, find_first_event, view_activity, view_costs
from tests.contract.task_states import create, finish, start, take


def at_hour(clock: ManualClock, hour: int) -> None:
    """Move to that hour after midnight of the day on which the clock of the test began."""
    midnight = clock.now() // DAY * DAY
    clock.advance((midnight + hour * HOUR - clock.now()) / 1_000_000)


def complete(engine: Engine, task_id: str, usd: float) -> None:
    token = take(engine, task_id).token
    assert engine.work.complete(task_id, token, "output", usage={"usd": usd}).ok


def test_each_hour_has_what_was_done_in_it(engine: Engine, clock: ManualClock) -> None:
    at_hour(clock, 26)
    run = start(engine)
    run.finish("plan")
    task = create(engine, retry=RetryPolicy(max_attempts=1))
    clock.advance(3_600)
    token = take(engine, task).token
    assert engine.work.fail(task, token, "broken").ok
    assert engine.runs.cancel(run.id).ok
    clock.advance(3_600)
    first, second, third = view_activity(engine.database.view, 3)["items"]
    assert first["runs"] == {"started": 1, "completed": 0, "failed": 0, "cancelled": 0}
    assert first["tasks"] == {"done": 1, "failed": 0, "retried": 0, "lost": 0}
    assert (second["runs"]["cancelled"], second["tasks"]["failed"]) == (1, 1)
    assert third["runs"] == dict.fromkeys(third["runs"], 0)
    assert [each["hour"][11:16] for each in (first, second, third)] == ["02:00", "03:00", "04:00"]
    assert third["dispatch"] == {"attempts": 0}


def test_the_time_that_ready_work_waited_is_told(engine: Engine, clock: ManualClock) -> None:
    at_hour(clock, 26)
    waited = [create(engine) for _ in range(3)]
    later = create(engine, scheduled_for="10m")
    run = start(engine)
    clock.advance(60)
    for each in waited:
        finish(engine, each)
    clock.advance(660)
    engine.recovery.step()
    finish(engine, later)
    clock.advance(40)
    # What follows a step begins with its end, and waits for nobody.
    run.finish("plan", "work")
    (hour,) = view_activity(engine.database.view, 1)["items"]
    assert hour["dispatch"]["attempts"] == 6
    assert hour["dispatch"]["p50"] == 60
    assert hour["dispatch"]["p95"] == 760


def test_costs_are_told_by_the_day_of_a_place_and_by_workflow(
    engine: Engine, clock: ManualClock
) -> None:
    at_hour(clock, 24 + 23)
    run = start(engine)
    complete(engine, run.steps["plan"], 0.25)
    complete(engine, create(engine), 1.5)
    clock.advance(2 * 3_600)
    complete(engine, run.steps["work"], 0.5)
    finish(engine, create(engine))
    before, after = view_costs(engine.database.view, 2)["items"]
    assert (before["usd"], before["attempts"], before["workflows"]) == (1.75, 2, {"chain": 0.25})
    assert (after["usd"], after["attempts"], after["workflows"]) == (0.5, 1, {"chain": 0.5})
    assert before["day"] < after["day"]
    east = view_costs(engine.database.view, 2, offset=120)
    assert [each["usd"] for each in east["items"]] == [0, 2.25]
    assert east["usd"] == 2.25
    assert view_costs(engine.database.view, 1)["usd"] == 0.5


def test_the_first_event_of_a_time_is_found_by_its_number(
    engine: Engine, clock: ManualClock
) -> None:
    at_hour(clock, 26)
    find: Any = lambda since: engine.database.view(lambda tx: find_first_event(tx, since))  # noqa: E731
    assert find(clock.now()) <= 1
    for _ in range(10):
        create(engine)
        clock.advance(3_600)
    seqs = [
        event["seq"]
        for event in engine.database.view(lambda tx: tx.read("latest_events", count=10))
    ]
    assert find(clock.now() + DAY) == max(seqs) + 1
    middle = find(clock.now() - 5 * HOUR)
    # It is behind by the hour that is left for late commits, and by no more.
    assert min(seqs) < middle <= max(seqs) - 4


@pytest.mark.parametrize("bad", [0, -1, True, 10_000])
def test_bad_spans_are_refused(engine: Engine, bad: int) -> None:
    for look, field in ((view_activity, "hours"), (view_costs, "days")):
        with pytest.raises(InvalidInput, match=f"^{field}: "):
            look(engine.database.view, bad)
    with pytest.raises(InvalidInput, match=r"^offset: "):
        view_costs(engine.database.view, 1, activity.MAX_OFFSET + 1)
