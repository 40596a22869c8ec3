"""What has all it needs now goes on with a worker that has room, by one change of its row.

Each guard is put to the statement alone, after one report and nothing that should follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.status import Status
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.guards import test_claims as clauses
from tests.contract.raw_store import Raw, raw
from tests.contract.single_statements import complete
from tests.contract.task_states import CHAIN, FORK, StartedRun, bring, create, start, take

Arrange = Callable[[Engine, Raw], str]
Hold = Callable[[Engine, StartedRun], object]
KEYED = Step(id="work", needs=("plan",), concurrency=Concurrency(key="key", limit=2))
PLAN, BESIDE = Step(id="plan"), Step(id="beside", needs=("plan",))
FLAG = Reference.parse("when", "steps.plan.flag")
TAGGED = Step(id="work", needs=("plan",), tags=("linux",))


@pytest.fixture
def hand(engine: Engine, store_url: str) -> Iterator[Raw]:
    assert engine.doctor().ok
    with raw(store_url) as connection:
        yield connection


def planned(engine: Engine, workflow: Workflow = CHAIN, **fields: Any) -> StartedRun:
    """A run whose first step is done, and nothing has followed from it."""
    run = start(engine, workflow, **fields)
    run.take("plan")
    complete(engine, run.steps["plan"])
    return run


def hand_on(engine: Engine, run: StartedRun, **changes: Any) -> dict[str, str]:
    """What became of the steps of a run that were handed on, by their names."""
    asked = {
        "ids": [run.steps["plan"]],
        "runs": [run.id],
        "agent": "default",
        "tags": '["linux"]',
        "worker": "anna",
        "lease": 30_000_000,
        "count": 1,
        **changes,
    }
    changed = engine.database.transact(lambda tx: tx.change("hand_on", **asked))
    names = {task_id: step for step, task_id in run.steps.items()}
    return {names[row["entity"]]: row["status"] for row in changed}


def test_steps_whose_needs_are_done_start_as_far_as_there_is_room(
    engine: Engine,
) -> None:
    run = planned(engine, FORK)
    assert hand_on(engine, run) == {"left": "running", "right": "queued"}
    assert run.states == {"plan": "done", "left": "running", "right": "ready", "join": "blocked"}
    # What is in line is started by whoever claims it.
    assert hand_on(engine, run) == {}
    complete(engine, run.steps["left"])
    assert hand_on(engine, run, ids=[run.steps["left"]]) == {}
    run.take("right")
    complete(engine, run.steps["right"])
    assert hand_on(engine, run, ids=[run.steps["right"]]) == {"join": "running"}
    # None of it twice.
    assert hand_on(engine, run, ids=list(run.steps.values())) == {}


def test_a_step_whose_own_need_is_not_done_is_left_alone(engine: Engine) -> None:
    run, other = planned(engine), planned(engine)
    assert hand_on(engine, run, runs=[run.id, other.id], count=2) == {"work": "running"}
    assert other.states["work"] == "blocked"
    engine.runs.advance(other.id)


def test_a_cancelled_task_stays_cancelled_when_its_need_is_done(engine: Engine) -> None:
    run = planned(engine)
    assert engine.tasks.cancel(run.steps["work"]).ok
    assert hand_on(engine, run) == {}
    engine.runs.advance(run.id)


def held(engine: Engine, run: StartedRun) -> None:
    assert engine.tasks.hold(run.steps["work"], "question").ok


def paused_with_its_run(engine: Engine, run: StartedRun) -> None:
    assert engine.runs.pause(run.id).ok


def scheduled(engine: Engine, run: StartedRun) -> None:
    later = engine.clock.now() + 1_000_000
    assert engine.tasks.edit(run.steps["work"], {"scheduled_for": later}).ok


def for_another_agent(engine: Engine, run: StartedRun) -> None:
    assert engine.tasks.edit(run.steps["work"], {"agent": "other"}).ok


def at_its_usage_limit(engine: Engine, _: StartedRun) -> None:
    reached = take(engine, create(engine))
    assert engine.work.reach_limit(reached.task_id, reached.token, "1h").ok


def test_bare_tasks_are_not_handed_on_and_stand_before_none(engine: Engine, hand: Raw) -> None:
    run, other = planned(engine), planned(engine)
    # It is older, and waits for others than workers.
    assert engine.tasks.run_now(create(engine)).ok
    # So do these, whose tags and key a claim would have to look at.
    create(engine, tags=("gpu",))
    create(engine, concurrency=clauses.TWO)
    hand("UPDATE holdfast_task SET bare = true WHERE id = ?", other.steps["work"])
    assert hand_on(engine, other) == {"work": "queued"}
    assert hand_on(engine, run) == {"work": "running"}


@pytest.mark.parametrize(
    "keep", [held, paused_with_its_run, scheduled, for_another_agent, at_its_usage_limit]
)
def test_a_task_that_no_claim_would_take_is_only_unblocked(engine: Engine, keep: Hold) -> None:
    run = start(engine)
    run.take("plan")
    keep(engine, run)
    complete(engine, run.steps["plan"])
    assert hand_on(engine, run) == {"work": "queued"}


def test_a_task_of_a_run_that_is_not_locked_is_only_unblocked(engine: Engine) -> None:
    assert hand_on(engine, planned(engine), runs=[]) == {"work": "queued"}


@pytest.mark.parametrize("step", [KEYED, TAGGED], ids=["key", "tags"])
def test_a_task_with_a_concurrency_key_or_tags_is_only_unblocked(
    engine: Engine, step: Step
) -> None:
    run = planned(engine, Workflow.define("special", (Step(id="plan"), step)))
    assert hand_on(engine, run) == {"work": "queued"}


def test_tasks_beside_a_loop_or_a_condition_are_only_unblocked(engine: Engine) -> None:
    listed = Reference.parse("for_each", "steps.plan.list")
    loop = Step(id="loop", needs=("plan",), for_each=listed, steps=(Step(id="one"),))
    decided = Step(id="decided", needs=("plan",), when=FLAG)
    for each in (loop, decided):
        run = planned(engine, Workflow.define(each.id, (PLAN, BESIDE, each)))
        assert hand_on(engine, run, count=9) == {"beside": "queued", each.id: "queued"}
        assert engine.runs.cancel(run.id).ok


def test_a_task_that_has_run_before_is_only_unblocked_and_its_cost_is_left_to_the_claim(
    engine: Engine,
) -> None:
    run = start(engine)
    run.finish("plan")
    token = run.take("work").token
    assert engine.work.fail(run.steps["work"], token, "no", retryable=False, usage={"usd": 1}).ok
    assert engine.runs.retry(run.id, step="plan").ok
    run.take("plan")
    complete(engine, run.steps["plan"])
    assert hand_on(engine, run) == {"work": "queued"}
    run.take("work")
    assert run.task("work").attempt == 2


def older(engine: Engine, _: Raw) -> str:
    return create(engine, step="pack")


def more_urgent(engine: Engine, _: Raw) -> str:
    return create(engine, step="pack", priority=1)


def wanted_now(engine: Engine, _: Raw) -> str:
    task_id = create(engine, step="pack")
    assert engine.tasks.run_now(task_id).ok
    return task_id


def earlier_in_its_plan(engine: Engine, hand: Raw) -> str:
    task_id = create(engine, step="pack")
    hand("UPDATE holdfast_task SET position = -1 WHERE id = ?", task_id)
    return task_id


@pytest.mark.parametrize("arrange", [older, more_urgent, wanted_now, earlier_in_its_plan])
def test_a_task_before_the_unblocked_one_in_line_is_claimed_first(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    first = arrange(engine, hand) if arrange is older else None
    run = planned(engine)
    rival = first or arrange(engine, hand)
    assert hand_on(engine, run) == {"work": "queued"}
    assert [each.task_id for each in engine.work.claim("bob")] == [rival]
    hand("UPDATE holdfast_task SET position = 0")


def test_a_task_behind_the_unblocked_one_in_line_does_not_keep_it_from_starting(
    engine: Engine,
) -> None:
    run = planned(engine, priority=1)
    create(engine, "newer, and less urgent", step="pack")
    assert hand_on(engine, run) == {"work": "running"}


def running(engine: Engine, _: Raw) -> str:
    return bring(engine, Status.DONE).task_id


def parked(engine: Engine, hand: Raw) -> str:
    task_id = create(engine)
    hand("UPDATE holdfast_task SET parked = true WHERE id = ?", task_id)
    return task_id


NOT_READY = [
    clauses.blocked,
    clauses.held,
    clauses.held_by_its_run,
    clauses.scheduled,
    clauses.for_another_agent,
    clauses.no_work,
    running,
    parked,
]


@pytest.mark.parametrize("arrange", NOT_READY)
def test_an_older_task_that_is_not_ready_keeps_no_task_from_starting(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    task_id = arrange(engine, hand)
    hand("UPDATE holdfast_task SET bare = false WHERE id = ?", task_id)
    assert hand_on(engine, planned(engine)) == {"work": "running"}
    hand("UPDATE holdfast_task SET parked = false")


@pytest.mark.parametrize("arrange", [*NOT_READY, clauses.with_another_tag])
def test_a_step_is_left_to_a_claim_beside_a_task_with_tags_or_with_a_key_that_could_run(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    run = planned(engine)
    tagged = arrange is clauses.with_another_tag
    task_id = arrange(engine, hand)
    hand("UPDATE holdfast_task SET bare = false WHERE id = ?", task_id)
    if not tagged:
        hand("UPDATE holdfast_task SET concurrency_key = ? WHERE id = ?", clauses.KEY, task_id)
    assert hand_on(engine, run) == {"work": "queued" if tagged else "running"}
    other = planned(engine)
    create(engine, step="pack", concurrency=clauses.TWO)
    assert hand_on(engine, other) == {"work": "queued"}
    hand("UPDATE holdfast_task SET concurrency_key = NULL, parked = false WHERE id = ?", task_id)
