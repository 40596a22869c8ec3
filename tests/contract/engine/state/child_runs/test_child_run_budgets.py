"""What a run may use is for all that it calls: at a limit nothing new of them starts either."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, Advice
from holdfast.model.budget import Budget
from holdfast.model.result import Refusal
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.advised import advised, fixes_of
from tests.contract.called_workflows import LAST, SHIP, call, get, of
from tests.contract.engine.state.limits.test_run_budgets import complete
from tests.contract.single_statements import write
from tests.contract.task_states import StartedRun, start


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def limited(name: str, budget: Budget | None, *steps: Step) -> Workflow:
    return Workflow.define(name, steps, declared=WorkflowDeclarations(budget=budget))


def begin(
    engine: Engine, budget: Budget | None, own: Budget | None = None
) -> tuple[StartedRun, StartedRun, StartedRun]:
    """A run that has called another, which has called a third: only the last two have work yet."""
    middle = limited("middle", own, call(), Step(id="check", needs=()))
    for each in (SHIP, middle):
        engine.workflows.add(each)
    run = start(engine, limited("order", budget, call("all", middle), Step(id="last")))
    return run, of(run, "all"), of(of(run, "all"))


def holds(*runs: StartedRun) -> list[list[str]]:
    return [run.holds for run in runs]


def test_called_runs_use_the_budget_of_their_caller_and_are_held_with_it(engine: Engine) -> None:
    family = run, middle, lowest = begin(engine, Budget(usd=1))
    complete(engine, middle.take("check"), 0.5)
    assert holds(*family) == [[], [], []]
    complete(engine, lowest.take("pack"), 0.5)
    assert holds(*family) == [["budget"]] * 3
    assert engine.work.claim_by_id(lowest.steps["send"], "worker") == []
    assert engine.work.claim_by_id(run.steps["last"], "worker") == []
    told = f"$1 of $1 used by order {run.id}"
    more = Advice(Action.RESUME, run.id, (("add_usd", "1"),))
    assert told in str(engine.why(lowest.steps["send"]))
    assert more in fixes_of(engine.why_run(lowest.id))
    refused = engine.runs.resume(middle.id)
    assert (refused.reason, advised(refused)) == (Refusal.HELD, [more])
    assert engine.runs.resume(run.id, add_usd=1).ok
    assert holds(*family) == [[], [], []]
    lowest.finish("send")
    run.finish("last")
    assert run.status == "completed"


def test_the_last_report_of_a_called_run_may_be_the_last_that_its_caller_had(
    engine: Engine,
) -> None:
    engine.workflows.add(SHIP)
    run = start(engine, limited("order", Budget(attempts=2, usd=9), call(), LAST))
    shipping = of(run)
    shipping.finish("pack")
    attempt = shipping.take("send")
    assert holds(run, shipping) == [["budget"]] * 2
    assert engine.runs.resume(run.id, add_attempts=1).ok
    complete(engine, attempt, 9)
    assert (shipping.status, run.task("ship").status, run.holds) == (
        "completed",
        "done",
        ["budget"],
    )


def test_a_limit_that_is_still_reached_keeps_what_is_below_it_and_nothing_else(
    engine: Engine,
) -> None:
    family = run, middle, lowest = begin(engine, Budget(usd=2), Budget(usd=1))
    complete(engine, middle.take("check"), 1)
    assert holds(*family) == [[], ["budget"], ["budget"]]
    assert engine.runs.resume(middle.id, add_usd=2).ok
    complete(engine, lowest.take("pack"), 2)
    assert holds(*family) == [["budget"]] * 3
    assert engine.runs.pause(run.id).ok
    assert engine.runs.resume(middle.id, add_usd=9).ok
    assert holds(*family) == [["paused", "budget"], ["budget"], ["budget"]]
    assert engine.runs.resume(run.id, add_usd=9).ok
    assert holds(*family) == [[], [], []]


def test_runs_called_by_another_run_neither_use_the_budget_nor_are_held_by_it(
    engine: Engine,
) -> None:
    family, beside = begin(engine, Budget(usd=1)), begin(engine, None)
    complete(engine, beside[2].take("pack"), 50)
    complete(engine, family[2].take("pack"), 1)
    assert holds(*family, *beside) == [["budget"]] * 3 + [[]] * 3
    assert engine.runs.resume(family[0].id, add_usd=1).ok
    assert holds(*family) == [[]] * 3


def test_more_budget_leaves_what_has_ended_as_it_is(engine: Engine) -> None:
    engine.workflows.add(SHIP)
    run = start(engine, limited("order", Budget(attempts=2), call(), LAST))
    shipping = of(run)
    shipping.finish("pack")
    complete(engine, shipping.take("send"), 0)
    ended = get(shipping)
    assert (ended.status, shipping.holds) == ("completed", ["budget"])
    assert engine.runs.resume(run.id, add_attempts=1).ok
    assert (get(shipping), run.holds) == (ended, [])


def test_more_budget_lifts_paused_from_all_that_was_called(engine: Engine) -> None:
    family = run, middle, lowest = begin(engine, Budget(usd=1))
    beside = begin(engine, Budget(usd=1))
    assert engine.runs.pause(run.id).ok
    assert engine.runs.pause(beside[0].id).ok
    assert engine.runs.resume(run.id, add_usd=1).ok
    assert holds(*family) == [[], [], []]
    assert holds(*beside) == [["paused"]] * 3
    assert engine.runs.resume(run.id).repeated
    version = get(lowest).version
    assert engine.runs.resume(run.id, add_usd=1).ok
    assert get(lowest).version == version
    assert engine.runs.pause(middle.id).ok
    again = engine.runs.resume(run.id)
    assert (again.ok, again.repeated, middle.holds) == (True, False, [])


def test_called_runs_that_lack_the_budget_hold_of_their_caller_are_given_it(
    engine: Engine,
) -> None:
    family = run, middle, lowest = begin(engine, Budget(usd=1))
    complete(engine, lowest.take("pack"), 1)
    check = middle.steps["check"]
    assert engine.runs.unhold(middle.id, "budget").ok
    assert holds(*family) == [["budget"], [], []]
    assert write(engine, "hold_spent_runs", ids=[run.id]) == {middle.id, lowest.id}
    for each in (middle, lowest):
        engine.runs.advance(each.id)
    assert engine.work.claim_by_id(check, "worker") == []
