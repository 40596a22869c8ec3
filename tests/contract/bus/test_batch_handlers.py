"""Handlers that are given sets: as few statements as can be, and a poisoned message in no way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apsw
import pytest

from holdfast.bus.command_handlers import command_handler, result_handler
from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.handler import Handler
from holdfast.bus.offers import Claimant, OfferOptions, Offers
from holdfast.bus.parked_messages import Parked
from holdfast.errors import InvalidInput, WrongThread
from holdfast.model.retry import RetryPolicy
from holdfast.model.task import Assignment
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.bus.worlds import COMMANDS, RUNS, World, message
from tests.contract.raw_store import raw
from tests.contract.task_states import create, take

OPTIONS = ConsumerOptions(name="service-1", retry=RetryPolicy(max_attempts=1))
RESULTS = Subscription(channel=Channel.RESULTS, group="engine")
LONE = Workflow.define("lone", (Step(id="only"),))


class Books:
    """Writes down whole sets; it fails on those that have a poisoned message among them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.poisoned: set[str] = set()
        self.sets: list[int] = []
        with raw(world.engine.settings.url) as run:
            run("DROP TABLE IF EXISTS effect")
            run("CREATE TABLE effect (message text)")

    def write(self, envelopes: Sequence[Envelope], connection: Any) -> None:  # noqa: ANN401 - either's
        self.sets.append(len(envelopes))
        mark = "?" if isinstance(connection, apsw.Connection) else "%s"
        rows = [(each.message_id,) for each in envelopes]
        cursor = connection.cursor()
        cursor.executemany(f"INSERT INTO effect VALUES ({mark})", rows)  # noqa: S608 - a mark
        if self.poisoned & {each.message_id for each in envelopes}:
            raise ZeroDivisionError

    def consume(self, *names: str, run: str = RUNS[0]) -> None:
        told = (message(each, run) for each in names)
        self.world.bus.publish_command(Channel.COMMANDS, *told)
        handler = Handler(name="write", handle_all=self.write)
        consumer = Consumer(self.world.engine, self.world.bus, COMMANDS, [handler], OPTIONS)
        consumer.drain()
        consumer.close()

    @property
    def written(self) -> list[str]:
        with raw(self.world.engine.settings.url) as run:
            return sorted(row["message"] for row in run("SELECT message FROM effect"))


@pytest.fixture
def books(world: World) -> Books:
    return Books(world)


def test_a_set_is_given_at_once_and_each_of_it_once(books: Books) -> None:
    books.consume("m1", "m2", "m1", "m3")
    assert books.sets == [3]
    books.consume("m2", "m4")
    assert books.sets == [3, 1]
    assert books.written == ["m1", "m2", "m3", "m4"]


def test_a_steering_handler_is_given_as_many_messages_as_have_nothing_in_common(
    world: World,
) -> None:
    given: list[list[str]] = []
    handler = Handler(
        name="steer",
        handle_all=lambda envelopes, _: given.append([each.message_id for each in envelopes]),
        steers=True,
        apart=lambda envelope: None if envelope.payload == "m4" else str(envelope.payload)[:1],
        most=2,
    )
    names = ("m1", "m1", "n1", "n1", "o1", "m2", "m3", "m4", "n2")
    told = [message(each) for each in names]
    world.bus.publish_command(Channel.COMMANDS, *told)
    consumer = Consumer(world.engine, world.bus, COMMANDS, [handler], OPTIONS)
    consumer.drain()
    consumer.close()
    assert given == [["m1", "n1"], ["o1", "m2"], ["m3"], ["m4"], ["n2"]]


def test_only_the_poisoned_message_of_a_set_that_fails_and_its_run_wait(books: Books) -> None:
    parked = Parked(books.world.engine)
    books.poisoned = {"m5"}
    for number, run in enumerate(RUNS[:4]):
        told = (message(f"n{number}{each}", run) for each in range(3))
        books.world.bus.publish_command(Channel.COMMANDS, *told)
    books.consume("m4", "m5", "m6", run=RUNS[4])
    others = [f"n{number}{each}" for number in range(4) for each in range(3)]
    assert books.written == ["m4", *others]
    assert [each.message_id for each in parked.list(parked=False)] == ["m5", "m6"]
    books.poisoned.clear()
    assert parked.replay("service/write", "m5").ok
    books.consume()
    assert books.written == ["m4", "m5", "m6", *others]


def test_a_handler_that_does_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="neither"):
        Handler(name="none")


def tell(task_id: str, token: str, kind: str = "attempt.completed") -> Envelope:
    return replace(
        message(f"{kind} {token}"),
        run_id=None,
        task_id=task_id,
        type=kind,
        payload={"token": token},
    )


def test_many_results_are_one_transaction_and_those_of_one_task_follow_each_other(
    world: World,
) -> None:
    engine = world.engine
    tasks = [create(engine) for _ in range(6)]
    held = [take(engine, each) for each in tasks]
    odd = replace(tell(tasks[0], held[0].token), message_id="odd", payload={})
    told = [tell(each.task_id, each.token) for each in held[1:]]
    again = tell(tasks[5], held[5].token, "attempt.released")
    world.bus.publish_event(Channel.RESULTS, odd, *told, again)
    consumer = Consumer(engine, world.bus, RESULTS, [result_handler(engine)], OPTIONS)
    consumer.drain()
    consumer.close()
    assert [engine.tasks.get(each).status for each in tasks] == ["running", *["done"] * 5]
    (kept,) = Parked(engine).list()
    assert (kept.message_id, kept.error) == ("odd", "Park: payload.token: is missing")
    assert engine.work.complete(tasks[0], held[0].token).ok


def test_many_starts_are_one_transaction_and_one_that_cannot_be_is_parked(world: World) -> None:
    engine = world.engine
    engine.workflows.add(LONE)
    before = len(engine.runs.list(workflow="lone", limit=1_000))
    starts = [
        replace(message(f"s{each}"), run_id=None, payload={"workflow": "lone"}) for each in range(9)
    ]
    starts[4] = replace(starts[4], payload={"workflow": "unheard"})
    world.bus.publish_command(Channel.COMMANDS, *starts)
    subscription = replace(COMMANDS, group="engine")
    consumer = Consumer(engine, world.bus, subscription, [command_handler(engine)], OPTIONS)
    consumer.drain()
    consumer.close()
    assert len(engine.runs.list(workflow="lone", limit=1_000)) == before + 8
    assert [each.message_id for each in Parked(engine).list()] == ["s4"]


def test_an_assignment_that_cannot_be_delivered_does_not_keep_back_the_others(sql: World) -> None:
    tasks = [create(sql.engine, agent="lost") for _ in range(3)]
    delivered: list[str] = []

    def deliver(assignment: Assignment) -> None:
        if assignment.task_id == tasks[0]:
            raise ZeroDivisionError
        delivered.append(assignment.task_id)

    claimant = Claimant(store=sql.engine, worker="w-1", agents=["lost"], deliver=deliver)
    offers = Offers(sql.engine, sql.bus, OfferOptions(agents=["lost"]))
    offers.step()
    offers.close()
    offered = Subscription(channel=Channel.TASKS, group="lost")
    consumer = Consumer(sql.engine, sql.bus, offered, [claimant.handler()], OPTIONS)
    consumer.drain()
    consumer.close()
    assert delivered == tasks[1:]


def test_a_group_is_written_in_the_end_and_has_one_operation_for_each_task(sql: World) -> None:
    engine = sql.engine
    first, second = (create(engine) for _ in range(2))
    with engine.transaction() as connection, engine.join_group(connection) as joined:
        answers = [joined.tasks.cancel.submit(each) for each in (first, second)]
        with pytest.raises(InvalidInput, match="two operations about"):
            joined.tasks.retry.submit(second)
        with pytest.raises(WrongThread, match="submit it"):
            answers[0].result()
    assert [each.result().ok for each in answers] == [True, True]
    assert {engine.tasks.get(each).status for each in (first, second)} == {"cancelled"}
