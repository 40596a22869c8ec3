"""A run as it stood once is the run as it was read then: folded from its events, nothing kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.workflow.graph import Escalation, OnFailure, Step, Workflow
from holdfast.service.queries.queries import Queries
from tests.contract import called_workflows
from tests.contract.engine.state.loops.test_loops import begin, loop, of
from tests.contract.engine.state.verdicts.test_verifiers import ACCEPT, REJECT, body
from tests.contract.task_states import MISSING_RUN, start, take

# What no event tells, or what the run has by now.
UNTOLD = {"lease", "output", "error", "usage", "feedback", "progress", "question"}


class Witness:
    """Reads a run at some moments, each with the number of its last event."""

    def __init__(self, engine: Engine, run: str) -> None:
        self.run = run
        self.queries = Queries(engine.database.view, lambda: engine)
        self.seen: list[tuple[int, dict[str, Any]]] = []

    def look(self) -> None:
        events = self.queries.events(self.run, limit=1000, final=True)["items"]
        self.seen.append((events[-1]["seq"], plain(self.queries.run(self.run))))

    def compare(self) -> None:
        assert len(self.seen) > 3
        for seq, was in self.seen:
            past = self.queries.past_run(self.run, seq)
            assert past["as_of"]["seq"] == seq
            assert [*differences(plain(past), was)] == [], seq


def differences(past: Any, was: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(past, dict) and isinstance(was, dict):
        for name in sorted({*past, *was}):
            yield from differences(past.get(name), was.get(name), f"{place}.{name}")
    elif isinstance(past, list) and isinstance(was, list) and len(past) == len(was):
        for number, (one, other) in enumerate(zip(past, was, strict=True)):
            yield from differences(one, other, f"{place}.{number}")
    elif past != was:
        yield f"{place}: {past} was {was}"


def plain(view: dict[str, Any]) -> dict[str, Any]:
    """A run and its tasks without what no event tells."""
    told = {name: value for name, value in view.items() if name not in UNTOLD | {"as_of"}}
    for name in ("tasks", "child"):
        if name in told:
            below = told[name]
            told[name] = plain(below) if name == "child" else [plain(each) for each in below]
    return told


def test_each_moment_of_a_chain_is_as_it_was(engine: Engine) -> None:
    run = start(engine)
    witness = Witness(engine, run.id)
    witness.look()
    token = take(engine, run.steps["plan"]).token
    witness.look()
    assert engine.work.fail(run.steps["plan"], token, "broken").ok
    witness.look()
    assert engine.runs.pause(run.id).ok
    witness.look()
    assert engine.runs.resume(run.id).ok
    assert engine.tasks.run_now(run.steps["plan"]).ok
    token = take(engine, run.steps["plan"]).token
    assert engine.work.complete(run.steps["plan"], token, "output", usage={"usd": 0.5}).ok
    witness.look()
    assert engine.tasks.hold(run.steps["work"]).ok
    witness.look()
    assert engine.runs.cancel(run.id).ok
    witness.look()
    assert engine.runs.retry(run.id).ok
    witness.look()
    assert engine.tasks.unhold(run.steps["work"]).ok
    run.finish("work", "review")
    witness.look()
    assert engine.runs.retry(run.id, step="work").ok
    witness.look()
    witness.compare()
    past = witness.queries.past_run(run.id, witness.seen[-2][0])
    assert past["status"] == "completed"
    assert past["usage"] == {"usd": 0.5}
    assert [each["output"] for each in past["tasks"] if each["step"] == "plan"] == ["output"]


def test_each_moment_of_a_loop_with_a_verifier_is_as_it_was(engine: Engine) -> None:
    run = begin(engine, loop("input", body=body(), parallel=2), given=["a", "b"])
    witness = Witness(engine, run)
    witness.look()
    for verdict in (REJECT, ACCEPT):
        for _ in range(2):
            for each in engine.work.claim("w", count=2):
                witness.look()
                said = verdict if each.name == "verify" else "made"
                assert engine.work.complete(each.task_id, each.token, said).ok
                witness.look()
    assert {task.round for task in of(engine, run, "do")} != {0} or len(witness.seen) > 8
    witness.compare()


def test_each_moment_of_a_run_that_calls_another_is_as_it_was(engine: Engine) -> None:
    run = called_workflows.begin(engine, called_workflows.call(), called_workflows.LAST)
    witness = Witness(engine, run.id)
    witness.look()
    for _ in range(4):
        for each in engine.work.claim("w", count=1):
            witness.look()
            finish_claimed(engine, each)
            witness.look()
    witness.compare()


def finish_claimed(engine: Engine, claimed: Any) -> None:  # noqa: ANN401 - an assignment
    assert engine.work.complete(claimed.task_id, claimed.token, "output").ok


def test_the_agent_before_an_escalation_is_told(engine: Engine) -> None:
    handed = OnFailure(action="escalate", escalation=Escalation(agent="senior"))
    one = Step(id="do", on_failure=handed, retry=RetryPolicy(max_attempts=1))
    run = engine.runs.start(NewRun(workflow=Workflow.define("flow", (one,)))).id
    witness = Witness(engine, run)
    witness.look()
    (task,) = engine.runs.tasks(run)
    token = take(engine, task.id).token
    witness.look()
    assert engine.work.fail(task.id, token, "broken").ok
    witness.look()
    assert engine.runs.cancel(run).ok
    witness.look()
    witness.compare()
    agents = [witness.queries.past_run(run, seq)["tasks"][0]["agent"] for seq, _ in witness.seen]
    assert agents == ["default", "default", "senior", "senior"]


def test_a_moment_before_the_run_and_a_run_that_is_not_there_are_refused(engine: Engine) -> None:
    first, second = start(engine), start(engine)
    queries = Queries(engine.database.view, lambda: engine)
    begun = queries.events(second.id)["items"][0]["seq"]
    with pytest.raises(
        InvalidInput, match=f"^at: is before the run began, which was event {begun}"
    ):
        queries.past_run(second.id, begun - 1)
    with pytest.raises(NotFound):
        queries.past_run(MISSING_RUN, 1)
    assert queries.past_run(first.id, 10**9)["tasks"] == queries.run(first.id)["tasks"]
