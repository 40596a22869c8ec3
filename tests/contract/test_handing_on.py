"""What has all it needs now goes on with a worker that has room, by one change of its row.

Each guard is put to the statement alone, after one report and nothing that should follow it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.budget import Budget
from holdfast.model.graph import Concurrency, Step, Workflow
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from tests.contract import test_claim_statements as clauses
from tests.contract.raw import Raw, raw
from tests.contract.stages import CHAIN, FORK, StartedRun, bring, create, start, take
from tests.contract.statements import complete
from tests.contract.test_called_budgets import limited
from tests.contract.test_taking import Hand
from tests.engines import healthy

Arrange = Callable[[Engine, Raw], str]
Hold = Callable[[Engine, StartedRun], object]
KEYED = Step(id="work", needs=("plan",), concurrency=Concurrency(key="key", limit=2))
TAGGED = Step(id="work", needs=("plan",), tags=("linux",))


@pytest.fixture
def hand(engine: Engine, store_url: str) -> Iterator[Raw]:
    assert engine.doctor().ok
    with raw(store_url) as connection:
        yield connection


def planned(engine: Engine, workflow: Workflow = CHAIN, **fields: Any) -> StartedRun:
    """A run whose first step is done, and nothing has followed from it."""
    run = start(engine, workflow, **fields)
    run.take("plan")
    complete(engine, run.steps["plan"])
    return run


def hand_on(engine: Engine, run: StartedRun, **changes: Any) -> dict[str, str]:
    """What became of the steps of a run that were handed on, by their names."""
    asked = {
        "ids": [run.steps["plan"]],
        "runs": [run.id],
        "agent": "default",
        "tags": '["linux"]',
        "worker": "anna",
        "lease": 30_000_000,
        "count": 1,
        **changes,
    }
    changed = engine.database.transact(lambda tx: tx.change("hand_on", **asked))
    names = {task_id: step for step, task_id in run.steps.items()}
    return {names[row["entity"]]: row["status"] for row in changed}


def test_of_those_that_have_all_they_need_as_many_start_as_there_is_room_for(
    engine: Engine,
) -> None:
    run = planned(engine, FORK)
    assert hand_on(engine, run) == {"left": "running", "right": "queued"}
    assert run.states == {"plan": "done", "left": "running", "right": "ready", "join": "blocked"}
    # What is in line is started by whoever claims it.
    assert hand_on(engine, run) == {}
    complete(engine, run.steps["left"])
    assert hand_on(engine, run, ids=[run.steps["left"]]) == {}
    run.take("right")
    complete(engine, run.steps["right"])
    assert hand_on(engine, run, ids=[run.steps["right"]]) == {"join": "running"}
    # None of it twice.
    assert hand_on(engine, run, ids=list(run.steps.values())) == {}


def test_what_needs_something_else_is_left_alone(engine: Engine) -> None:
    run, other = planned(engine), planned(engine)
    assert hand_on(engine, run, runs=[run.id, other.id], count=2) == {"work": "running"}
    assert other.states["work"] == "blocked"
    engine.runs.advance(other.id)


def test_what_was_cancelled_meanwhile_stays_so(engine: Engine) -> None:
    run = planned(engine)
    assert engine.tasks.cancel(run.steps["work"]).ok
    assert hand_on(engine, run) == {}
    engine.runs.advance(run.id)


def held(engine: Engine, run: StartedRun) -> None:
    assert engine.tasks.hold(run.steps["work"], "question").ok


def paused_with_its_run(engine: Engine, run: StartedRun) -> None:
    assert engine.runs.pause(run.id).ok


def scheduled(engine: Engine, run: StartedRun) -> None:
    later = engine.clock.now() + 1_000_000
    assert engine.tasks.edit(run.steps["work"], {"scheduled_for": later}).ok


def for_another_agent(engine: Engine, run: StartedRun) -> None:
    assert engine.tasks.edit(run.steps["work"], {"agent": "other"}).ok


def at_its_usage_limit(engine: Engine, _: StartedRun) -> None:
    reached = take(engine, create(engine))
    assert engine.work.reach_limit(reached.task_id, reached.token, "1h").ok


@pytest.mark.parametrize(
    "keep", [held, paused_with_its_run, scheduled, for_another_agent, at_its_usage_limit]
)
def test_what_no_claim_would_take_is_only_unblocked(engine: Engine, keep: Hold) -> None:
    run = start(engine)
    run.take("plan")
    keep(engine, run)
    complete(engine, run.steps["plan"])
    assert hand_on(engine, run) == {"work": "queued"}


def test_what_stands_in_a_run_that_is_not_locked_is_only_unblocked(engine: Engine) -> None:
    assert hand_on(engine, planned(engine), runs=[]) == {"work": "queued"}


@pytest.mark.parametrize("step", [KEYED, TAGGED], ids=["key", "tags"])
def test_what_has_a_key_or_tags_is_only_unblocked(engine: Engine, step: Step) -> None:
    run = planned(engine, Workflow.define("special", (Step(id="plan"), step)))
    assert hand_on(engine, run) == {"work": "queued"}


def test_what_has_run_before_is_only_unblocked_and_its_cost_counted_by_the_claim(
    engine: Engine,
) -> None:
    run = start(engine)
    run.finish("plan")
    token = run.take("work").token
    assert engine.work.fail(run.steps["work"], token, "no", retryable=False, usage={"usd": 1}).ok
    assert engine.runs.retry(run.id, step="plan").ok
    run.take("plan")
    complete(engine, run.steps["plan"])
    assert hand_on(engine, run) == {"work": "queued"}
    run.take("work")
    assert run.task("work").attempt == 2


def older(engine: Engine, _: Raw) -> str:
    return create(engine)


def more_urgent(engine: Engine, _: Raw) -> str:
    return create(engine, priority=1)


def wanted_now(engine: Engine, _: Raw) -> str:
    task_id = create(engine)
    assert engine.tasks.run_now(task_id).ok
    return task_id


def earlier_in_its_plan(engine: Engine, hand: Raw) -> str:
    task_id = create(engine)
    hand("UPDATE holdfast_task SET position = -1 WHERE id = ?", task_id)
    return task_id


@pytest.mark.parametrize("arrange", [older, more_urgent, wanted_now, earlier_in_its_plan])
def test_whoever_stands_before_it_in_line_comes_first(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    first = arrange(engine, hand) if arrange is older else None
    run = planned(engine)
    rival = first or arrange(engine, hand)
    assert hand_on(engine, run) == {"work": "queued"}
    assert [each.task_id for each in engine.work.claim("bob")] == [rival]
    hand("UPDATE holdfast_task SET position = 0")


def test_whoever_stands_behind_it_in_line_comes_later(engine: Engine) -> None:
    run = planned(engine, priority=1)
    create(engine, "newer, and less urgent")
    assert hand_on(engine, run) == {"work": "running"}


def running(engine: Engine, _: Raw) -> str:
    return bring(engine, Status.DONE).task_id


def parked(engine: Engine, hand: Raw) -> str:
    task_id = create(engine)
    hand("UPDATE holdfast_task SET parked = true WHERE id = ?", task_id)
    return task_id


NOT_READY = [
    clauses.blocked,
    clauses.held,
    clauses.held_by_its_run,
    clauses.scheduled,
    clauses.for_another_agent,
    clauses.no_work,
    running,
    parked,
]


@pytest.mark.parametrize("arrange", NOT_READY)
def test_who_is_older_but_not_ready_keeps_nobody_from_being_started(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    arrange(engine, hand)
    assert hand_on(engine, planned(engine)) == {"work": "running"}
    hand("UPDATE holdfast_task SET parked = false")


@pytest.mark.parametrize("arrange", [*NOT_READY, clauses.with_another_tag])
def test_with_somebody_in_line_who_has_a_key_or_tags_it_is_left_to_a_claim_who_comes_first(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    run = planned(engine)
    tagged = arrange is clauses.with_another_tag
    task_id = arrange(engine, hand)
    if not tagged:
        hand("UPDATE holdfast_task SET concurrency_key = ? WHERE id = ?", clauses.KEY, task_id)
    assert hand_on(engine, run) == {"work": "queued" if tagged else "running"}
    other = planned(engine)
    create(engine, concurrency=clauses.TWO)
    assert hand_on(engine, other) == {"work": "queued"}
    hand("UPDATE holdfast_task SET concurrency_key = NULL, parked = false WHERE id = ?", task_id)


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
        self.hand = Hand(engine, room=1)
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


def test_a_new_task_in_the_same_commit_may_come_first(quiet: Engine) -> None:
    chain = Chain(quiet)
    quiet.tasks.create.submit(NewTask(title="urgent", priority=9))
    chain.report()
    assert chain.hand.titles == ["urgent"]
    chain.report()
    assert chain.history() == IN_TURN
    chain.finish()


def test_what_a_key_lets_in_with_the_same_report_may_come_first(quiet: Engine) -> None:
    chain = Chain(quiet)
    one = Concurrency(key="key", limit=1)
    chain.hand.room = 2
    for title in ("first", "second"):
        quiet.tasks.create.submit(NewTask(title=title, priority=9, concurrency=one))
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


def test_the_step_after_the_last_that_a_budget_allows_is_not_started(quiet: Engine) -> None:
    chain = Chain(quiet, limited("limited", Budget(attempts=1), *CHAIN.steps))
    chain.report()
    assert chain.hand.held == []
    assert quiet.runs.get(chain.id).holds.names == ("budget",)
    quiet.runs.cancel.submit(chain.id)
    quiet.commits.step()


def test_who_leaves_just_then_is_given_what_was_started_for_it(quiet: Engine) -> None:
    chain = Chain(quiet)

    def leaves() -> tuple[str, ...]:
        chain.hand.let_go()
        return ()

    chain.hand.taker.passed = leaves
    chain.report()
    assert [each.step for each in chain.hand.held] == ["work"]
    assert chain.history() == HANDED_ON


@pytest.mark.parametrize("trouble", ["passed", "lease"])
def test_a_report_is_written_though_nothing_can_be_handed_on(quiet: Engine, trouble: str) -> None:
    chain = Chain(quiet)
    if trouble == "lease":
        chain.hand.taker.lease = 2**63 - 1
    else:
        chain.hand.trouble = RuntimeError("nobody can tell what to pass by")
    chain.report()
    states = {each.step: each.state for each in quiet.runs.tasks(chain.id)}
    assert states == {"plan": "done", "work": "ready", "review": "blocked"}


@pytest.mark.parametrize("change", [{"agents": ("default", "other")}, {"request": "again"}])
def test_who_takes_more_than_one_line_or_may_ask_again_gets_it_by_a_claim(
    quiet: Engine, change: dict[str, Any]
) -> None:
    chain = Chain(quiet)
    for name, value in change.items():
        setattr(chain.hand.taker, name, value)
    chain.report()
    assert [each.step for each in chain.hand.held] == ["work"]
    assert chain.history() == IN_TURN


def test_who_passes_somebody_by_gets_it_by_a_claim(quiet: Engine) -> None:
    chain = Chain(quiet)
    chain.hand.taker.passed = lambda: ("t_" + "0" * 20,)
    chain.report()
    assert chain.history() == IN_TURN


class Play:
    """Runs of random steps with one worker, which now and then reports several at once."""

    def __init__(self, engine: Engine, seed: int, *agents: str) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a play that can be repeated
        self.engine = engine
        self.hand = Hand(engine, room=self.chance.randint(1, 3))
        self.hand.taker.agents = agents
        self.numbers: dict[str | None, int] = {}
        for number in range(4):
            new = NewRun(workflow=self._workflow(), priority=self.chance.choice((0, 0, 1)))
            started = engine.runs.start.submit(new)
            engine.commits.step()
            self.numbers[started.result().id] = number

    def _workflow(self) -> Workflow:
        names = "abcdef"
        needs = [
            self.chance.sample(names[:place], self.chance.randint(min(place, 1), min(place, 2)))
            for place in range(len(names))
        ]
        steps = (Step(id=name, needs=tuple(each)) for name, each in zip(names, needs, strict=True))
        return Workflow.define("random", tuple(steps))

    def order(self) -> list[list[tuple[int, str | None]]]:
        """What was held after each commit."""
        held = []
        while self.hand.held:
            for _ in range(self.chance.randint(1, len(self.hand.held))):
                each = self.hand.held.pop(self.chance.randrange(len(self.hand.held)))
                self.engine.work.complete.submit(each.task_id, each.token)
            self.engine.commits.step()
            held.append([(self.numbers[each.run_id], each.step) for each in self.hand.held])
        self.hand.let_go()
        assert all(self.engine.runs.get(str(run)).status == "completed" for run in self.numbers)
        return held


@pytest.mark.parametrize("seed", range(12))
def test_steps_are_handed_on_in_the_very_order_in_which_they_would_be_claimed(
    quiet: Engine, seed: int
) -> None:
    handed = Play(quiet, seed, "default").order()
    assert handed == Play(quiet, seed, "default", "other").order()
