"""Situations in which a user is refused or told why: one for each text that holds advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import apsw
import pytest

from holdfast.api.handle import StoreHandle
from holdfast.clock import ManualClock
from holdfast.definition.workflow_file import read_workflow_text
from holdfast.engine.engine import Engine
from holdfast.engine.explain.explanation import Explanation
from holdfast.engine.explain.why_run import RunExplanation
from holdfast.errors import HoldfastError
from holdfast.model.budget import Budget
from holdfast.model.effect import WakeCondition
from holdfast.model.result import TransitionResult
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, OnFailure, Step, Workflow
from holdfast.model.workflow.reference import Reference
from holdfast.settings import Settings
from tests.contract.called_workflows import LAST, SHIP, begin, call, of
from tests.contract.engine.explain.test_key_circles import circle
from tests.contract.engine.state.needs.test_older_needs import own_part
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.task_states import (
    StartedRun,
    break_for_good,
    bring,
    create,
    finish,
    start,
    take,
)

ASK, SKIP = OnFailure(action="ask"), OnFailure(action="skip")
ONCE = RetryPolicy(max_attempts=1)
OVER_INPUT = Reference.parse("for_each", "input")
LOOP = Workflow.define("loop", (Step(id="build", for_each=OVER_INPUT, steps=(Step(id="make"),)),))
LACKS = """
name: lacks
agents: {d: {external: true}}
steps:
  - {id: a, agent: d, prompt: "a"}
  - {id: b, agent: d, prompt: "{{ steps.a.x }}"}
"""
GATE = Workflow.define("gate", (Step(id="make"), Step(id="gate", needs=("make",), approval="Go?")))


@dataclass(frozen=True, kw_only=True)
class Refused:
    """What an operation on a task or run answered."""

    identifier: str
    answer: TransitionResult


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What `why` tells of a task or run, and the engine to ask for it."""

    engine: Engine
    told: Explanation | RunExplanation
    agents: Sequence[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What the doctor of an engine finds."""

    engine: Engine


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The error of an attempt as the store keeps it."""

    error: object


Read = Refused | Explained | HoldfastError | Examined | Stored
Situation = Callable[[Engine, ManualClock], Iterator[tuple[str, Read]]]


def refused(identifier: str, answer: TransitionResult) -> Refused:
    assert not answer.ok
    return Refused(identifier=identifier, answer=answer)


def why(engine: Engine, identifier: str, agents: Sequence[str] | None = None) -> Explained:
    run = identifier.startswith("r_")
    told = (engine.why_run if run else engine.why)(identifier, agents=agents)
    return Explained(engine=engine, told=told, agents=agents)


def raised(call: Callable[[], object]) -> HoldfastError:
    try:
        call()
    except HoldfastError as error:
        return error
    raise AssertionError("nothing was raised")


def tasks_that_have_ended(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    done, failed = (bring(engine, each).task_id for each in (Status.DONE, Status.FAILED))
    yield "cancel what is done", refused(done, engine.tasks.cancel(done))
    yield "hold what is done", refused(done, engine.tasks.hold(done))
    yield "enqueue what is done", refused(done, engine.tasks.enqueue(done))
    yield "run what has failed now", refused(failed, engine.tasks.run_now(failed))
    yield "retry what is done", refused(done, engine.tasks.retry(done))
    yield "edit what is done", refused(done, engine.tasks.edit(done, {"title": "other"}))
    then = create(engine, needs=(done,))
    take(engine, then)
    yield "edit what others have built upon", refused(done, engine.tasks.edit(done, {"title": "x"}))
    yield "why of what has failed", why(engine, failed)


def refusals_without_advice(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    tasks = engine.tasks
    lone, busy = create(engine), create(engine)
    take(engine, busy)
    yield "run what is running now", refused(busy, tasks.run_now(busy))
    yield "retry what has not failed", refused(lone, tasks.retry(lone))
    yield "reopen what has not ended", refused(busy, tasks.reopen(busy))
    parent, (child,) = plan(engine, "one")
    yield "reset what is being planned", refused(parent, tasks.reset(parent))
    yield "reset what is idle", refused(child, tasks.reset(child))
    assert tasks.finalize_plan(parent).ok
    yield "enqueue what is in the queue", refused(child, tasks.enqueue(child))
    yield "plan what was planned", refused(parent, tasks.start_planning(parent))
    run = start(engine, LOOP, input=["a", "b"])
    item = engine.runs.task(run.id, "build.2").id
    yield "enqueue an item of a loop", refused(item, tasks.enqueue(item))
    attempt = take(engine, create(engine, "maker"))
    made = engine.work.spawn(attempt.task.id, attempt.token, [NewTask(title="made")], name="m")
    assert engine.work.release(attempt.task.id, attempt.token).ok
    assert tasks.reset(attempt.task.id).ok
    yield (
        "retry what its maker has not made again",
        refused(made.value[0], tasks.retry(made.value[0])),
    )
    run = start(engine)
    plain, ended = run.steps["work"], create(engine)
    yield "approve what is not asked about", refused(plain, tasks.approve(plain))
    yield "answer what asks nothing", refused(plain, tasks.answer(plain, "yes"))
    finish(engine, ended)
    yield "approve what is done", refused(ended, tasks.approve(ended))
    run.finish("plan", "work")
    first = run.steps["plan"]
    yield "reset a step after which others have begun", refused(first, tasks.reset(first))
    conditional = Step(id="make", needs=("plan",), when=Reference.parse("when", "steps.plan"))
    run = start(engine, Workflow.define("conditional", (Step(id="plan"), conditional)))
    make = run.steps["make"]
    timed = tasks.edit(make, {"scheduled_for": "1h"})
    yield "give a time to a step with a condition", refused(make, timed)
    spent = create(engine, retry=RetryPolicy(max_attempts=3, backoff=0, backoff_max=0))
    assert engine.work.fail(spent, take(engine, spent).token, "red").ok
    yield (
        "allow fewer attempts than were made",
        refused(spent, tasks.edit(spent, {"max_attempts": 1})),
    )


def tasks_of_an_epoch_that_is_over(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    run = start(engine, LOOP, input=["a"])
    old = engine.runs.task(run.id, "build.1.make").id
    assert engine.runs.retry(run.id, step="build").ok
    yield "retry a task that another replaced", refused(old, engine.tasks.retry(old))
    yield "reset a task that another replaced", refused(old, engine.tasks.reset(old))
    yield "why of a task that another replaced", why(engine, old)


def tasks_that_are_planned(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    parent, (one, two) = plan(engine, "one", "two")
    yield "enqueue what is being planned", refused(parent, engine.tasks.enqueue(parent))
    yield "plan what is being planned", refused(parent, engine.tasks.start_planning(parent))
    yield "why of a plan that is being made", why(engine, parent)
    yield "why of a child of a plan that is being made", why(engine, one)
    assert engine.tasks.finalize_plan(parent).ok
    yield "enqueue a plan", refused(parent, engine.tasks.enqueue(parent))
    yield "reset a plan in progress", refused(parent, engine.tasks.reset(parent))
    yield (
        "finalize a plan in another shape",
        refused(parent, engine.tasks.finalize_plan(parent, graph={})),
    )
    late = NewTask(title="late", parent=parent, enqueue=False)
    yield "add an idle child to a plan", raised(lambda: engine.tasks.create(late))
    yield "why of a plan in progress", why(engine, parent)
    assert engine.tasks.reset(one).ok
    yield "why of a plan with a child outside the queue", why(engine, parent)
    yield "why of a child that waits for it", why(engine, two)
    assert engine.tasks.enqueue(one).ok
    break_for_good(engine, one)
    yield "why of a plan with a child that has failed", why(engine, parent)
    assert engine.tasks.retry(one).ok
    finish(engine, one)
    finish(engine, two)
    yield "reset a part of what is done", refused(two, engine.tasks.reset(two))
    empty, _none = plan(engine)
    yield "why of a plan without children", why(engine, empty)
    lone = create(engine, enqueue=False)
    yield "finalize what is not planned", refused(lone, engine.tasks.finalize_plan(lone))
    part = NewTask(title="part", parent=lone, enqueue=False, part=True)
    yield "add a part to what is no plan", raised(lambda: engine.tasks.create(part))
    yield "why of what is not in the queue", why(engine, lone)


def plans_that_fail(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    take(engine, two)
    break_for_good(engine, one)
    yield "why of a child of a plan that is failing", why(engine, three)
    yield "why of a plan that is failing", why(engine, parent)
    parent, (one,) = plan(engine, "one")
    after = create(engine, needs=(parent,))
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, one)
    take(engine, after)
    yield "reset a plan that others have begun after", refused(parent, engine.tasks.reset(parent))


def tasks_that_run(engine: Engine, clock: ManualClock) -> Iterator[tuple[str, Read]]:
    task = create(engine)
    take(engine, task)
    yield "reset what is running", refused(task, engine.tasks.reset(task))
    yield "edit what is running", refused(task, engine.tasks.edit(task, {"title": "x"}))
    clock.advance(31)
    yield "why of what was lost", why(engine, task)


def tasks_that_wait_for_people(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    asking = create(engine)
    assert engine.work.ask(asking, take(engine, asking).token, "which?").ok
    yield "retry what asks", refused(asking, engine.tasks.retry(asking))
    yield "approve what asks", refused(asking, engine.tasks.approve(asking))
    yield "run what asks now", refused(asking, engine.tasks.run_now(asking))
    yield "why of what asks", why(engine, asking)
    assert engine.tasks.hold(asking).ok
    yield "why of what asks and is paused", why(engine, asking)
    run = start(engine, Workflow.define("try", (Step(id="try", retry=ONCE, on_failure=ASK),)))
    task = run.take("try")
    failed = engine.work.fail(task.task_id, task.token, "red")
    assert failed.ok
    yield "a failure about which a person is asked", Refused(identifier=task.task_id, answer=failed)
    yield "retry what waits for approval", refused(task.task_id, engine.tasks.retry(task.task_id))
    yield "retry a run that waits for approval", refused(run.id, engine.runs.retry(run.id))
    yield (
        "answer what waits for approval",
        refused(task.task_id, engine.tasks.answer(task.task_id, 1)),
    )
    yield "why of what waits for approval", why(engine, task.task_id)
    again = create(engine, retry=RetryPolicy(max_attempts=3, backoff=0, backoff_max=0))
    assert engine.work.fail(again, take(engine, again).token, "red").ok
    assert engine.tasks.reopen(again).ok is False
    yield "retry what is tried again by itself", refused(again, engine.tasks.retry(again))


def approvals(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    run = start(engine, GATE)
    gate = run.steps["gate"]
    yield "approve too early", refused(gate, engine.tasks.approve(gate))
    run.finish("make")
    yield "why of an approval", why(engine, gate)
    assert engine.runs.pause(run.id).ok
    yield "approve in a run that is paused", refused(gate, engine.tasks.approve(gate))
    yield "why of a run that is paused", why(engine, run.id)
    yield "why of an approval of a run that is paused", why(engine, gate)
    keyed = Workflow.define(
        "keyed", (Step(id="gate", approval="Go?"),), concurrency=Concurrency(key="k")
    )
    start(engine, keyed)
    waits = start(engine, keyed)
    gate = waits.steps["gate"]
    yield "approve in a run that waits for its key", refused(gate, engine.tasks.approve(gate))
    yield "why of a run that waits for its key", why(engine, waits.id)
    yield "why of an approval of a run that waits for its key", why(engine, gate)


def needs_of_workflows(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    steps = (*GATE.steps, Step(id="ship", needs=("gate",)))
    run = start(engine, Workflow.define("release", steps))
    ship, make = run.steps["ship"], run.steps["make"]
    unlink = engine.tasks.unblock
    yield "unlink an approval too early", refused(ship, unlink(ship, by_hand=True))
    gate = run.steps["gate"]
    yield "unlink a step", refused(gate, unlink(gate, by_hand=True))
    run.break_for_good("make")
    yield "unlink a step that has failed", refused(gate, unlink(gate, by_hand=True))
    assert engine.tasks.retry(make).ok
    run.finish("make")
    yield "unlink an approval", refused(ship, unlink(ship, by_hand=True))
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    yield "unlink what a plan has put in order", refused(two, unlink(two, [one], by_hand=True))


def runs_that_have_ended(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    run = start(engine, Workflow.define("one", (Step(id="only"),)))
    run.finish("only")
    yield "cancel a run that has completed", refused(run.id, engine.runs.cancel(run.id))
    run = start(engine)
    assert engine.runs.cancel(run.id).ok
    yield "pause a run that was cancelled", refused(run.id, engine.runs.pause(run.id))
    yield "why of a run that was cancelled", why(engine, run.id)
    pair = Workflow.define("pair", (Step(id="one"), Step(id="two")))
    run = start(engine, pair)
    run.break_for_good("one")
    yield "why of a run that is failing", why(engine, run.id)
    yield "why of a task of a run that is failing", why(engine, run.steps["two"])
    run = start(engine)
    run.break_for_good("plan")
    yield "why of what waits for what has failed", why(engine, run.steps["work"])
    loop = start(engine, LOOP, input=["a"])
    yield "retry from a step of a loop", refused(loop.id, engine.runs.retry(loop.id, step="make"))
    wide = Workflow.define("wide", tuple(Step(id=f"s{n}") for n in range(51)))
    yield "why of a run with many tasks", why(engine, start(engine, wide).id)


def runs_that_are_done_again(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    pair = Workflow.define("pair", (Step(id="one"), Step(id="two", needs=("one",))))
    run = start(engine, pair)
    run.finish("one", "two")
    yield "retry a run that has completed", refused(run.id, engine.runs.retry(run.id))
    below = of(begin(engine, call(), LAST))
    below.finish("pack", "send")
    yield "cancel a called run that has completed", refused(below.id, engine.runs.cancel(below.id))


def runs_that_ended_on_hold(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    run = start(engine)
    assert engine.runs.pause(run.id).ok
    assert engine.runs.cancel(run.id).ok
    yield "why of a run that was paused and cancelled", why(engine, run.id)
    yield "why of a task of a run that was paused and cancelled", why(engine, run.steps["plan"])
    run = start(engine)
    token = run.take("plan").token
    assert engine.runs.pause(run.id).ok
    assert engine.work.fail(run.steps["plan"], token, "broken", retryable=False).ok
    yield "why of a run that failed while it was paused", why(engine, run.id)
    run = start(engine, Workflow.define("one", (Step(id="only"),)))
    token = run.take("only").token
    assert engine.runs.pause(run.id).ok
    assert engine.work.complete(run.steps["only"], token).ok
    yield "why of a run that completed while it was paused", why(engine, run.id)
    later = start(engine, scheduled_for="1h")
    yield "why of a run that starts later", why(engine, later.id)
    assert engine.runs.cancel(later.id).ok
    yield "why of a run that starts later and was cancelled", why(engine, later.id)
    lone = create(engine)
    assert engine.tasks.hold(lone).ok
    assert engine.tasks.cancel(lone).ok
    yield "why of a task that was paused and cancelled", why(engine, lone)


def deletions(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    delete = engine.tasks.delete
    first = create(engine, "first")
    then = create(engine, "then", needs=(first,))
    yield "delete what a task waits for", refused(first, delete(first))
    finish(engine, first)
    attempt = take(engine, then)
    yield "delete what is running", refused(then, delete(then))
    yield "delete what a running task has needed", refused(first, delete(first))
    last = create(engine, "last", needs=(then,))
    assert engine.work.complete(then, attempt.token).ok
    yield "delete what is needed by what is needed", refused(first, delete(first))
    finish(engine, last)
    yield "delete what ended tasks have needed", refused(first, delete(first))
    parent, (one, _two) = plan(engine, "one", "two")
    yield "delete a plan", refused(parent, delete(parent))
    assert engine.tasks.finalize_plan(parent).ok
    yield "delete what a plan has put in order", refused(one, delete(one))
    maker = take(engine, create(engine, "maker"))
    made = engine.work.spawn(maker.task.id, maker.token, [NewTask(title="made")], name="m")
    assert engine.work.release(maker.task.id, maker.token).ok
    yield "delete what has made another", refused(maker.task.id, delete(maker.task.id))
    yield "delete what another has made", refused(made.value[0], delete(made.value[0]))
    finish(engine, made.value[0])
    yield "delete what another has made, done", refused(made.value[0], delete(made.value[0]))
    run = start(engine)
    yield "delete a step", refused(run.steps["plan"], delete(run.steps["plan"]))
    assert engine.runs.cancel(run.id).ok
    yield "delete a step of what has ended", refused(run.steps["plan"], delete(run.steps["plan"]))


def budgets(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    steps = tuple(Step(id=name) for name in ("one", "two", "three"))
    limits = Budget(usd=1, attempts=1)
    run = start(
        engine, Workflow.define("side", steps, declared=WorkflowDeclarations(budget=limits))
    )
    one = run.take("one")
    assert engine.work.complete(one.task_id, one.token, usage={"usd": 3}).ok
    yield "resume a run that has used its budget", refused(run.id, engine.runs.resume(run.id))
    yield "why of a run that has used its budget", why(engine, run.id)
    yield "why of a task of a run that has used its budget", why(engine, run.steps["two"])
    run = start(
        engine, Workflow.define("less", steps, declared=WorkflowDeclarations(budget=Budget(usd=1)))
    )
    one = run.take("one")
    assert engine.work.complete(one.task_id, one.token, usage={"usd": 3}).ok
    yield "resume a run that has used its dollars", refused(run.id, engine.runs.resume(run.id))


def holds_and_times(engine: Engine, clock: ManualClock) -> Iterator[tuple[str, Read]]:
    task = create(engine)
    assert engine.tasks.hold(task, "limit", until="1h").ok
    yield "why of a task that is held by a limit", why(engine, task)
    assert engine.tasks.hold(task).ok
    yield "why of a task that is paused", why(engine, task)
    task = create(engine, "call mum", agent="me", tags=("phone",))
    yield "why of what whoever claims it does", why(engine, task)
    assert engine.tasks.hold(task, "version").ok
    yield "why of what no program knows", why(engine, task)
    task = create(engine, step="ship", agent="writer", tags=("eu", "gpu"))
    yield "why of what a worker would take", why(engine, task)
    assert engine.tasks.hold(task, "version").ok
    yield "why of what no worker's program has", why(engine, task)
    task = create(engine, scheduled_for=clock.now() + 61_000_000)
    yield "why of what has a time", why(engine, task)
    limited = create(engine, agent="developer")
    token = take(engine, limited).token
    assert engine.work.reach_limit(limited, token, "1h").ok
    yield (
        "why of what waits for the limit of its agent",
        why(engine, create(engine, agent="developer")),
    )
    yield "why of what reached the limit of its agent", why(engine, limited)
    key = Concurrency(key="repo:.")
    holder, waiter = (create(engine, concurrency=key) for _ in range(2))
    take(engine, holder)
    yield "why of what waits for its key", why(engine, waiter)


def workers_and_sleepers(engine: Engine, clock: ManualClock) -> Iterator[tuple[str, Read]]:
    task = create(engine, step="ship", agent="developer", tags=("gpu", "eu"))
    yield "why of what is for another agent", why(engine, task, ["planner"])
    until = clock.now() + 61_000_000
    task = create(engine)
    token, notes = take(engine, task).token, [("sleep", until)]
    assert engine.work.suspend(task, token, WakeCondition(until=until), notes=notes).ok
    yield "why of what sleeps", why(engine, task)


def signals(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    run = start(engine)
    task = run.take("plan")
    wait = WakeCondition(target=run.id, signals=("go", "stop"))
    assert engine.work.suspend(task.task_id, task.token, wait).ok
    yield (
        "send a signal to a task of a run",
        refused(task.task_id, engine.signals.send(task.task_id, "go")),
    )
    yield "why of what waits for signals", why(engine, task.task_id)
    yield (
        "run what waits for signals now",
        refused(task.task_id, engine.tasks.run_now(task.task_id)),
    )
    maker = take(engine, create(engine, "maker"))
    made = engine.work.spawn(maker.task.id, maker.token, [NewTask(title="made")], name="m")
    until = WakeCondition(target=maker.task.id, children=True)
    assert made.answer.ok
    assert engine.work.suspend(maker.task.id, maker.token, until).ok
    yield (
        "run what waits for its children now",
        refused(maker.task.id, engine.tasks.run_now(maker.task.id)),
    )
    run = start(engine)
    task = run.take("plan")
    error = {"type": "SignalTimeout", "message": "no signal 'go' came in time"}
    assert engine.work.fail(task.task_id, task.token, error, retryable=False).ok
    yield "why of what a signal did not reach in time", why(engine, task.task_id)


def called(run: StartedRun) -> StartedRun:
    """The run that a step has called, which has failed with its second step."""
    shipping = of(run)
    shipping.finish("pack")
    shipping.break_for_good("send")
    return shipping


def called_runs(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    run = begin(engine, call(), LAST)
    yield "why of a step that has called a run", why(engine, run.steps["ship"])
    yield (
        "run a step that has called a run now",
        refused(run.steps["ship"], engine.tasks.run_now(run.steps["ship"])),
    )
    below = of(run)
    yield (
        "retry a step of a called run",
        refused(run.id, engine.runs.retry(run.id, step="ship.pack")),
    )
    below = called(run)
    yield (
        "reopen a step whose caller has ended",
        refused(below.steps["send"], engine.tasks.reopen(below.steps["send"])),
    )
    yield "why of a called run whose caller has ended", why(engine, below.id)
    run = begin(engine, call(on_failure=ASK), LAST)
    below = called(run)
    yield "retry a run whose caller asks", refused(below.id, engine.runs.retry(below.id))
    yield "why of a run whose caller asks", why(engine, below.id)
    run = begin(engine, call(on_failure=SKIP), Step(id="gate", needs=("ship",)))
    below = called(run)
    yield "retry a run whose caller has gone on", refused(below.id, engine.runs.retry(below.id))
    back = OnFailure(action="goto", step="plan", max_rounds=1)
    run = begin(engine, Step(id="plan"), call(needs=("plan",), on_failure=back), LAST)
    run.finish("plan")
    below = called(run)
    yield "retry a run whose caller began anew", refused(below.id, engine.runs.retry(below.id))
    run = begin(engine, Step(id="plan"), call(needs=("plan",)))
    run.finish("plan")
    below = of(run)
    for change in (engine.runs.pause, engine.runs.cancel, engine.runs.retry):
        assert change(run.id).ok
    yield "retry a run whose caller is paused", refused(below.id, engine.runs.retry(below.id))


def called_runs_below_others(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    around = Workflow.define("around", (call(), LAST))
    engine.workflows.add(SHIP)
    run = begin(engine, call(workflow=around, on_failure=ASK), LAST, workflow=around)
    below = called(of(run))
    yield (
        "retry a run below a run whose caller asks",
        refused(below.id, engine.runs.retry(below.id)),
    )
    left = Workflow.define("left", (call(on_failure=SKIP), LAST))
    run = begin(engine, call(workflow=left), LAST, workflow=left)
    middle = of(run)
    below = called(middle)
    middle.finish("tell")
    yield "retry a run below a run that has gone on", refused(below.id, engine.runs.retry(below.id))


def circles(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    first, _second = circle(engine)
    yield "why of a run that waits in a circle", why(engine, first.id)
    yield "why of a step that waits in a circle", why(engine, first.steps["ship"])
    yield "the doctor, of runs that wait in a circle", Examined(engine=engine)


def values(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    run = start(engine)
    yield "a run where a task is wanted", raised(lambda: engine.tasks.get(run.id))
    yield (
        "a time without a zone",
        raised(
            lambda: engine.tasks.create(NewTask(title="late", scheduled_for="2030-01-31T09:00"))
        ),
    )
    yield "a worker that does not live", refused("w", engine.workers.drain("w"))


def workflows_that_are_unknown(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    caller = Workflow.define("caller", (Step(id="call", work=StepWork(workflow="unknown")),))
    begun = partial(engine.runs.start, NewRun(workflow=caller))
    yield "start a run that calls an unknown workflow", raised(begun)


def values_that_are_lacking(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    run = start(engine, read_workflow_text(LACKS))
    finish(engine, run.steps["a"], {"y": 1})
    yield "why of a run with a step that lacks a value", why(engine, run.id)
    yield "why of a step that lacks a value", why(engine, run.steps["b"])


def texts_that_were_stored(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    late = 'r_1 has not ended within 1 s; print(hf.why("r_1")) tells more'
    task = create(engine)
    error = {"type": "TimeoutError", "message": late}
    assert engine.work.fail(task, take(engine, task).token, error, retryable=False).ok
    yield "why of what failed with advice", why(engine, task)
    task = create(engine, retry=RetryPolicy(max_attempts=3, backoff=60, backoff_max=60))
    error = {"type": "SignalTimeout", "message": "begin anew: `holdfast retry --again t_1`"}
    assert engine.work.fail(task, take(engine, task).token, error).ok
    yield "why of what is tried again after advice", why(engine, task)
    yield "the error of what has failed with advice", Stored(error=error | {"message": late})


def stores_that_are_locked(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    url = engine.settings.url
    locked = apsw.Connection(url.removeprefix("sqlite:///"))
    with closing(Engine(url, settings=Settings(url=url, patience=0.05))) as other:
        other.commits.start()
        locked.execute("BEGIN IMMEDIATE")
        write = partial(other.tasks.create, NewTask(title="late"))
        yield "write to a store that another program has locked", raised(write)
        locked.close()


def results_that_are_late(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    handle = StoreHandle[object](engine, create(engine), dict, created=True)
    with pytest.raises(TimeoutError) as late:
        handle.result(0)
    yield (
        "a result that is late, raised in a step",
        Stored(error={"type": "TimeoutError", "message": str(late.value)}),
    )


def the_doctor(engine: Engine, _: ManualClock) -> Iterator[tuple[str, Read]]:
    parent, (_one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    own_part(engine, parent, two)
    yield "the doctor, of a plan that waits for its own part", Examined(engine=engine)


SITUATIONS: tuple[Situation, ...] = (
    tasks_that_have_ended,
    refusals_without_advice,
    tasks_of_an_epoch_that_is_over,
    tasks_that_are_planned,
    plans_that_fail,
    tasks_that_run,
    tasks_that_wait_for_people,
    approvals,
    needs_of_workflows,
    runs_that_have_ended,
    runs_that_are_done_again,
    runs_that_ended_on_hold,
    deletions,
    budgets,
    holds_and_times,
    workers_and_sleepers,
    signals,
    called_runs,
    called_runs_below_others,
    circles,
    values,
    workflows_that_are_unknown,
    values_that_are_lacking,
    texts_that_were_stored,
    stores_that_are_locked,
    results_that_are_late,
    the_doctor,
)
