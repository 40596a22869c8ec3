"""An advance that is idempotent and knows the order: seven scenarios and their edge cases."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import AdvanceResult, Refusal
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.crash_states import put_status, take_back_an_unblocking, take_back_the_end
from tests.contract.raw_store import dump
from tests.contract.task_states import FORK, MISSING_RUN, StartedRun, start

Pair = tuple[Engine, Engine]
NOTHING = AdvanceResult(advanced=False, completed=False)
NAMES = ("brainstorm", "plan", "work", "review", "compound")
LOOP = Workflow.define(
    "compound-engineering",
    tuple(
        Step(id=name, needs=NAMES[place - 1 : place] if place else ())
        for place, name in enumerate(NAMES)
    ),
)


def advance_from_everywhere(engines: Sequence[Engine], run: StartedRun) -> list[AdvanceResult]:
    calls = [each.runs.advance.submit(run.id) for each in engines for _ in range(4)]
    return [call.result() for call in calls]


def history(run: StartedRun, step: str) -> list[str]:
    return [event.type for event in run.engine.tasks.events(run.steps[step])]


def test_sequential_advancement(engine: Engine) -> None:
    run = start(engine, LOOP)
    run.finish("brainstorm")
    assert (run.states["brainstorm"], run.states["plan"]) == ("done", "ready")
    assert run.states["work"] == "blocked"


@pytest.mark.parametrize("status", ["pending", "running"])
def test_predecessor_blocking(engine: Engine, status: str) -> None:
    run = start(engine, LOOP)
    run.finish("brainstorm")
    if status == "running":
        run.take("plan")
    assert engine.runs.advance(run.id) == NOTHING
    assert run.states["work"] == "blocked"
    assert engine.work.claim_by_id(run.steps["work"], "worker") == []


def test_concurrent_calls_and_state_regression_prevention(engines: Pair, store_url: str) -> None:
    run = start(engines[0], LOOP)
    run.finish("brainstorm")
    take_back_an_unblocking(store_url, run.steps["plan"])
    answers = advance_from_everywhere(engines, run)
    assert sorted(answer.advanced for answer in answers) == [False] * 7 + [True]
    run.take("plan")
    assert set(advance_from_everywhere(engines, run)) == {NOTHING}
    assert run.task("plan").status == "running"
    assert history(run, "plan") == ["task.created", "task.unblocked", "task.running"]


def test_run_completion(engines: Pair, store_url: str) -> None:
    run = start(engines[0], LOOP)
    run.finish(*NAMES)
    assert run.status == "completed"
    take_back_the_end(store_url, run.id)
    answers = advance_from_everywhere(engines, run)
    assert sorted(answer.completed for answer in answers) == [False] * 7 + [True]
    assert run.status == "completed"
    assert run.event_types().count("run.completed") == 1


def test_failed_step_healing(engines: Pair, store_url: str) -> None:
    run = start(engines[0], LOOP)
    run.break_for_good("brainstorm")
    take_back_the_end(store_url, run.id)
    assert (run.status, run.holds) == ("running", [])
    assert set(advance_from_everywhere(engines, run)) == {NOTHING}
    assert (run.status, run.holds) == ("failed", ["failing"])
    assert engines[0].runs.get(run.id).error == "broken"
    assert run.event_types() == ["run.started", "run.held", "run.failed"]


def test_already_completed_run(engine: Engine, store_url: str) -> None:
    run = start(engine, LOOP)
    run.finish(*NAMES)
    store = dump(store_url)
    assert engine.runs.advance(run.id) == NOTHING
    assert dump(store_url) == store


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_failed_or_cancelled_run_guard(engine: Engine, store_url: str, status: str) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    if status == "failed":
        take_back_an_unblocking(store_url, run.steps["right"])
        run.break_for_good("left")
    else:
        assert engine.runs.cancel(run.id).ok
    store = dump(store_url)
    assert engine.runs.advance(run.id) == NOTHING
    assert run.status == status
    assert dump(store_url) == store
    assert engine.runs.retry(run.id).ok
    assert engine.runs.advance(run.id).advanced == (status == "failed")
    assert run.states["right"] == "ready"


def test_advance_called_when_next_step_is_already_pending(engine: Engine, store_url: str) -> None:
    run = start(engine, LOOP)
    run.finish("brainstorm", "plan")
    store = dump(store_url)
    assert engine.runs.advance(run.id) == NOTHING
    assert dump(store_url) == store


def test_advance_called_when_next_step_is_already_running(engine: Engine, store_url: str) -> None:
    run = start(engine, LOOP)
    run.finish("brainstorm", "plan")
    run.take("work")
    store = dump(store_url)
    assert engine.runs.advance(run.id) == NOTHING
    assert dump(store_url) == store


def test_advance_called_on_a_missing_run(engine: Engine, store_url: str) -> None:
    start(engine, LOOP)
    store = dump(store_url)
    assert engine.runs.advance(MISSING_RUN) == NOTHING
    assert dump(store_url) == store


def test_unexpected_step_status_logs_a_warning_and_is_left(
    engine: Engine, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = start(engine, LOOP)
    run.finish("brainstorm")
    take_back_an_unblocking(store_url, run.steps["plan"])
    put_status(store_url, run.steps["review"], "waiting")
    store = dump(store_url)
    with caplog.at_level(logging.WARNING, "holdfast.advance"):
        assert engine.runs.advance(run.id) == NOTHING
    assert "waiting" in caplog.text
    assert run.steps["review"] in caplog.text
    assert dump(store_url) == store
    put_status(store_url, run.steps["review"], "queued")
    assert engine.runs.advance(run.id) == AdvanceResult(advanced=True, completed=False)


def test_the_first_hook_after_the_commit_throws_and_the_second_still_runs(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def archive(_: Sequence[str]) -> None:
        raise OSError("the archive is full")

    engine.on_end(archive)
    engine.on_end(told.extend)
    run = start(engine, Workflow.define("short", (Step(id="only"),)))
    ended = engine.outcomes.wait(run.id)
    run.finish("only")
    assert told == [run.steps["only"], run.id]
    assert ended.result(timeout=0)["status"] == "completed"
    assert "the archive is full" in caplog.text


def test_review_and_compound_never_run_while_work_is_pending(engine: Engine) -> None:
    run = start(engine, LOOP)
    for step in NAMES:
        (assignment,) = engine.work.claim("worker", count=len(NAMES))
        assert assignment.task.step == step
        assert engine.runs.advance(run.id) == NOTHING
        assert engine.work.claim("another", count=len(NAMES)) == []
        assert engine.work.complete(assignment.task.id, assignment.token, step).ok
    assert run.status == "completed"


def test_events_are_emitted_exactly_once_per_state_transition(engines: Pair) -> None:
    run = start(engines[0], LOOP)
    for place, step in enumerate(NAMES):
        assignment = run.take(step)
        reports = [
            each.work.complete.submit(assignment.task.id, assignment.token, step)
            for each in engines
        ]
        assert sorted(report.result().repeated for report in reports) == [False, True]
        advance_from_everywhere(engines, run)
        unblocked = ["task.unblocked"] if place else []
        assert history(run, step) == ["task.created", *unblocked, "task.running", "task.done"]
    assert run.event_types() == ["run.started", "run.completed"]


def test_cleanup_of_an_abandoned_step_settles_its_run(engine: Engine, clock: ManualClock) -> None:
    once = RetryPolicy(max_lost=1)
    run = start(engine, Workflow.define("fragile", (Step(id="only", retry=once), Step(id="rest"))))
    run.take("only")
    clock.advance(30)
    engine.recovery.step()
    assert run.statuses == {"only": "failed", "rest": "queued"}
    assert run.status == "failed"


def test_an_unexecuted_step_is_not_marked_done(engine: Engine, store_url: str) -> None:
    run = start(engine, LOOP)
    brainstorm = run.take("brainstorm")
    store = dump(store_url)
    for step in NAMES[1:]:
        answer = engine.work.complete(run.steps[step], brainstorm.token, "stolen")
        assert (answer.ok, answer.reason) == (False, Refusal.STALE_TOKEN)
        assert engine.work.fail(run.steps[step], brainstorm.token, "stolen").ok is False
    assert dump(store_url) == store
