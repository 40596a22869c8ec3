"""Bad workflows and runs are refused whole, by field and mistake, and leave no row behind."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidDefinition, InvalidInput, KeyConflict
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.workflow.graph import MAX_STEPS, Concurrency, Step, Workflow
from tests.contract.engine.input.bad_values import (
    BAD_KEYS,
    BAD_NAMES,
    BAD_RANKS,
    NOT_JSON,
    NOT_LISTS,
    NOT_TEXT,
    TOO_LARGE,
    Refuse,
)
from tests.contract.task_states import CHAIN, MISSING_RUN, start

GOOD = Step(id="good")


def define(engine: Engine, *steps: Any, **fields: Any) -> None:
    """Define a workflow and start a run of it; a bad one does not come that far."""
    name = fields.pop("name", "bad")
    engine.runs.start(NewRun(workflow=Workflow(name=name, steps=steps, **fields)))


def mistakes(engine: Engine, *steps: Any, **fields: Any) -> list[str]:
    with pytest.raises(InvalidDefinition) as refused:
        define(engine, *steps, **fields)
    assert refused.value.field == "workflow bad"
    return refused.value.mistakes


def test_the_name_of_a_workflow_is_a_name(engine: Engine, refuse: Refuse) -> None:
    for bad in (*BAD_NAMES, *NOT_TEXT):
        refuse("workflow", define, engine, GOOD, name=bad)


def test_a_cycle_in_needs_is_refused_and_shown(engine: Engine, refuse: Refuse) -> None:
    circle = (Step(id="a", needs=("c",)), Step(id="b", needs=("a",)), Step(id="c", needs=("b",)))
    refuse("workflow bad", define, engine, *circle)
    assert mistakes(engine, GOOD, *circle) == ["the needs form a cycle: a → c → b → a"]
    tail = Step(id="0-after", needs=("a", "good"))
    assert mistakes(engine, GOOD, *circle, tail) == ["the needs form a cycle: a → c → b → a"]
    assert mistakes(engine, Step(id="a", needs=("a",))) == ["step 'a' needs itself"]


def test_an_unknown_need_is_refused_with_a_suggestion(engine: Engine, refuse: Refuse) -> None:
    steps = (Step(id="implement"), Step(id="review", needs=("implment", "nothing")))
    refuse("workflow bad", define, engine, *steps)
    near, far = mistakes(engine, *steps)
    assert near == "step 'review' needs 'implment', which is not a step; did you mean 'implement'?"
    assert far == "step 'review' needs 'nothing', which is not a step"


def test_every_mistake_is_told_at_once(engine: Engine, refuse: Refuse) -> None:
    steps = (Step(id="a", needs=("b",)), Step(id="a"), Step(id=".", agent=""))
    refuse("workflow bad", define, engine, *steps)
    told = "; ".join(mistakes(engine, *steps))
    for part in ("'a' is defined 2 times", "step '.': step:", "'a' needs 'b'"):
        assert part in told


BAD_STEPS: dict[str, tuple[object, ...]] = {
    "id": (*BAD_NAMES, *NOT_TEXT),
    "agent": (*BAD_NAMES, *NOT_TEXT),
    "needs": (*NOT_LISTS, ["good"], *[(bad,) for bad in (*BAD_NAMES, *NOT_TEXT[:3])]),
    "tags": (*NOT_LISTS, ["gpu"], *[(bad,) for bad in (*BAD_NAMES, *NOT_TEXT)]),
    "priority": BAD_RANKS,
    "timeout": (-1, 0, 0.000_000_1, 10**12, "5", True, [5], float("nan"), float("inf")),
    "retry": (None, 3, {"max_attempts": 3}),
    "concurrency": ("repo", 5, {"key": "repo"}),
}


@pytest.mark.parametrize("field", BAD_STEPS)
def test_a_step_is_refused_for_its_bad_field(engine: Engine, refuse: Refuse, field: str) -> None:
    for bad in BAD_STEPS[field]:
        given: dict[str, Any] = {"id": "bad", field: bad}
        refuse("workflow bad", define, engine, GOOD, Step(**given))
        told = mistakes(engine, GOOD, Step(**given))
        word = {"id": "step", "tags": "tag"}.get(field, field)
        assert any(word in each.partition("'bad'")[2] or field == "id" for each in told)
        assert all(each.startswith("step ") for each in told)


def test_a_workflow_step_that_is_no_step_object_is_refused(engine: Engine, refuse: Refuse) -> None:
    for bad in (None, 5, "step", {"id": "step"}):
        refuse("workflow bad", define, engine, GOOD, bad)
    assert mistakes(engine) == ["has no steps"]
    assert mistakes(engine, concurrency="repo") == ["its concurrency must be a Concurrency"]
    assert mistakes(engine, *[GOOD] * (MAX_STEPS + 1))[0].startswith(f"has {MAX_STEPS + 1} steps")
    listed: Any = [GOOD]
    with pytest.raises(InvalidDefinition, match="a tuple of Step"):
        Workflow(name="bad", steps=listed)


def test_a_concurrency_key_and_its_limit_are_checked(engine: Engine, refuse: Refuse) -> None:
    def limited(key: str) -> None:
        define(engine, GOOD, concurrency=Concurrency(key=key))

    bad: Any
    for bad in (*BAD_KEYS, *NOT_TEXT):
        refuse("concurrency", limited, bad)
    for bad in (0, -1, 1.0, "1", True, None, 10**9):
        with pytest.raises(InvalidInput) as refused:
            Concurrency(key="repo", limit=bad)
        assert refused.value.field == "concurrency.limit"


def test_a_retry_policy_is_checked(engine: Engine, refuse: Refuse) -> None:
    def retried(**given: Any) -> None:
        define(engine, Step(id="bad", retry=RetryPolicy(**given)))

    bad: Any
    for bad in (0, -1, 1.0, "3", True, None, 10**9):
        for field in ("max_attempts", "max_lost"):
            refuse(
                field, lambda **given: define(engine, retry=RetryPolicy(**given)), **{field: bad}
            )
    for bad in (-1, -0.5, "5", True, None, float("nan"), float("inf"), 10**12):
        for field in ("backoff", "backoff_max"):
            refuse(
                field, lambda **given: define(engine, retry=RetryPolicy(**given)), **{field: bad}
            )


def test_the_input_of_a_run_is_json_within_its_limit(engine: Engine, refuse: Refuse) -> None:
    for bad in (*NOT_JSON, TOO_LARGE, {"a": TOO_LARGE}, {"text": "a\x00b"}, {"text": "\ud800"}):
        refuse("input", engine.runs.start, NewRun(workflow=CHAIN, input=bad))
        refuse("input", engine.runs.start, NewRun(workflow=CHAIN, input=bad, key="kept"))


def test_a_refused_start_leaves_neither_workflow_nor_key_behind(
    engine: Engine, refuse: Refuse
) -> None:
    new = Workflow(name="new", steps=(GOOD,), concurrency=Concurrency(key="repo"))
    for bad in NOT_JSON:
        refuse("input", engine.runs.start, NewRun(workflow=new, input=bad, key="free"))
    with pytest.raises(KeyConflict):
        engine.runs.start(NewRun(workflow=new, key="kept"))
    assert engine.runs.retry(MISSING_RUN, step="good").reason == "not_found"


def test_a_good_run_starts_under_the_key_of_a_refused_run(engine: Engine) -> None:
    with pytest.raises(InvalidInput):
        engine.runs.start(NewRun(workflow=CHAIN, input=object(), key="order"))
    run = start(engine, key="order")
    run.finish("plan", "work", "review")
    assert run.status == "completed"
