"""Runs steered by messages alone, on every bus, with every message sent twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.bus.command_handlers import command_handler, result_handler
from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.envelope import Envelope
from holdfast.bus.event_log import read_page
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.offers import Claimant, OfferOptions, Offers
from holdfast.bus.parked_messages import Parked
from holdfast.bus.position import Position
from holdfast.model.run import Run
from holdfast.model.task import Assignment
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.bus.worlds import RUNS, World, message
from tests.contract.task_states import CHAIN, MISSING_TASK, create, start

STEPS = ("plan", "work", "review")
AGENTS = ("planner", "developer")
PIPELINE = Workflow.define(
    "pipeline",
    (
        Step(id="plan", agent="planner"),
        Step(id="work", agent="developer", needs=("plan",)),
        Step(id="sign", approval="Sign?", needs=("work",)),
    ),
)


class Plant:
    """An engine that hears commands and results, and agents that hear offers; no other way."""

    def __init__(self, world: World) -> None:
        self.world, self.engine, self.bus = world, world.engine, world.bus
        self.claimed: list[Assignment] = []
        claimant = Claimant(
            store=self.engine, worker="w-1", agents=AGENTS, deliver=self.claimed.append
        )
        self.consumers = [
            self.consumer(Channel.COMMANDS, "engine", command_handler(self.engine)),
            self.consumer(Channel.RESULTS, "engine", result_handler(self.engine)),
            self.consumer(Channel.TASKS, "agents", claimant.handler()),
        ]
        self.offers = Offers(self.engine, self.bus, OfferOptions(agents=AGENTS))

    def consumer(self, channel: Channel, group: str, *handlers: Any) -> Consumer:
        subscription = Subscription(channel=channel, group=group)
        options = ConsumerOptions(name=f"{group}-1")
        return Consumer(self.engine, self.bus, subscription, handlers, options)

    def command(self, kind: str, about: Envelope, payload: object = None) -> None:
        told = replace(about, type=kind, payload=payload)
        self.bus.publish_command(Channel.COMMANDS, told, told)
        self.turn()

    def turn(self) -> None:
        self.offers.step()
        for consumer in self.consumers:
            consumer.drain()

    def report(self, kind: str, assignment: Assignment, **told: Any) -> None:
        """Tell of an attempt, twice."""
        result = replace(
            message(f"{kind} of {assignment.task_id}.{assignment.attempt}"),
            run_id=assignment.task.run_id,
            task_id=assignment.task_id,
            type=kind,
            payload={"token": assignment.token, **told},
        )
        self.bus.publish_event(Channel.RESULTS, result, result)
        self.turn()

    @property
    def runs(self) -> list[Run]:
        return self.engine.runs.list(workflow="pipeline")

    def close(self) -> None:
        self.offers.close()
        for consumer in self.consumers:
            consumer.close()


@pytest.fixture
def plant(world: World) -> Iterator[Plant]:
    for run in world.engine.runs.list(status="running"):
        world.engine.runs.cancel(run.id)
    world.engine.workflows.add(PIPELINE)
    made = Plant(world)
    yield made
    made.close()


@pytest.fixture
def parked(world: World) -> Parked:
    return Parked(world.engine)


def ask(name: str, **fields: Any) -> Envelope:
    return replace(message(name), run_id=None, **fields)


def test_a_run_is_started_worked_on_and_approved_by_messages_alone(plant: Plant) -> None:
    before = len(plant.runs)
    plant.command("run.start", ask("begin"), {"workflow": "pipeline", "input": {"n": 1}})
    assert len(plant.runs) == before + 1
    run = plant.runs[0]
    for step in ("plan", "work"):
        plant.turn()
        (assignment,) = plant.claimed
        plant.claimed.clear()
        assert assignment.task.step == step
        plant.report("attempt.completed", assignment, output=step)
    (sign,) = [each for each in plant.engine.runs.tasks(run.id) if each.step == "sign"]
    plant.command("task.approve", ask("yes", task_id=sign.id), {"note": "good"})
    assert plant.engine.runs.get(run.id).status == "completed"
    page = read_page(plant.engine.database, Channel.EVENTS, Position(), 10_000)
    found = [each for each in page.envelopes if each.run_id == run.id]
    assert {each.trace_id for each in found} == {message("begin").trace_id}
    assert [each.type for each in found].count("task.done") == 3


def test_an_attempt_that_failed_or_was_given_back_is_offered_again(plant: Plant) -> None:
    task = create(plant.engine, agent="planner")
    plant.turn()
    plant.report("attempt.released", plant.claimed.pop())
    plant.turn()
    plant.report("attempt.failed", plant.claimed.pop(), error="broken")
    assert plant.engine.tasks.get(task).failures == 1
    plant.world.clock.advance(10)
    plant.engine.work.claim("other", agents=["nobody"])
    plant.turn()
    plant.report("attempt.failed", plant.claimed.pop(), error="broken", retryable=False)
    assert plant.engine.tasks.get(task).status == "failed"
    assert plant.claimed == []


def test_an_offer_nobody_took_is_made_again_later(plant: Plant) -> None:
    create(plant.engine, agent="developer")
    assert plant.offers.step() == 1
    assert plant.offers.step() == 0
    plant.world.clock.advance(31)
    assert plant.offers.step() == 1
    plant.turn()
    assert len(plant.claimed) == 1
    plant.report("attempt.completed", plant.claimed.pop())


def test_a_task_offered_for_an_agent_that_a_claimant_does_not_serve_is_left_to_others(
    plant: Plant,
) -> None:
    create(plant.engine, agent="developer")
    offered = Claimant(
        store=plant.engine, worker="w-2", agents=["planner"], deliver=plant.claimed.append
    )
    other = plant.consumer(Channel.TASKS, "others", offered.handler())
    plant.offers.step()
    other.drain()
    other.close()
    assert plant.claimed == []
    plant.turn()
    plant.report("attempt.completed", plant.claimed.pop())


def test_a_late_result_changes_nothing_and_is_done_with(plant: Plant, parked: Parked) -> None:
    task = create(plant.engine, agent="planner")
    plant.turn()
    assignment = plant.claimed.pop()
    plant.engine.tasks.cancel(task)
    plant.report("attempt.completed", assignment, output=1)
    assert plant.engine.tasks.get(task).status == "cancelled"
    assert parked.list(parked=False) == []


def test_a_retry_that_comes_twice_retries_once(plant: Plant) -> None:
    run = start(plant.engine, CHAIN)
    run.break_for_good("plan")
    asked = replace(message("again"), run_id=run.id)
    plant.command("run.retry", asked)
    generation = run.task("plan").generation
    run.break_for_good("plan")
    plant.command("run.retry", asked)
    assert run.task("plan").generation == generation
    assert run.status == "failed"


@pytest.mark.parametrize(
    ("kind", "status"),
    [("run.pause", "running"), ("run.resume", "running"), ("run.cancel", "cancelled")],
)
def test_a_run_is_steered_by_its_id(plant: Plant, kind: str, status: str) -> None:
    run = start(plant.engine, CHAIN)
    plant.command(kind, replace(message(kind), run_id=run.id))
    assert run.status == status


@pytest.mark.parametrize(
    ("kind", "told", "said"),
    [
        ("run.cancel", {"run_id": RUNS[1]}, "no such run"),
        ("run.cancel", {}, "run_id: is missing"),
        ("task.approve", {"task_id": MISSING_TASK}, "no such run or task"),
        ("task.answer", {"task_id": MISSING_TASK}, "payload.answer: is missing"),
        ("run.signal", {"run_id": RUNS[1], "payload": {"name": "go"}}, "no such run"),
        ("run.start", {"payload": {"workflow": "unheard"}}, "no such workflow"),
        ("run.start", {"payload": {}}, "workflow: must be"),
        ("run.start", {"payload": {"workflow": {}}}, "workflow: must be"),
        ("run.start", {"payload": {"workflow": []}}, "workflow: must be"),
        ("run.start", {"payload": {"workflow": "pipeline", "version": {}}}, "version: must be"),
        ("run.start", {"payload": {"workflow": "pipeline", "version": 1}}, "version: must be"),
        ("run.start", {"payload": ["pipeline"]}, "payload: must be an object"),
        (
            "run.cancel",
            {"run_id": RUNS[1], "payload": {"expected_version": []}},
            "expected_version: must be",
        ),
    ],
)
def test_a_command_that_can_never_be_carried_out_is_parked_at_once(
    plant: Plant, parked: Parked, kind: str, told: dict[str, Any], said: str
) -> None:
    odd = replace(ask("odd"), **{"payload": None, **told})
    plant.command(kind, odd, odd.payload)
    (kept,) = parked.list()
    assert (kept.tries, kept.handler) == (1, "engine/commands")
    assert said in str(kept.error)


def test_a_result_for_an_unknown_task_is_parked_and_never_acknowledged_away(
    plant: Plant, parked: Parked
) -> None:
    unknown = replace(message("odd"), task_id=MISSING_TASK, type="attempt.completed")
    told = replace(unknown, payload={"token": "1." + "0" * 32})
    plant.bus.publish_event(Channel.RESULTS, told)
    plant.turn()
    (kept,) = parked.list()
    assert kept.handler == "engine/results"
    assert "no such run or task" in str(kept.error)
