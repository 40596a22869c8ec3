"""Links by hand: front ends take away those alone, and what is so already is not written again."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, Advice, advice_of
from holdfast.model.result import Refusal
from holdfast.model.status import Status
from holdfast.model.workflow.graph import Step
from tests.contract.advised import advised
from tests.contract.engine.state.loops.test_loops import begin
from tests.contract.engine.state.needs.test_older_needs import own_part
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.engine.state.verdicts.test_verifiers import current, do
from tests.contract.raw_store import dump
from tests.contract.task_states import MISSING_TASK, bring, create, finish, take

RELEASE = (
    Step(id="build"),
    Step(id="approve", approval="Deploy?", needs=("build",)),
    Step(id="deploy", needs=("approve",)),
    Step(id="tidy", needs=()),
)


def let_go(
    engine: Engine, store_url: str, task: str, needs: list[str] | None = None
) -> list[Advice]:
    """Have a front end refused that would take needs away, without a trace; tell its advice."""
    store = dump(store_url)
    answer = engine.tasks.unblock(task, needs, by_hand=True)
    assert (answer.ok, answer.reason, answer.repeated) == (
        False,
        Refusal.INVALID_TRANSITION,
        False,
    )
    assert dump(store_url) == store
    return advised(answer)


def test_an_approval_is_not_passed_by_unlinking_it(engine: Engine, store_url: str) -> None:
    run = begin(engine, *RELEASE)
    approve, deploy = (current(engine, run, step).id for step in ("approve", "deploy"))
    not_yet = [Advice(Action.WHY, approve)]
    assert let_go(engine, store_url, deploy) == not_yet
    do(engine, run, "build")
    assert engine.runs.pause(run).ok
    assert let_go(engine, store_url, deploy) == not_yet
    assert engine.runs.resume(run).ok
    told = [Advice(Action.APPROVE, approve), Advice(Action.REJECT, approve)]
    assert let_go(engine, store_url, deploy) == told
    assert let_go(engine, store_url, deploy, [approve]) == told
    again = engine.tasks.block(deploy, [approve])
    assert (again.ok, again.repeated) == (True, True)
    assert let_go(engine, store_url, deploy, [approve]) == told
    assert engine.tasks.get(deploy).blocked


@pytest.mark.parametrize("begun", [False, True], ids=["new", "tried before"])
def test_in_a_run_only_the_link_by_hand_is_taken_away(
    engine: Engine, store_url: str, *, begun: bool
) -> None:
    run = begin(engine, *RELEASE)
    build, approve, deploy, tidy = (
        current(engine, run, step).id for step in ("build", "approve", "deploy", "tidy")
    )
    if begun:
        assert engine.work.release(tidy, take(engine, tidy).token).ok
    assert engine.tasks.block(tidy, [build]).ok
    assert engine.tasks.unblock(tidy, [build], by_hand=True).ok
    assert engine.tasks.blocked_by(tidy) == []
    assert engine.tasks.block(deploy, [approve, tidy]).ok
    let_go(engine, store_url, deploy, [tidy, approve])
    assert engine.tasks.unblock(deploy, by_hand=True).ok
    assert engine.tasks.blocked_by(deploy) == [approve]
    finish(engine, build)
    assert engine.tasks.approve(approve).ok
    assert engine.tasks.unblock(deploy, by_hand=True).repeated


def test_a_verifier_and_a_step_that_failed_are_not_passed_either(
    engine: Engine, store_url: str
) -> None:
    steps = (Step(id="make"), Step(id="check", verifies="make"), Step(id="ship", needs=("make",)))
    run = begin(engine, *steps)
    make, check, ship = (current(engine, run, step).id for step in ("make", "check", "ship"))
    assert let_go(engine, store_url, ship) == [Advice(Action.WHY, check)]
    assert engine.tasks.cancel(make).ok
    assert let_go(engine, store_url, check) == [Advice(Action.RETRY, make)]


def test_the_order_of_a_plan_is_not_taken_apart(engine: Engine, store_url: str) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    before, aside = create(engine, "before"), create(engine, "aside")
    assert engine.tasks.block(parent, [before]).ok
    assert engine.tasks.finalize_plan(parent).ok
    told = [Advice(Action.CANCEL, parent), Advice(Action.RESET, parent)]
    assert let_go(engine, store_url, two, [one]) == told
    assert let_go(engine, store_url, two, [before]) == told
    assert engine.tasks.block(two, [aside]).ok
    assert engine.tasks.unblock(two, by_hand=True).ok
    assert engine.tasks.blocked_by(two) == sorted([before, one])
    assert engine.tasks.unblock(parent, by_hand=True).ok


def test_needs_that_a_task_was_created_with_count_as_links_by_hand(engine: Engine) -> None:
    need = create(engine)
    task = create(engine, needs=(need,))
    assert engine.tasks.unblock(task, by_hand=True).ok
    assert engine.tasks.get(task).state == "ready"


def test_a_need_that_could_never_be_met_is_taken_away(engine: Engine) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    for each in advice_of(own_part(engine, parent, two)):
        assert engine.tasks.unblock(each.target, each.values("need"), by_hand=True).ok
    assert engine.tasks.get(one).state == "ready"


def test_a_link_that_is_there_or_has_gone_is_repeated_and_writes_nothing(
    engine: Engine, store_url: str
) -> None:
    first, second, task = (create(engine) for _ in range(3))
    assert not engine.tasks.block(task, [first]).repeated
    store = dump(store_url)
    answers = [engine.tasks.block(task, [first]), engine.tasks.unblock(task, [second])]
    assert [(each.ok, each.repeated, each.status) for each in answers] == [
        (True, True, "queued")
    ] * 2
    assert dump(store_url) == store
    assert not engine.tasks.block(task, [first, second]).repeated
    assert engine.tasks.events(task)[-1].data["linked"] == [second]
    assert not engine.tasks.unblock(task, [first]).repeated
    assert not engine.tasks.unblock(task).repeated
    store = dump(store_url)
    assert engine.tasks.unblock(task).repeated
    assert engine.tasks.unblock(task, [first]).repeated
    assert dump(store_url) == store


def test_an_unknown_need_is_not_taken_away(engine: Engine, store_url: str) -> None:
    task, done = create(engine), bring(engine, Status.DONE)
    store = dump(store_url)
    with pytest.raises(InvalidInput, match=f"^needs: {MISSING_TASK} is not a task of this store"):
        engine.tasks.unblock(task, [MISSING_TASK])
    assert engine.tasks.unblock(done.task_id).reason is Refusal.INVALID_TRANSITION
    assert dump(store_url) == store
