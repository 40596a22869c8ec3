"""Verdicts, approvals and questions move only the task they are about, statement by statement."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.engine.state.loops.test_loops import begin, loop, of
from tests.contract.raw_store import raw
from tests.contract.single_statements import write
from tests.contract.task_states import StartedRun, bring, create, finish, start, take

REPORT = ("{}", "digest", None)
JUDGED = Workflow.define(
    "judged",
    (Step(id="work"), Step(id="verify", verifies="work", needs=("work",), max_rounds=3)),
)
GATED = Workflow.define("gated", (Step(id="plan"), Step(id="gate", approval="?", needs=("plan",))))
ENDED = ["done", "failed", "cancelled"]


def judging(engine: Engine) -> StartedRun:
    """A run whose verifier is running."""
    run = start(engine, JUDGED)
    run.finish("work")
    run.take("verify")
    return run


def test_a_verdict_without_acceptance_makes_no_verifier_done(engine: Engine) -> None:
    run = judging(engine)
    verify = run.steps["verify"]
    assert write(engine, "complete_tasks", rows=[(verify, 1, *REPORT, False)]) == set()
    assert write(engine, "complete_tasks", rows=[(verify, 1, *REPORT, True)]) == {verify}
    engine.runs.advance(run.id)


def test_a_round_is_rejected_by_the_running_verifier_while_rounds_are_left(engine: Engine) -> None:
    named, other = judging(engine), judging(engine)
    verify = named.steps["verify"]
    assert write(engine, "reject_round", rows=[(verify, 2, *REPORT)]) == set()
    assert write(engine, "reject_round", rows=[(verify, 1, *REPORT)]) == {verify}
    assert write(engine, "reject_round", rows=[(verify, 1, *REPORT)]) == set()
    assert other.task("verify").status is Status.RUNNING
    for fence, rejected in ((2, {verify}), (3, set())):
        assert write(engine, "unblock_run", ids=[named.id]) == {verify}
        take(engine, verify)
        assert write(engine, "reject_round", rows=[(verify, fence, *REPORT)]) == rejected


def test_nothing_but_a_verifier_rejects(engine: Engine) -> None:
    run = start(engine, JUDGED)
    run.take("work")
    assert write(engine, "reject_round", rows=[(run.steps["work"], 1, *REPORT)]) == set()


def test_the_running_step_goes_back_while_it_has_detours_left(engine: Engine) -> None:
    run, other = start(engine), start(engine)
    for each in (run, other):
        each.take("plan")
    plan, said = run.steps["plan"], ('"red"', "digest", None)
    assert write(engine, "go_back", rows=[(plan, 2, *said, 9, None)]) == set()
    assert write(engine, "go_back", rows=[(plan, 1, *said, 0, None)]) == set()
    assert write(engine, "go_back", rows=[(plan, 1, *said, 9, None)]) == {plan}
    assert write(engine, "go_back", rows=[(plan, 1, *said, 9, None)]) == set()
    assert other.task("plan").status is Status.RUNNING
    engine.runs.advance(run.id)


def built(engine: Engine, given: str = "ab") -> tuple[str, list[str], list[str]]:
    """A run that is completed: its loop, the loop's items, and their steps."""
    run = begin(engine, loop("input", body=(Step(id="one"),), parallel=3), given=list(given))
    steps = [task.id for task in of(engine, run, "one")]
    for step in steps:
        finish(engine, step)
    return run, [task.id for task in of(engine, run, "build")], steps


def reopen_around(engine: Engine, task_id: str) -> set[str]:
    return write(engine, "reopen_above", ids=[task_id], actor="user")


def test_the_ended_groups_around_a_task_come_back_and_no_other(engine: Engine) -> None:
    run, (build, first, second), (step, _) = built(engine)
    other, groups, _ = built(engine)
    assert write(engine, "reopen_run", run_id=run, statuses=["completed"], actor="user")
    assert reopen_around(engine, step) == {build, first}
    assert reopen_around(engine, step) == set()
    assert engine.tasks.get(second).status is Status.DONE
    assert {engine.tasks.get(each).status for each in groups} == {Status.DONE}
    for each in (run, other):
        engine.runs.advance(each)


def child_of_a_done_function(engine: Engine) -> str:
    attempt = take(engine, create(engine))
    made = engine.work.spawn(attempt.task.id, attempt.token, [NewTask(title="child")], name="map")
    finish(engine, made.value[0])
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    return str(made.value[0])


def test_a_function_does_not_come_back_because_its_child_does(engine: Engine) -> None:
    assert reopen_around(engine, child_of_a_done_function(engine)) == set()


def test_only_a_group_that_is_done_keeps_its_tasks_from_a_reset(engine: Engine) -> None:
    _, _, (ended, _) = built(engine)
    run = begin(engine, loop("input", body=(Step(id="one"),)), given=["a"])
    waiting = of(engine, run, "one")[0].id
    child = child_of_a_done_function(engine)
    for task_id, expected in ((ended, set()), (waiting, {waiting}), (child, {child})):
        assert write(engine, "reset_task", task_id=task_id, actor="user") == expected


def reopen_items(engine: Engine, build: str, *places: int) -> set[str]:
    return write(
        engine,
        "reopen_items",
        loop_id=build,
        every=not places,
        places=[str(each) for each in places],
        feedback="null",
        actor="user",
    )


def test_the_ended_items_that_are_named_come_back_and_no_other(engine: Engine) -> None:
    run, (build, first, second), _ = built(engine)
    other, (_, *others), _ = built(engine)
    for each in (run, other):
        statuses = ["completed"]
        assert write(engine, "reopen_run", run_id=each, statuses=statuses, actor="user")
    assert reopen_items(engine, build, 1) == {second}
    assert reopen_items(engine, build) == {first}
    assert reopen_items(engine, build) == set()
    assert {engine.tasks.get(each).status for each in others} == {Status.DONE}
    for each in (run, other):
        assert engine.runs.cancel(each).ok


def test_items_that_count_no_more_do_not_come_back(engine: Engine) -> None:
    run, (build, *_), _ = built(engine, "a")
    assert engine.runs.retry(run, step="build").ok
    assert reopen_items(engine, build) == set()


def settle(engine: Engine, task_id: str, query: str = "settle_by_person") -> set[str]:
    asked: dict[str, Any] = {"task_id": task_id, "actor": "user", "note": "null"}
    if query == "settle_by_person":
        asked["verdict"] = "done"
    return write(engine, query, **asked)


def test_only_an_open_approval_that_has_all_it_needs_is_settled(engine: Engine) -> None:
    named, other, paused, waits, gone = (start(engine, GATED) for _ in range(5))
    for run in (named, other, paused, gone):
        run.finish("plan")
    assert engine.runs.pause(paused.id).ok
    assert engine.runs.cancel(gone.id).ok
    plain = create(engine)
    for task_id in (*(run.steps["gate"] for run in (paused, waits, gone)), plain):
        assert settle(engine, task_id) == set()
    gate = named.steps["gate"]
    assert settle(engine, gate) == {gate}
    assert settle(engine, gate) == set()
    assert other.task("gate").status is Status.QUEUED
    engine.runs.advance(named.id)


def send_back(engine: Engine, task_id: str, most: int = 2) -> set[str]:
    asked: dict[str, Any] = {"task_id": task_id, "actor": "user", "note": "null"}
    return write(engine, "send_approval_back", **asked, most=most)


def test_only_an_open_approval_that_has_all_it_needs_is_sent_back(engine: Engine) -> None:
    named, other, paused, waits, gone = (start(engine, GATED) for _ in range(5))
    for run in (named, other, paused, gone):
        run.finish("plan")
    assert engine.runs.pause(paused.id).ok
    assert engine.tasks.approve(gone.steps["gate"]).ok
    plain = create(engine)
    for task_id in (*(run.steps["gate"] for run in (paused, waits, gone)), plain):
        assert send_back(engine, task_id) == set()
    gate = named.steps["gate"]
    assert send_back(engine, gate, most=0) == set()
    assert send_back(engine, gate) == {gate}
    assert send_back(engine, gate) == set()
    assert other.task("gate").generation == 1
    assert engine.runs.retry(named.id, step="plan").ok


@pytest.mark.parametrize("query", ["approve_held", "reject_held"])
def test_only_a_queued_task_with_an_approval_hold_is_approved_or_rejected(
    engine: Engine, query: str
) -> None:
    named, other, gone, asked = (create(engine) for _ in range(4))
    aside = create(engine, enqueue=False)
    for task_id in (named, other, gone, aside):
        assert engine.tasks.hold(task_id, "approval").ok
    assert engine.tasks.cancel(gone).ok
    assert engine.tasks.hold(asked, "question").ok
    for task_id in (gone, asked, aside):
        assert settle(engine, task_id, query) == set()
    assert settle(engine, named, query) == {named}
    assert settle(engine, named, query) == set()
    assert engine.tasks.get(other).holds.names == ("approval",)


def test_only_an_open_task_that_has_asked_is_answered(engine: Engine) -> None:
    def answer(task_id: str) -> set[str]:
        return write(engine, "answer_task", task_id=task_id, answer='"a"', actor="user")

    named, other, gone, held = (create(engine) for _ in range(4))
    for task_id in (named, other, gone):
        assert engine.tasks.hold(task_id, "question").ok
    assert engine.tasks.cancel(gone).ok
    assert engine.tasks.hold(held, "approval").ok
    for task_id in (gone, held, bring(engine, Status.RUNNING).task_id):
        assert answer(task_id) == set()
    assert answer(named) == {named}
    assert answer(named) == set()
    assert engine.tasks.get(other).holds.names == ("question",)


def rolled_back(engine: Engine, run: StartedRun, **scope: Any) -> list[str]:
    """The steps that a rollback reaches, written alone."""
    nothing = dict.fromkeys(("until", "apart", "follow_up", "told"))
    asked = {"ids": [], "beyond": [], **nothing, **scope}
    asked |= {name: run.steps[asked[name]] for name in ("until", "apart") if asked[name]}
    asked |= {name: [run.steps[each] for each in asked[name]] for name in ("ids", "beyond")}
    asked |= {"feedback": None, "renewed": False, "actor": "user"}
    changed = write(engine, "reopen_tasks", statuses=ENDED, **asked)
    steps = {task_id: step for step, task_id in run.steps.items()}
    return sorted(steps.get(task_id, task_id) for task_id in changed)


@pytest.mark.parametrize(
    ("scope", "reached"),
    [
        ({"ids": ["plan"]}, ["plan", "review", "work"]),
        ({"ids": ["work"]}, ["review", "work"]),
        ({"beyond": ["plan"]}, ["review", "work"]),
        ({"ids": ["plan"], "until": "review"}, ["plan", "work"]),
        ({"ids": ["plan"], "until": "work"}, ["plan"]),
        ({"ids": ["plan"], "apart": "work"}, ["plan", "review"]),
    ],
)
def test_a_rollback_reaches_what_it_is_meant_to_and_no_more(
    engine: Engine, scope: dict[str, Any], reached: list[str]
) -> None:
    run, other = start(engine), start(engine)
    for each in (run, other):
        each.finish("plan", "work", "review")
    statuses = ["completed"]
    assert write(engine, "reopen_run", run_id=run.id, statuses=statuses, actor="user") == {run.id}
    assert rolled_back(engine, run, **scope) == reached
    engine.runs.advance(run.id)


def test_a_rollback_brings_nothing_back_that_counts_no_more_nor_what_needs_it(
    engine: Engine, store_url: str
) -> None:
    run = start(engine)
    run.finish("plan", "work", "review")
    turn = "UPDATE holdfast_task SET superseded = NOT superseded WHERE id = ?"
    with raw(store_url) as hand:
        hand(turn, run.steps["work"])
        statuses = ["completed"]
        write(engine, "reopen_run", run_id=run.id, statuses=statuses, actor="user")
        assert rolled_back(engine, run, beyond=["plan"]) == []
        assert rolled_back(engine, run, ids=["plan"]) == ["plan"]
        hand(turn, run.steps["work"])
    engine.runs.advance(run.id)
