"""Claims that are written together: each gets its own, and no more than if it came alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.engine.engine import Engine
from holdfast.model.budget import Budget
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.task_states import create, finish, start
from tests.engines import healthy


@contextmanager
def beside(engine: Engine, url: str) -> Iterator[Engine]:
    """Another engine on the store, which writes when it is told to."""
    other = Engine(url, clock=engine.clock)
    with healthy(other):
        yield other


def claim_together(engine: Engine, count: int) -> list[list[Assignment]]:
    asked = [engine.work.claim.submit(f"worker-{number}") for number in range(count)]
    assert engine.commits.step() == count
    return [each.result(0) for each in asked]


def test_each_claim_of_a_group_has_what_its_own_task_needs(engine: Engine, store_url: str) -> None:
    needs = [create(engine, f"need {number}") for number in range(2)]
    tasks = [create(engine, "task", needs=[each]) for each in needs]
    lone = create(engine, "lone")
    for number, each in enumerate(needs):
        finish(engine, each, number)
    with beside(engine, store_url) as other:
        got = claim_together(other, 4)
    told = {each.task_id: each.needs for claimed in got for each in claimed}
    assert told == {
        tasks[0]: {needs[0]: 0},
        tasks[1]: {needs[1]: 1},
        lone: {},
    }
    assert [len(each) for each in got] == [1, 1, 1, 0]


def test_claims_of_a_group_start_no_more_of_a_run_than_its_budget_allows(
    engine: Engine, store_url: str
) -> None:
    steps = tuple(Step(id=name, needs=()) for name in ("one", "two", "three"))
    start(
        engine,
        Workflow.define("side", steps, declared=WorkflowDeclarations(budget=Budget(attempts=2))),
    )
    with beside(engine, store_url) as other:
        got = claim_together(other, 3)
    assert [len(each) for each in got] == [1, 1, 0]
