"""An agent at its usage limit: nothing for it starts before that lifts, and people can lift it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.definition.workflow_file import read_workflow_text
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, Advice, advice_of
from holdfast.model.moment import to_datetime
from holdfast.model.run import NewRun
from holdfast.model.status import Hold
from holdfast.model.task import NewTask
from holdfast.model.workflow.step import Concurrency
from holdfast.service.commands.previews import Previews
from holdfast.service.queries import summaries
from holdfast.service.queries.explanations import explain
from holdfast.store.database import Row, Transaction
from holdfast.store.sql_text import queries
from tests.contract.advised import fixes_of
from tests.contract.query_cost import steps_of
from tests.contract.raw_store import raw
from tests.contract.task_states import CHAIN, FORK, create, start, take
from tests.engines import healthy, opened

HOUR = 3_600


class Late:
    """A transaction in which time goes by before it is asked until when a limit is."""

    def __init__(self, tx: Transaction, clock: ManualClock) -> None:
        self._tx = tx
        self._clock = clock

    def read(self, query: str, **parameters: Any) -> list[Row]:
        if query == "limit_of_agent":
            self._clock.advance(HOUR)
        return self._tx.read(query, **parameters)


def reach(engine: Engine, agent: str = "default", until: str = "1h") -> str:
    """A task whose agent has reached its limit."""
    held = take(engine, create(engine, agent=agent))
    assert engine.work.reach_limit(held.task_id, held.token, until).ok
    return held.task_id


def claim(engine: Engine, *agents: str) -> list[str]:
    return [each.task_id for each in engine.work.claim("w", agents=agents, count=9)]


def test_a_task_that_becomes_ready_during_its_agents_limit_is_claimed_when_the_limit_lifts(
    engine: Engine, clock: ManualClock
) -> None:
    waiting = create(engine, scheduled_for="10m")
    reached = reach(engine)
    late, other = create(engine), create(engine, agent="other")
    named = create(engine, tags=["gpu"], concurrency=Concurrency(key="k", limit=1))
    clock.advance(HOUR - 1)
    assert claim(engine, "default", "other") == [other]
    assert claim(engine, "default") == []
    assert engine.work.claim_by_id(late, "w", agents=["default"]) == []
    assert {engine.tasks.get(each).attempt for each in (waiting, late, named)} == {0}
    clock.advance(1)
    assert len(engine.work.claim_by_id(named, "w", agents=["default"], tags=["gpu"])) == 1
    assert claim(engine, "default") == [waiting, late]
    engine.recovery.step()
    assert claim(engine, "default") == [reached]


def test_nobody_claims_for_an_agent_in_the_commit_that_tells_of_its_limit(store_url: str) -> None:
    engine = Engine(store_url)
    with healthy(engine):
        made = engine.tasks.create_many.submit([NewTask(title="t")] * 3)
        engine.commits.step()
        first, second, _ = (each.id for each in made.result())
        claiming = engine.work.claim_by_id.submit(first, "w", agents=["default"])
        engine.commits.step()
        (held,) = claiming.result()
        told = engine.work.reach_limit.submit(held.task_id, held.token, "1h")
        claimed = engine.work.claim.submit("w", agents=["default"], count=9)
        named = engine.work.claim_by_id.submit(second, "w", agents=["default"])
        engine.commits.step()
        assert (told.result().ok, claimed.result(), named.result()) == (True, [], [])


def test_an_agents_limit_writes_no_event_for_the_tasks_that_wait_for_that_agent(
    engine: Engine,
) -> None:
    waiting = create(engine)
    reached = reach(engine)
    assert [each.type for each in engine.tasks.events(waiting)] == ["task.created"]
    assert engine.tasks.events(reached)[-1].type == "task.held"


def test_a_claim_for_an_agent_at_its_limit_walks_past_nobody(sqlite_store_url: str) -> None:
    with opened(sqlite_store_url) as engine:
        reach(engine)
        create(engine)
        before = look(sqlite_store_url)
        engine.tasks.create_many([NewTask(title="t")] * 500)
        assert look(sqlite_store_url) == before


def look(url: str) -> int:
    """What it costs SQLite, which asks of each row what is the same for all, to find nothing."""
    known = queries.load("sqlite")
    claim = {"agent": "default", "line": "[]", "tags": "[]", "count": 9, "keys": "[]"}
    claim |= {"passed": "[]", "worker": "w", "lease": 1, "peeked": False, "bare": True}
    lines = {"agents": '["default"]', "tags": "[]"}
    return steps_of(url, known["claim_tasks"].text, claim) + steps_of(
        url, known["lines"].text, lines
    )


def test_a_task_for_an_agent_at_its_limit_is_shown_as_held_until_the_limit_lifts(
    engine: Engine, clock: ManualClock
) -> None:
    until = to_datetime(clock.now() + HOUR * MICROSECONDS)
    reached, late = reach(engine), create(engine)
    others = {
        create(engine, agent="other"): "ready",
        create(engine, needs=[late]): "blocked",
        create(engine, scheduled_for="2h"): "scheduled",
        create(engine, enqueue=False): "idle",
    }
    listed = {task.id: task for task in engine.tasks.list()}
    for seen in (engine.tasks.get(late), listed[late], listed[reached]):
        assert (seen.state, seen.holds, seen.held_until) == ("held", Hold.LIMIT, until)
    assert {each: listed[each].state for each in others} == others
    assert {listed[each].held_until for each in others} == {None}
    agents = summaries.count_open_work(engine.database.view)["agents"]
    assert agents["default"] == {"held": 2, "blocked": 1, "scheduled": 1}
    assert agents["other"] == {"ready": 1}
    clock.advance(HOUR)
    assert (engine.tasks.get(late).state, engine.tasks.get(late).held_until) == ("ready", None)


def test_a_task_whose_agent_reached_two_limits_is_shown_as_held_until_the_later_one(
    engine: Engine, clock: ManualClock
) -> None:
    first, second = (take(engine, create(engine)) for _ in range(2))
    assert engine.work.reach_limit(first.task_id, first.token, "1h").ok
    assert engine.work.reach_limit(second.task_id, second.token, "2h").ok
    until = to_datetime(clock.now() + 2 * HOUR * MICROSECONDS)
    assert [engine.tasks.get(each.task_id).held_until for each in (first, second)] == [until] * 2


def test_a_limit_stands_also_when_the_run_that_met_it_is_cancelled_at_once(store_url: str) -> None:
    engine = Engine(store_url)
    with healthy(engine):
        started = engine.runs.start.submit(NewRun(workflow=CHAIN))
        engine.commits.step()
        claiming = engine.work.claim.submit("w", agents=["default"])
        engine.commits.step()
        (held,) = claiming.result()
        told = engine.work.reach_limit.submit(held.task_id, held.token, "1h")
        cancelled = engine.runs.cancel.submit(started.result().id)
        assert engine.commits.step() == 2
        assert told.result().ok
        assert cancelled.result().ok
        engine.tasks.create.submit(NewTask(title="late"))
        engine.commits.step()
        claimed = engine.work.claim.submit("w", agents=["default"])
        engine.commits.step()
        assert claimed.result() == []


def test_tasks_of_an_agent_at_its_limit_are_not_offered(engine: Engine) -> None:
    reach(engine)
    create(engine)
    other = create(engine, agent="other")
    agents = ["default", "other"]
    ready = engine.database.view(lambda tx: tx.read("ready_tasks", agents=agents, count=9))
    assert [row["id"] for row in ready] == [other]


def test_why_says_of_a_limit_that_lifts_while_it_looks_that_it_has_lifted(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach(engine)
    late = create(engine)
    view = engine.database.view

    def look_later(work: Callable[[Any], object]) -> object:
        return view(lambda tx: work(Late(tx, clock)))

    monkeypatch.setattr(engine.database, "view", look_later)
    (clause,) = [each for each in engine.why(late).clauses if not each.ok]
    assert clause.detail == "the usage limit of agent 'default' has just lifted"


def test_the_latest_time_that_was_said_counts(engine: Engine, clock: ManualClock) -> None:
    first, second = (take(engine, create(engine)) for _ in range(2))
    assert engine.work.reach_limit(first.task_id, first.token, "2h").ok
    assert engine.work.reach_limit(second.task_id, second.token, "1h").ok
    create(engine)
    clock.advance(2 * HOUR - 1)
    engine.recovery.step()
    assert claim(engine, "default") == []
    clock.advance(1)
    engine.recovery.step()
    assert len(claim(engine, "default")) == 3


def test_only_limits_that_have_lifted_are_forgotten(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    reach(engine, "early", "1h")
    reach(engine, "late", "2h")
    clock.advance(HOUR)
    engine.database.transact(lambda tx: tx.run("forget_limits"))
    with raw(store_url) as hand:
        assert [row["agent"] for row in hand("SELECT agent FROM holdfast_limit")] == ["late"]


def test_why_says_until_when_by_whom_and_what_lifts_it(engine: Engine) -> None:
    reached = reach(engine, "developer")
    late = create(engine, agent="developer")
    (clause,) = [each for each in engine.why(late).clauses if not each.ok]
    assert clause.name == "usage"
    assert all(part in clause.detail for part in (reached, "lifts in 1h"))
    assert advice_of(clause.fix) == (Advice(Action.LIFT_LIMIT, "developer"),)
    (held, _) = [each for each in engine.why(reached).clauses if not each.ok]
    assert (held.name, held.fix) == ("holds", clause.fix)
    assert engine.tasks.hold(late, "paused").ok
    assert engine.tasks.hold(create(engine), "limit", until="1h").ok


def test_why_of_a_run_says_once_what_lifts_the_limit_that_its_tasks_wait_for(
    engine: Engine,
) -> None:
    reach(engine)
    run = start(engine, FORK)
    lines = str(engine.why_run(run.id)).splitlines()
    assert len([line for line in lines if line.startswith("Fix:")]) == 1
    assert fixes_of(engine.why_run(run.id)) == [Advice(Action.LIFT_LIMIT, "default")]
    assert explain(engine, run.id)["fixes"] == ["holdfast resume --agent default"]


def test_a_limit_that_is_put_on_one_task_by_hand_is_lifted_by_hand(engine: Engine) -> None:
    alone = create(engine)
    assert engine.tasks.hold(alone, "limit", until="1h").ok
    (clause,) = [each for each in engine.why(alone).clauses if not each.ok]
    lift = Advice(Action.RESUME, alone, (("hold", "limit"),))
    assert advice_of(clause.fix) == (lift,)


def test_lifting_a_limit_lets_all_tasks_of_that_agent_go_on_and_no_others(engine: Engine) -> None:
    reached, late = reach(engine, "developer"), create(engine, agent="developer")
    others = [reach(engine, "writer"), create(engine, agent="writer")]
    create(engine, agent="developer", needs=[late])
    would = Previews(engine).lift_limit("developer")
    assert [each["id"] for each in would.tasks] == sorted([reached, late])
    agent, *tasks = engine.tasks.lift_limit("developer")
    assert (agent.repeated, [each.ok for each in tasks]) == (False, [True])
    assert set(claim(engine, "developer", "writer")) == {reached, late}
    assert [engine.tasks.get(each).holds for each in others] == [Hold.LIMIT, Hold.LIMIT]
    assert [each.repeated for each in engine.tasks.lift_limit("developer")] == [True]
    assert Previews(engine).lift_limit("developer").tasks == []


def test_a_limit_far_ahead_is_refused_and_says_what_may_be_said(engine: Engine) -> None:
    held = take(engine, create(engine))
    with pytest.raises(InvalidInput, match="at most 7 days ahead"):
        engine.work.reach_limit(held.task_id, held.token, "8d")
    assert engine.work.reach_limit(held.task_id, held.token, "7d").ok


ACCOUNTS = """
name: accounts
agents:
  planner: {use: claude, access: read}
  developer: {use: claude}
  own: {use: claude, account: second}
  other: {use: codex}
  script: {command: [make]}
steps:
  - {id: plan, agent: planner, prompt: plan, needs: []}
  - {id: build, agent: developer, prompt: build, needs: []}
  - {id: apart, agent: own, prompt: build, needs: []}
  - {id: review, agent: other, prompt: review, needs: [], on_failure: {escalate: script}}
"""


@pytest.mark.parametrize(
    ("step", "stopped"),
    [
        ("plan", {"planner", "developer"}),
        ("build", {"planner", "developer"}),
        ("apart", {"own"}),
        ("review", {"other"}),
    ],
)
def test_a_limit_stops_all_agents_of_a_workflow_that_are_on_its_account(
    engine: Engine, step: str, stopped: set[str]
) -> None:
    run = engine.runs.start(NewRun(workflow=read_workflow_text(ACCOUNTS)))
    tasks = {each.step: each for each in engine.runs.tasks(run.id)}
    (held,) = engine.work.claim_by_id(tasks[step].id, "w", agents=["*"])
    assert engine.work.reach_limit(held.task_id, held.token, "1h").ok
    limited = {each.agent for each in engine.runs.tasks(run.id) if Hold.LIMIT in each.holds}
    assert limited == stopped
    left = {"planner", "developer", "own", "other"} - stopped
    taken = engine.work.claim("w", agents=sorted(left | stopped), count=9)
    assert {each.task.agent for each in taken} == left
