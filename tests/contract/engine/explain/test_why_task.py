"""Why a task does not run, or does: the claim's clauses in words, and what would change them."""

from __future__ import annotations

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.definition.workflow_file import read_workflow_text
from holdfast.engine.engine import Engine
from holdfast.engine.explain.explanation import Clause, Explanation, TakenBy
from holdfast.errors import NotFound
from holdfast.model.advice import Action, Advice, advice_of
from holdfast.model.effect import WakeCondition
from holdfast.model.result import Refusal
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.service.queries.queries import view_tasks
from tests.contract.advised import advised, fixes_of
from tests.contract.task_states import (
    CHAIN,
    MISSING_TASK,
    break_for_good,
    bring,
    create,
    finish,
    start,
    take,
)

START_DEFAULT_WORKER = Advice(Action.START_WORKER, "", (("agent", "default"),))
CLAUSES = ["status", "kind", "needs", "holds", "run", "due", "agent", "usage", "tags", "slot"]


def failing(explanation: Explanation) -> list[Clause]:
    assert [clause.name for clause in explanation.clauses] == CLAUSES
    return [clause for clause in explanation.clauses if not clause.ok]


def only(engine: Engine, task_id: str) -> Clause:
    explanation = engine.why(task_id)
    assert not explanation.claimable
    assert engine.work.claim("worker", agents=["default", "developer"], count=9) == []
    (clause,) = failing(explanation)
    assert f"✗ {clause.name}" in str(explanation)
    assert clause.detail in str(explanation)
    if clause.fix:
        heading = "Look:" if advice_of(clause.fix)[0].action.looks else "Fix: "
        assert f"{heading}  {clause.fix}" in str(explanation)
    return clause


def test_a_ready_task_has_nothing_against_it(engine: Engine) -> None:
    explanation = engine.why(create(engine, "ship it", step="ship"))
    assert explanation.claimable
    assert failing(explanation) == []
    assert explanation.summary == "ship it is queued, not running (ready)"
    assert advice_of(explanation.fix) == (START_DEFAULT_WORKER,)
    tagged = engine.why(create(engine, step="ship", agent="developer", tags=("gpu",)))
    offer = (("agent", "developer"), ("tag", "gpu"))
    assert advice_of(tagged.fix) == (Advice(Action.START_WORKER, "", offer),)


def test_a_task_that_names_no_function_is_for_whoever_claims_it(engine: Engine) -> None:
    task_id = create(engine, "call mum", agent="me", tags=("phone",))
    explanation = engine.why(task_id)
    assert explanation.claimable
    claim = Advice(Action.CLAIM, "", (("agent", "me"), ("tag", "phone")))
    assert (explanation.taken_by, advice_of(explanation.fix)) == (TakenBy.CLAIMANT, (claim,))
    assert engine.tasks.hold(task_id, "version").ok
    (clause,) = failing(engine.why(task_id))
    lift = Advice(Action.RESUME, task_id, (("hold", "version"),))
    assert (clause.name, advice_of(clause.fix)) == ("holds", (lift,))


def test_a_step_that_its_file_gives_no_program_is_for_whoever_claims_it(engine: Engine) -> None:
    step = Step(id="make", agent="cook", work=StepWork(prompt="Make it"))
    meal = Workflow.define("meal", (step,), declared=WorkflowDeclarations(input={"type": "object"}))
    task_id = start(engine, meal, input={}).steps["make"]
    explanation = engine.why(task_id)
    claim = Advice(Action.CLAIM, "", (("agent", "cook"),))
    assert (explanation.taken_by, advice_of(explanation.fix)) == (TakenBy.CLAIMANT, (claim,))
    assert engine.tasks.hold(task_id, "version").ok
    (clause,) = failing(engine.why(task_id))
    lift = Advice(Action.RESUME, task_id, (("hold", "version"),))
    assert (clause.name, advice_of(clause.fix)) == ("holds", (lift,))


def test_a_task_that_was_given_back_or_lost_says_so(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine, "ship it")
    (first,) = engine.work.claim("far")
    engine.work.release(task_id, first.token)
    ready = "ship it is queued, not running (ready)"
    assert engine.why(task_id).summary == f"{ready}; attempt 1 was given back"
    (again,) = engine.work.claim("far")
    clock.advance(31)
    engine.work.recover()
    assert again.attempt == 2
    assert engine.why(task_id).summary == f"{ready}; attempt 2 was lost: its worker fell silent"


def test_an_idle_task_is_not_in_the_queue(engine: Engine) -> None:
    task_id = create(engine, enqueue=False)
    clause = only(engine, task_id)
    enqueue = Advice(Action.ENQUEUE, task_id)
    assert (clause.name, advice_of(clause.fix)) == ("status", (enqueue,))


def test_a_blocked_task_names_what_it_waits_for(engine: Engine) -> None:
    need = create(engine, agent="elsewhere")
    task_id = create(engine, needs=(need,))
    clause = only(engine, task_id)
    assert (clause.name, clause.fix) == ("needs", "")
    break_for_good(engine, need)
    clause = only(engine, task_id)
    assert need in clause.detail
    assert advice_of(clause.fix) == (Advice(Action.RETRY, need),)


def test_a_held_task_names_its_holds(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine)
    assert engine.tasks.hold(task_id, "limit", until=clock.now() + 7980 * MICROSECONDS).ok
    clause = only(engine, task_id)
    lift = Advice(Action.RESUME, task_id, (("hold", "limit"),))
    assert (clause.name, advice_of(clause.fix)) == ("holds", (lift,))
    assert "lifts in 2h 13m" in clause.detail
    assert engine.tasks.hold(task_id).ok
    clause = only(engine, task_id)
    assert advice_of(clause.fix) == (Advice(Action.RESUME, task_id),)


def test_a_paused_run_is_what_holds_its_task(engine: Engine) -> None:
    run = start(engine)
    assert engine.runs.pause(run.id).ok
    clause = only(engine, run.steps["plan"])
    resume = Advice(Action.RESUME, run.id)
    assert (clause.name, advice_of(clause.fix)) == ("run", (resume,))


def test_a_failing_run_names_what_broke_it(engine: Engine) -> None:
    run = start(engine, Workflow.define("pair", (Step(id="one"), Step(id="two"))))
    run.break_for_good("one")
    clause = only(engine, run.steps["two"])
    assert "one (failed)" in clause.detail
    retry = Advice(Action.RETRY, run.id)
    assert (clause.name, advice_of(clause.fix)) == ("run", (retry,))


def test_a_scheduled_task_says_when_until_its_time_has_come(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine, scheduled_for=clock.now() + 61 * MICROSECONDS)
    clause = only(engine, task_id)
    run_now = Advice(Action.RUN_NOW, task_id)
    assert (clause.name, advice_of(clause.fix)) == ("due", (run_now,))
    assert "1m 1s" in clause.detail
    clock.advance(61)
    assert engine.why(task_id).claimable


def test_run_now_is_offered_for_a_retry_a_wait_for_a_time_and_a_sleep(
    engine: Engine, clock: ManualClock
) -> None:
    task_id, until = create(engine), clock.now() + 61 * MICROSECONDS
    assert engine.work.fail(task_id, take(engine, task_id).token, "red").ok
    assert engine.tasks.run_now(task_id).ok
    assert engine.work.suspend(task_id, take(engine, task_id).token, WakeCondition(until=until)).ok
    clause = only(engine, task_id)
    assert advice_of(clause.fix) == (Advice(Action.RUN_NOW, task_id),)
    retried = engine.tasks.retry(task_id)
    assert (retried.reason, advised(retried)) == (Refusal.INVALID_TRANSITION, [])
    assert engine.tasks.run_now(task_id).ok
    token, notes = take(engine, task_id).token, [("sleep", until)]
    assert engine.work.suspend(task_id, token, WakeCondition(until=until), notes=notes).ok
    clause = only(engine, task_id)
    assert (clause.name, clause.detail) == ("due", "it sleeps for 1m 1s more")
    assert advice_of(clause.fix) == (Advice(Action.RUN_NOW, task_id),)


def test_a_task_that_waits_for_its_retry_tells_the_last_error_and_the_attempts_left(
    engine: Engine,
) -> None:
    error = {"type": "ValueError", "message": "no luck\nat all", "traceback": ["a", "b"]}
    task_id = create(engine, retry=RetryPolicy(max_attempts=3, backoff=60, backoff_max=60))
    assert engine.work.fail(task_id, take(engine, task_id).token, error).ok
    clause = only(engine, task_id)
    told = "; attempt 1 failed with ValueError: no luck, 2 attempts are left"
    assert clause.name == "due"
    assert clause.detail.endswith(told)
    assert engine.tasks.run_now(task_id).ok
    assert engine.work.fail(task_id, take(engine, task_id).token, error).ok
    assert only(engine, task_id).detail.endswith(", 1 attempt is left")
    assert engine.tasks.run_now(task_id).ok
    assert engine.work.fail(task_id, take(engine, task_id).token, error).ok
    assert engine.why(task_id).summary == "task is failed: ValueError: no luck"


def test_a_full_key_names_who_holds_it(engine: Engine) -> None:
    holder, waiter = (create(engine, concurrency=Concurrency(key="repo:.")) for _ in range(2))
    take(engine, holder)
    clause = only(engine, waiter)
    look = Advice(Action.WHY, holder)
    assert (clause.name, advice_of(clause.fix)) == ("slot", (look,))
    summary = engine.why(waiter).summary
    assert summary == "task is queued, not running (waiting for a slot)"


def test_a_worker_of_other_agents_and_tags_is_told_so(engine: Engine) -> None:
    task_id = create(engine, step="ship", agent="developer", tags=("gpu", "eu"))
    assert engine.why(task_id).claimable
    explanation = engine.why(task_id, agents=["planner", "reviewer"], tags=["gpu"])
    agent, tags = failing(explanation)
    offer = (("agent", "developer"), ("tag", "eu"), ("tag", "gpu"))
    start_worker = (Advice(Action.START_WORKER, "", offer),)
    assert (agent.name, advice_of(agent.fix)) == ("agent", start_worker)
    assert (tags.name, advice_of(tags.fix)) == ("tags", start_worker)
    assert engine.why(task_id, agents=["developer"], tags=["eu", "gpu", "mac"]).claimable


def test_a_running_task_is_explained_too(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine, "build")
    take(engine, task_id)
    explanation = engine.why(task_id)
    assert explanation.summary == "build is running: attempt 1, leased by worker for 30s more"
    assert [clause.name for clause in failing(explanation)] == ["status"]
    clock.advance(30)
    lost = engine.why(task_id)
    assert "but has expired; the first worker or server that lives takes it back" in lost.summary
    assert advice_of(lost.fix) == (START_DEFAULT_WORKER,)


@pytest.mark.parametrize("status", [Status.DONE, Status.FAILED, Status.CANCELLED])
def test_an_ended_task_says_how_it_ended(engine: Engine, status: Status) -> None:
    stage = bring(engine, status)
    explanation = engine.why(stage.task_id)
    error = ": broken" if status is Status.FAILED else ""
    assert explanation.summary == f"task is {status}{error}"
    (clause,) = failing(explanation)
    assert clause.name == "status"
    assert bool(clause.fix) == (status is not Status.DONE)


def test_a_step_is_called_by_its_name(engine: Engine) -> None:
    run = start(engine, CHAIN)
    explanation = engine.why(run.steps["work"])
    assert explanation.summary == "work is queued, not running (blocked)"
    assert failing(explanation)[0].detail == "waits for plan (queued)"


def test_an_unknown_task_is_not_found(engine: Engine) -> None:
    for read in (engine.why, engine.tasks.get):
        with pytest.raises(NotFound, match=MISSING_TASK):
            read(MISSING_TASK)
    assert engine.tasks.events(MISSING_TASK) == []
    assert engine.tasks.attempts(MISSING_TASK) == []


ASKS = """
name: asks
input: {task: string, names: [string]}
agents: {doer: {external: true}}
steps:
  - {id: plan, agent: doer, prompt: plan, outputs: {size: int}}
  - id: each
    for_each: "{{ input.names }}"
    steps:
      - {id: do, agent: doer, prompt: do}
      - {id: fine, approval: "Take {{ item }} of {{ steps.plan.size }}?"}
  - {id: test, agent: doer, prompt: test, needs: [plan]}
  - {id: merge, needs: [plan, test], approval: "Merge {{ steps.plan.size }} for {{ input.task }}?"}
  - {id: ship, needs: [merge], approval: "Ship after {{ steps.test }}?"}
"""


def test_an_approval_that_waits_is_told_with_its_values_once_all_are_known(engine: Engine) -> None:
    workflow = read_workflow_text(ASKS)
    run = start(engine, workflow, input={"task": "SSO", "names": ["ada"]})

    def asked(step: str) -> str:
        (task,) = (task for task in engine.runs.tasks(run.id) if task.step == step)
        assert task.blocked
        (kind,) = (each for each in engine.why(task.id).clauses if each.name == "kind")
        return kind.detail.removeprefix("a person settles it: ")

    assert asked("merge") == "Merge {{ steps.plan.size }} for {{ input.task }}?"
    finish(engine, run.steps["plan"], {"size": 3})
    assert asked("merge") == "Merge 3 for SSO?"
    assert asked("fine") == "Take ada of 3?"
    assert asked("ship") == "Ship after {{ steps.test }}?"
    assert "a person settles it: Merge 3 for SSO?" in str(engine.why_run(run.id))
    assert engine.runs.retry(run.id, step="plan").ok
    assert asked("merge") == "Merge {{ steps.plan.size }} for {{ input.task }}?"


def test_an_approval_whose_values_are_made_anew_is_told_as_it_is_written(engine: Engine) -> None:
    written = "Merge {{ steps.plan.size }} for {{ input.task }}?"
    run = start(engine, read_workflow_text(ASKS), input={"task": "SSO", "names": []})
    merge = run.steps["merge"]

    def asked() -> set[str]:
        (kind,) = (each for each in engine.why(merge).clauses if each.name == "kind")
        (listed,) = (task for task in engine.runs.tasks(run.id) if task.id == merge)
        (viewed,) = engine.database.view(lambda tx: view_tasks(tx, [engine.tasks.get(merge)]))
        told = kind.detail.removeprefix("a person settles it: ")
        return {told, listed.title, viewed["title"]}

    finish(engine, run.steps["plan"], {"size": 3})
    finish(engine, run.steps["test"])
    assert asked() == {"Merge 3 for SSO?"}
    assert engine.runs.retry(run.id, step="plan").ok
    assert asked() == {written}
    finish(engine, run.steps["plan"], {"size": 4})
    assert asked() == {"Merge 4 for SSO?"}
    finish(engine, run.steps["test"])
    assert run.task("merge").state == "ready"
    assert asked() == {"Merge 4 for SSO?"}


def test_why_of_a_task_that_ended_with_a_hold_does_not_advise_to_resume_it(engine: Engine) -> None:
    workflow = read_workflow_text("name: asks\nsteps:\n  - {id: merge, approval: Merge?}\n")
    run = start(engine, workflow)
    assert engine.tasks.hold(run.steps["merge"]).ok
    assert engine.tasks.approve(run.steps["merge"]).ok
    fixes = fixes_of(engine.why(run.steps["merge"]))
    assert Action.RESUME not in {fix.action for fix in fixes}


def test_why_of_a_task_whose_signal_timed_out_advises_to_reopen_it(engine: Engine) -> None:
    run = start(engine)
    held = run.take("plan")
    error = {"type": "SignalTimeout", "message": "no signal 'go' came in time"}
    assert engine.work.fail(held.task_id, held.token, error, retryable=False).ok
    again = Advice(Action.REOPEN, held.task_id)
    assert again in fixes_of(engine.why(held.task_id))
    assert again in fixes_of(engine.why_run(run.id))
    assert engine.tasks.reopen(held.task_id).ok
    assert engine.runs.get(run.id).status == "running"
