"""Why a task that nothing holds up does not start: its workers, and what keeps them busy."""

from __future__ import annotations

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.engine.explain.explanation import Clause
from holdfast.model.advice import Action, Advice, advice_of
from holdfast.model.worker import Overrun
from tests.contract.advised import fixes_of
from tests.contract.task_states import create, start


def worker_clause(engine: Engine, task_id: str) -> Clause:
    clause = engine.why(task_id).worker
    assert clause is not None
    return clause


def test_a_ready_task_names_the_worker_that_has_room_for_it(engine: Engine) -> None:
    task_id = create(engine, step="ship")
    assert worker_clause(engine, task_id).detail == '0 of 0 live workers serve "default"'
    engine.workers.register("other", agents=["cook"])
    assert engine.workers.register("crew", agents=["default"], concurrency=2)
    take_by(engine, "crew", create(engine, step="pay"))
    clause = worker_clause(engine, task_id)
    assert clause.detail == '1 of 2 live workers serves "default": crew (1 of 2 slots free)'
    assert clause.ok
    assert "Fix:" not in str(engine.why(task_id))


def take_by(engine: Engine, worker: str, task_id: str) -> None:
    (taken,) = engine.work.claim_by_id(task_id, worker, agents=["default"])
    assert taken.task_id == task_id


def test_a_ready_task_tells_what_each_busy_worker_runs_and_since_when(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine)
    engine.workers.register("crew", agents=["default"], concurrency=1)
    take_by(engine, "crew", run.steps["plan"])
    clock.advance(20)
    waiting = create(engine, step="ship")
    told = engine.why(waiting)
    assert told.claimable
    clause = worker_clause(engine, waiting)
    assert not clause.ok
    assert clause.detail == '1 of 1 live worker serves "default", and it is full'
    assert clause.more == (f"crew runs plan {run.steps['plan']} for 20s",)
    assert "Nothing stands in its way" not in str(told)
    lines = str(told).splitlines()
    assert lines[1:3] == [f"  ✗ worker   {clause.detail}", f"      {clause.more[0]}"]
    start_worker = Advice(Action.START_WORKER, "", (("agent", "default"),))
    assert fixes_of(told) == [start_worker, Advice(Action.LIST_WORKERS)]
    assert f"(ready): {clause.detail}" in str(engine.why(waiting).one_line)
    other = start(engine)
    plan, busy, *_ = str(engine.why_run(other.id)).splitlines()[1:]
    assert plan.endswith(f"plan is queued, not running (ready): {clause.detail}")
    assert busy == f"      {clause.more[0]}"


def test_many_tasks_of_many_busy_workers_are_counted(engine: Engine) -> None:
    for number in range(7):
        name = f"crew-{number}"
        engine.workers.register(name, agents=["default"], concurrency=4)
        for _ in range(5 if number == 0 else 4):
            take_by(engine, name, create(engine, "busy", step="busy"))
    clause = worker_clause(engine, create(engine, step="ship"))
    assert clause.detail == '7 of 7 live workers serve "default", and all of them are full'
    assert clause.more[0].startswith("crew-0 runs busy t_")
    assert clause.more[0].endswith(", and 2 more")
    assert clause.more[-1] == "and 2 more workers"
    (load, *_) = engine.workers.loads(shown=2)
    assert (load.used, load.free, load.claimed, len(load.running)) == (4, 0, 5, 2)


def test_a_slot_of_a_function_that_outlived_its_attempt_is_told_of(
    engine: Engine, clock: ManualClock
) -> None:
    row = engine.workers.register("crew", agents=["default"], concurrency=1)
    assert row is not None
    stuck = create(engine, "stuck", step="stuck")
    over = Overrun(stuck, 1, clock.now())
    engine.workers.announce("crew", row["started_at"], None, [over])
    clock.advance(5)
    waiting = create(engine, step="ship")
    clause = worker_clause(engine, waiting)
    taken = "crew has a slot taken by functions that go on after their attempts were over"
    assert clause.more == (
        f"{taken}: stuck {stuck} for 5s; only a new start of the worker ends them",
    )
    (load,) = engine.workers.loads()
    assert (load.free, [each.name for each in load.overruns]) == (0, ["stuck"])
    engine.tasks.cancel(stuck)
    engine.tasks.delete(stuck)
    (load,) = engine.workers.loads()
    assert [each.name for each in load.overruns] == [stuck]
    engine.workers.announce("crew", row["started_at"])
    assert worker_clause(engine, waiting).ok


def test_a_blocked_task_is_not_told_how_full_its_workers_are(engine: Engine) -> None:
    engine.workers.register("crew", agents=["default"], concurrency=1)
    run = start(engine)
    take_by(engine, "crew", run.steps["plan"])
    clause = worker_clause(engine, run.steps["work"])
    assert (clause.ok, clause.detail) == (True, '1 of 1 live worker serves "default"')
    assert engine.why(run.steps["plan"]).worker is None


def test_a_held_task_names_the_parameter_that_its_stored_arguments_lack(engine: Engine) -> None:
    task_id = create(engine, step="charge", payload={"sum": 3})
    unfit = "the parameter 'amount' of 'charge' takes an argument that is not stored"
    assert engine.tasks.hold(task_id, "version", detail=unfit).ok
    (clause,) = [each for each in engine.why(task_id).clauses if not each.ok]
    assert clause.detail == f"hold: version; {unfit}"
    assert advice_of(clause.fix) == (Advice(Action.START_WORKER, "", (("agent", "default"),)),)
    assert engine.tasks.unhold(task_id, "version").ok
    assert engine.tasks.hold(task_id, "version").ok
    (clause,) = [each for each in engine.why(task_id).clauses if not each.ok]
    assert unfit not in clause.detail
