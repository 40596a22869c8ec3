"""A group hands on only what nobody else would come before, and gives it to who has room."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.core.operation import Sweep
from holdfast.engine.engine import Engine
from holdfast.model.budget import Budget
from holdfast.model.run import NewRun
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import OnFailure
from holdfast.store.database import Transaction
from tests.contract.called_workflows import call
from tests.contract.engine.claims.test_standing_claims import Hand
from tests.contract.engine.guards.test_direct_start import BESIDE, FLAG, PLAN
from tests.contract.engine.state.child_runs.test_child_run_budgets import limited
from tests.contract.task_states import CHAIN
from tests.engines import healthy


@pytest.fixture
def quiet(store_url: str) -> Iterator[Engine]:
    """An engine that writes a group only when it is told to."""
    engine = Engine(store_url)
    with healthy(engine):
        yield engine


class Chain:
    """A run of one engine whose first step somebody holds who takes one at a time."""

    def __init__(self, engine: Engine, workflow: Workflow = CHAIN) -> None:
        self.engine = engine
        self.hand = Hand(engine, room=1, bare=False)
        started = engine.runs.start.submit(NewRun(workflow=workflow))
        engine.commits.step()
        self.id = started.result().id
        self.work = next(each.id for each in engine.runs.tasks(self.id) if each.step == "work")

    def report(self) -> None:
        """Have the report of what is held written, with whatever else was submitted."""
        self.hand.complete()
        self.engine.commits.step()

    def history(self) -> list[str]:
        events = self.engine.runs.events(self.id)
        return [each.type for each in events if each.task_id == self.work]

    def finish(self) -> None:
        while self.hand.held:
            self.report()
        assert self.engine.runs.get(self.id).status == "completed"


HANDED_ON = ["task.created", "task.running"]
IN_TURN = ["task.created", "task.unblocked", "task.running"]


def test_a_worker_that_takes_bare_tasks_too_is_handed_no_step_past_them(
    quiet: Engine,
) -> None:
    chain = Chain(quiet)
    chain.hand.standing_claim.bare = True
    quiet.tasks.create.submit(NewTask(title="bare", priority=1))
    quiet.commits.step()
    chain.report()
    assert chain.hand.titles == ["bare"]
    chain.finish()
    assert chain.history()[:3] == IN_TURN


def test_a_step_that_is_handed_on_has_one_event_for_both(quiet: Engine) -> None:
    chain = Chain(quiet)
    chain.report()
    assert [each.step for each in chain.hand.held] == ["work"]
    assert chain.hand.held[0].needs == {"plan": None}
    assert chain.history() == HANDED_ON
    *_, event = quiet.tasks.events(chain.work)
    assert (event.source, event.target, event.actor) == ("queued", "running", "anna")
    assert event.data["blocked"] is False
    chain.finish()


def test_a_step_handed_on_counts_as_ready_for_no_time_after_a_long_need(
    store_url: str, clock: ManualClock
) -> None:
    engine = Engine(store_url, clock=clock)

    def read(tx: Transaction) -> list[int]:
        rows = tx.read("newest_dispatches", after=0, until=1_000, count=9)
        return [row["waited"] for row in rows]

    with healthy(engine):
        chain = Chain(engine)
        clock.advance(3)
        chain.report()
        assert chain.history() == HANDED_ON
        # Of the first step too, which is created and claimed by one commit.
        assert engine.database.view(read) == [0, 0]


def test_a_new_task_in_the_same_commit_may_come_first(quiet: Engine) -> None:
    chain = Chain(quiet)
    quiet.tasks.create.submit(NewTask(title="urgent", step="pack", priority=9))
    chain.report()
    assert chain.hand.titles == ["urgent"]
    chain.report()
    assert chain.history() == IN_TURN
    chain.finish()


def test_a_task_that_a_key_lets_in_with_the_same_report_may_come_first(quiet: Engine) -> None:
    chain = Chain(quiet)
    one = Concurrency(key="key", limit=1)
    chain.hand.room = 2
    for title in ("first", "second"):
        quiet.tasks.create.submit(NewTask(title=title, step="pack", priority=9, concurrency=one))
        quiet.commits.step()
    assert chain.hand.titles == ["plan", "first"]
    chain.hand.room = 1
    chain.hand.complete()
    chain.hand.complete()
    quiet.commits.step()
    assert chain.hand.titles == ["second"]
    chain.report()
    assert chain.history() == IN_TURN
    chain.finish()


@pytest.mark.parametrize("budget", [Budget(attempts=1), Budget(usd=1)], ids=["attempts", "usd"])
def test_the_step_after_the_last_that_a_budget_allows_is_not_started(
    quiet: Engine, budget: Budget
) -> None:
    chain = Chain(quiet, limited("limited", budget, *CHAIN.steps))
    plan = chain.hand.held.pop()
    quiet.work.complete.submit(plan.task_id, plan.token, usage={"usd": 1})
    quiet.commits.step()
    assert chain.hand.held == []
    assert quiet.runs.get(chain.id).holds.names == ("budget",)
    quiet.runs.cancel.submit(chain.id)
    quiet.commits.step()


def test_a_worker_that_leaves_during_a_report_is_given_the_step_that_was_started_for_it(
    quiet: Engine,
) -> None:
    chain = Chain(quiet)

    def leaves() -> tuple[str, ...]:
        chain.hand.let_go()
        return ()

    chain.hand.standing_claim.passed = leaves
    chain.report()
    assert [each.step for each in chain.hand.held] == ["work"]
    assert chain.history() == HANDED_ON


@pytest.mark.parametrize("trouble", ["passed", "lease"])
def test_a_report_is_written_though_nothing_can_be_handed_on(quiet: Engine, trouble: str) -> None:
    chain = Chain(quiet)
    if trouble == "lease":
        chain.hand.standing_claim.lease = 2**63 - 1
    else:
        chain.hand.trouble = RuntimeError("nobody can tell what to pass by")
    chain.report()
    states = {each.step: each.state for each in quiet.runs.tasks(chain.id)}
    assert states == {"plan": "done", "work": "ready", "review": "blocked"}


@pytest.mark.parametrize("change", [{"agents": ("default", "other")}, {"request": "again"}])
def test_a_worker_of_several_lines_or_with_a_request_gets_the_next_step_by_a_claim(
    quiet: Engine, change: dict[str, Any]
) -> None:
    chain = Chain(quiet)
    for name, value in change.items():
        setattr(chain.hand.standing_claim, name, value)
    chain.report()
    assert [each.step for each in chain.hand.held] == ["work"]
    assert chain.history() == IN_TURN


def test_a_worker_that_passes_a_task_by_gets_the_next_step_by_a_claim(quiet: Engine) -> None:
    chain = Chain(quiet)
    chain.hand.standing_claim.passed = lambda: ("t_" + "0" * 20,)
    chain.report()
    assert chain.history() == IN_TURN


class Play:
    """Runs of random steps with one worker, which now and then reports several at once.

    Some steps have a condition, which may hold, not hold, or send the run back; some are loops,
    some runs share a key, and some steps are more urgent than others.
    """

    NAMES = "abcdef"

    def __init__(self, engine: Engine, seed: int, *agents: str) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a play that can be repeated
        self.engine = engine
        self.hand = Hand(engine, room=self.chance.randint(1, 3), bare=False)
        self.hand.standing_claim.agents = agents
        self.numbers: dict[str | None, int] = {}
        for number in range(4):
            new = NewRun(workflow=self._workflow(), priority=self.chance.choice((0, 0, 1)))
            started = engine.runs.start.submit(new)
            engine.commits.step()
            self.numbers[started.result().id] = number

    def _workflow(self) -> Workflow:
        steps = tuple(self._step(place) for place in range(len(self.NAMES)))
        key = self.chance.choice((None, None, Concurrency(key="play", limit=2)))
        return Workflow.define("random", steps, concurrency=key)

    def _step(self, place: int) -> Step:
        before = self.NAMES[:place]
        needs = self.chance.sample(before, self.chance.randint(min(place, 1), min(place, 2)))
        step = Step(
            id=self.NAMES[place], needs=tuple(needs), priority=self.chance.choice((0, 0, 5))
        )
        kind = self.chance.random()
        if not needs or kind < 0.6:
            return step
        given = f"steps.{needs[0]}"
        if kind < 0.8:
            back = OnFailure(action="goto", step=needs[0], max_rounds=3)
            told = Reference.parse("when", f"{given}.flag")
            return replace(step, when=told, on_failure=self.chance.choice((OnFailure(), back)))
        listed = Reference.parse("for_each", f"{given}.list")
        one = Step(id=f"{step.id}1")
        return replace(step, for_each=listed, steps=(one, Step(id=f"{step.id}2", needs=(one.id,))))

    def order(self) -> list[list[object]]:
        """What was held after each commit, and with what it was to go on."""
        held: list[list[object]] = []
        while self.hand.held:
            for _ in range(self.chance.randint(1, len(self.hand.held))):
                each = self.hand.held.pop(self.chance.randrange(len(self.hand.held)))
                self.engine.work.complete.submit(each.task_id, each.token, self._output())
            self.engine.commits.step()
            held.append([self._label(each) for each in self.hand.held])
        self.hand.let_go()
        return held + [[self.engine.runs.get(str(run)).status] for run in self.numbers]

    def _output(self) -> dict[str, object]:
        flag = self.chance.choice((True, True, False, None))
        listed = self.chance.choice(([1, 2], [1, 2], [], None))
        told: dict[str, object] = {"flag": flag, "list": listed}
        return {name: value for name, value in told.items() if value is not None}

    def _label(self, each: Assignment) -> object:
        return self.numbers[each.run_id], each.step, each.item_number, each.attempt, each.needs


@pytest.mark.parametrize("seed", range(40))
def test_steps_are_handed_on_in_the_very_order_in_which_they_would_be_claimed(
    quiet: Engine, seed: int
) -> None:
    handed = Play(quiet, seed, "default").order()
    assert handed == Play(quiet, seed, "default", "other").order()


def begin(engine: Engine, *steps: Step, room: int = 1, **fields: Any) -> Hand:
    """Somebody who holds the first steps of a run."""
    hand = Hand(engine, room=room, bare=False)
    engine.runs.start.submit(NewRun(workflow=Workflow.define("wide", steps), **fields))
    engine.commits.step()
    return hand


def report(hand: Hand, output: object = None) -> list[str | None]:
    """Report all that is held; the answer is the steps that are held then."""
    for each in hand.held:
        hand.engine.work.complete.submit(each.task_id, each.token, output)
    hand.held.clear()
    hand.engine.commits.step()
    return [each.step for each in hand.held]


def test_a_step_is_not_handed_on_past_a_step_that_its_condition_may_start_first(
    quiet: Engine,
) -> None:
    urgent = Step(id="urgent", needs=("plan",), when=FLAG, priority=9)
    assert report(begin(quiet, PLAN, BESIDE, urgent), {"flag": True}) == ["urgent"]


def test_a_step_is_not_handed_on_past_a_step_that_a_skipped_step_unblocks(quiet: Engine) -> None:
    skipped = Step(id="skipped", needs=("plan",), when=FLAG)
    urgent = Step(id="urgent", needs=("skipped",), priority=9)
    assert report(begin(quiet, PLAN, BESIDE, skipped, urgent), {"flag": False}) == ["urgent"]


def test_a_step_is_not_handed_on_when_another_step_sends_the_run_back(quiet: Engine) -> None:
    back = OnFailure(action="goto", step="plan", max_rounds=2)
    hand = begin(quiet, PLAN, BESIDE, Step(id="y", needs=("plan",), when=FLAG, on_failure=back))
    assert report(hand, {}) == ["plan"]
    assert report(hand, {"flag": False}) == ["beside"]


def test_a_step_is_not_handed_on_beside_a_loop_whose_list_is_missing(quiet: Engine) -> None:
    listed = Reference.parse("for_each", "steps.plan.list")
    loop = Step(id="loop", needs=("plan",), for_each=listed, steps=(Step(id="one"),))
    assert report(begin(quiet, PLAN, BESIDE, loop), {}) == []


def test_a_step_is_not_handed_on_past_a_step_behind_a_loop_that_ends(quiet: Engine) -> None:
    hand = begin(quiet, PLAN, BESIDE, room=2)
    each = Reference.parse("for_each", "input.list")
    steps = (
        Step(id="loop", for_each=each, steps=(Step(id="one"),)),
        Step(id="urgent", needs=("loop",)),
    )
    new = NewRun(workflow=Workflow.define("loop", steps), input={"list": [1]}, priority=9)
    quiet.runs.start.submit(new)
    quiet.commits.step()
    hand.room = 1
    assert report(hand) == ["urgent"]


def test_a_step_is_not_handed_on_past_a_run_that_the_end_of_another_lets_in(quiet: Engine) -> None:
    one = Concurrency(key="key", limit=1)
    keyed = Workflow.define("keyed", (Step(id="only"),), concurrency=one)
    hand = begin(quiet, PLAN, BESIDE, room=2)
    for priority in (0, 9):
        quiet.runs.start.submit(NewRun(workflow=keyed, priority=priority))
        quiet.commits.step()
    hand.room = 1
    assert report(hand) == ["only"]


def test_a_step_is_not_handed_on_past_the_caller_of_a_run_that_ends(quiet: Engine) -> None:
    called = Workflow.define("called", (Step(id="only"),))
    caller = Workflow.define("caller", (call("it", called), Step(id="urgent", needs=("it",))))
    hand = begin(quiet, PLAN, BESIDE, room=2)
    quiet.workflows.add.submit(called)
    quiet.runs.start.submit(NewRun(workflow=caller, priority=9))
    quiet.commits.step()
    assert [each.step for each in hand.held] == ["plan", "only"]
    hand.room = 1
    assert report(hand) == ["urgent"]


def test_a_step_is_not_handed_on_past_a_task_that_has_become_due(
    store_url: str, clock: ManualClock
) -> None:
    engine = Engine(store_url, clock=clock)
    with healthy(engine):
        hand = begin(engine, PLAN, BESIDE)
        later = NewTask(title="urgent", step="pack", priority=9, scheduled_for=clock.now() + 1)
        engine.tasks.create.submit(later)
        engine.commits.step()
        clock.advance(1)
        engine.commits.submit(Sweep())
        report(hand)
        assert hand.titles == ["urgent"]
