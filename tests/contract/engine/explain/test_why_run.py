"""Why a run has not ended, and what the Python API tells of tasks and runs."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import Engine
from holdfast.engine.explain import why_run
from holdfast.errors import NotFound
from holdfast.model.advice import PAYLOAD, Action, Advice, advice_of, read_stored
from holdfast.model.effect import WakeCondition
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step
from holdfast.service.queries.queries import view_runs
from tests.contract.advised import fixes_of
from tests.contract.engine.state.loops.test_loops import loop, of, planned
from tests.contract.task_states import CHAIN, FORK, MISSING_RUN, finish, start


def test_a_run_tells_of_each_task_that_is_not_done(engine: Engine) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    run.take("left")
    assert str(engine.why_run(run.id)).splitlines() == [
        f"fork {run.id} is running, 1 of 4 tasks done",
        f"  {run.steps['left']}  left is running: attempt 1, leased by worker for 30s more",
        (
            f"  {run.steps['right']}  right is queued, not running (ready): "
            '0 of 0 live workers serve "default"'
        ),
        (
            f"  {run.steps['join']}  join is queued, not running (blocked): "
            "waits for left (running), right (queued)"
        ),
    ]


def test_a_paused_run_tells_how_to_resume_it(engine: Engine) -> None:
    run = start(engine)
    assert engine.runs.pause(run.id).ok
    told = engine.why_run(run.id)
    assert told.summary == f"chain {run.id} is running, 0 of 3 tasks done, hold: paused"
    assert fixes_of(told) == [Advice(Action.RESUME, run.id)]


def test_a_failed_run_tells_what_broke_it_and_how_to_try_again(engine: Engine) -> None:
    run = start(engine)
    run.break_for_good("plan")
    told = engine.why_run(run.id)
    assert told.summary.startswith(f"chain {run.id} is failed")
    assert told.tasks[0].one_line == "plan is failed: broken"
    assert fixes_of(told) == [Advice(Action.RETRY, run.id)]


def test_a_run_tells_which_signals_would_have_its_steps_go_on(engine: Engine) -> None:
    run = start(engine)
    attempt = run.take("plan")
    wait = WakeCondition(target=run.id, signals=("go",), until=engine.clock.now() + 60_000_000)
    assert engine.work.suspend(run.steps["plan"], attempt.token, wait).ok
    told = engine.why_run(run.id)
    assert "it waits for the signal 'go' or for its time, which comes in 1m" in str(told)
    assert fixes_of(told) == [
        Advice(Action.SIGNAL, run.id, (("signal", "go"),)),
        Advice(Action.SIGNAL, run.id, (("signal", "go"), PAYLOAD)),
    ]


def test_a_run_tells_no_fix_for_what_waits_for_its_time_or_its_children(engine: Engine) -> None:
    for wait in (
        WakeCondition(children=True),
        WakeCondition(until=engine.clock.now() + 60_000_000),
    ):
        run = start(engine)
        attempt = run.take("plan")
        engine.work.spawn(run.steps["plan"], attempt.token, [NewTask(title="part")], name="part")
        assert engine.work.suspend(run.steps["plan"], attempt.token, wait).ok
        assert "Fix:" not in str(engine.why_run(run.id))


def test_a_completed_run_has_nothing_more_to_tell(engine: Engine) -> None:
    run = start(engine, CHAIN)
    run.finish("plan", "work", "review")
    assert str(engine.why_run(run.id)) == f"chain {run.id} is completed, 3 of 3 tasks done"


def test_a_run_counts_what_somebody_does_and_nothing_of_rounds_that_have_passed(
    engine: Engine,
) -> None:
    last = Step(id="last", needs=("build",))
    run = planned(engine, loop(needs=("plan",)), last, stories=["a"])
    finish(engine, of(engine, run, "implement")[0].id)
    assert engine.runs.retry(run, step="plan").ok
    finish(engine, of(engine, run, "plan")[0].id, {"stories": ["a"]})
    told = engine.why_run(run)
    (listed,) = engine.database.view(lambda tx: view_runs(tx, [engine.runs.get(run)]))
    assert told.summary == f"w {run} is running, 1 of 4 tasks done"
    assert listed["progress"] == {"done": 1, "total": 4}
    steps = ["last", "implement", "test"]
    assert sorted(str(each.task.step) for each in told.tasks) == sorted(steps)


def test_a_run_of_many_tasks_tells_of_the_first(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(why_run, "SHOWN", 2)
    run = start(engine)
    told = engine.why_run(run.id)
    assert [each.task.step for each in told.tasks] == ["plan", "work"]
    assert told.more == 1


def test_an_unknown_run_is_not_found(engine: Engine) -> None:
    with pytest.raises(NotFound, match=MISSING_RUN):
        engine.why_run(MISSING_RUN)


def test_a_handle_an_id_and_a_worker_can_be_asked_about(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step(agent="developer")
    def only() -> None: ...

    run = flow.start()
    (task,) = hf.runs.tasks(run.id)
    assert str(hf.why(run)) == str(hf.why(run.id))
    assert "only is queued, not running (ready)" in str(hf.why(run))
    assert "developer" in str(hf.why(task.id))
    for what in (run, task.id):
        assert "it is for agent 'developer'" in str(hf.why(what, agents=["planner"]))


def test_a_wait_that_timed_out_says_how_the_run_or_task_stands(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def only() -> None: ...

    @hf.task
    def job() -> None: ...

    run, task = flow.start(), job.enqueue()
    with pytest.raises(TimeoutError) as late:
        run.result(timeout=0.01)
    assert f"{run.id} has not ended within 0.01 s" in str(late.value)
    assert hf.why(run).summary in str(late.value)
    assert advice_of(read_stored(str(late.value))) == (Advice(Action.PRINT_WHY, run.id),)
    with pytest.raises(TimeoutError, match=r"job is queued, not running \(ready\); print"):
        asyncio.run(task.result.aio("10ms"))
