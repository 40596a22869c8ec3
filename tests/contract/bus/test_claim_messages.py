"""Claims and reports of those who have nothing but the bus, and what they are answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.bus.command_handlers import claim_handler, result_handler
from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.parked_messages import Parked
from holdfast.model.moment import to_datetime
from holdfast.model.retry import RetryPolicy
from tests.contract.bus.worlds import World, message
from tests.contract.task_states import MISSING_TASK, create, take

OPTIONS = ConsumerOptions(name="engine-1", retry=RetryPolicy(max_attempts=1))


class Hall:
    """An engine that hears claims and reports, and those who have a name to be answered under."""

    def __init__(self, world: World) -> None:
        assert isinstance(world.bus, RedisBus)
        self.world, self.engine, self.bus = world, world.engine, world.bus
        self._consumers = {
            channel: Consumer(
                world.engine,
                world.bus,
                Subscription(channel=channel, group="engine"),
                [handler],
                OPTIONS,
            )
            for channel, handler in (
                (Channel.COMMANDS, claim_handler(world.engine, world.bus)),
                (Channel.RESULTS, result_handler(world.engine, world.bus)),
            )
        }

    def claim(self, name: str, task_id: str | None, **told: Any) -> None:
        asked = replace(
            message(name), run_id=None, task_id=task_id, type="task.claim", payload=told
        )
        self.bus.publish_command(Channel.COMMANDS, asked, asked)
        self._consumers[Channel.COMMANDS].drain()

    def report(self, kind: str, task_id: str, **told: Any) -> None:
        said = replace(message(kind), run_id=None, task_id=task_id, type=kind, payload=told)
        self.bus.publish_event(Channel.RESULTS, said)
        self._consumers[Channel.RESULTS].drain()

    def heard(self, name: str) -> list[tuple[str, str, Any]]:
        """What somebody was answered: to which message, the type, the payload."""
        client = self.world.client
        found = client.xrange(f"{{{self.world.prefix}}}:replies:{name}")
        told = [json.loads(fields[b"envelope"]) for _, fields in found]
        return [(each["causation_id"], each["type"], each["payload"]) for each in told]

    def close(self) -> None:
        for each in self._consumers.values():
            each.close()


@pytest.fixture
def hall(redis_store: World) -> Iterator[Hall]:
    made = Hall(redis_store)
    yield made
    made.close()


def test_a_claim_is_answered_to_whoever_asked_and_to_nobody_else(hall: Hall) -> None:
    task = create(hall.engine, title="north wall", payload={"colour": "blue"})
    hall.claim("c1", task, reply_to="ann")
    hall.claim("c2", task, reply_to="bob")
    ((cause, kind, told),) = hall.heard("ann")
    assert (cause, kind, told["attempt"], told["title"]) == ("c1", "task.claimed", 1, "north wall")
    assert told["given"] == {"colour": "blue"}
    assert [each[:2] for each in hall.heard("bob")] == [("c2", "task.refused")]
    lease = hall.engine.tasks.get(task).lease
    assert lease is not None
    assert lease.owner == "ann"
    hall.report("attempt.completed", task, token=told["token"], output=1, reply_to="ann")
    assert hall.heard("ann")[1][1:] == ("attempt.answered", {"ok": True, "repeated": False})
    assert hall.engine.tasks.get(task).output == 1


def test_a_claimant_that_was_not_answered_asks_again_and_is_given_the_same(hall: Hall) -> None:
    task = create(hall.engine)
    hall.claim("c1", task, reply_to="ann", request="mine")
    hall.claim("c2", task, reply_to="ann", request="mine")
    first, second = hall.heard("ann")
    assert first[2]["token"] == second[2]["token"]
    assert hall.engine.tasks.get(task).attempt == 1


def test_a_request_named_by_one_claimant_is_no_request_of_another_claimant_or_for_another_task(
    hall: Hall,
) -> None:
    task, other = create(hall.engine), create(hall.engine)
    hall.claim("c1", task, reply_to="ann", request="1")
    hall.claim("c2", task, reply_to="bob", request="1")
    hall.claim("c3", other, reply_to="ann", request="1")
    assert [each[1] for each in hall.heard("bob")] == ["task.refused"]
    assert len({each[2]["token"] for each in hall.heard("ann")}) == 2


def test_a_claim_is_of_the_agents_tags_and_lease_that_it_says(hall: Hall) -> None:
    task = create(hall.engine, agent="painter", tags=("tall",))
    hall.claim("c1", task, reply_to="ann")
    hall.claim("c2", task, reply_to="ann", agents=["painter"])
    hall.claim("c3", task, reply_to="ann", agents=["painter"], tags=["tall"], lease_seconds=7)
    assert [each[1] for each in hall.heard("ann")] == [
        "task.refused",
        "task.refused",
        "task.claimed",
    ]
    lease = hall.engine.tasks.get(task).lease
    assert lease is not None
    assert lease.expires_at == to_datetime(hall.engine.now() + 7_000_000)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, "payload.reply_to: is missing"),
        ({"reply_to": "no name"}, "payload.reply_to: 'no name' is not a name"),
        ({"reply_to": "ann", "agents": 7}, "agents"),
        ({"reply_to": "ann", "lease_seconds": -1}, "lease"),
    ],
)
def test_a_claim_that_can_never_be_is_parked(hall: Hall, told: dict[str, Any], said: str) -> None:
    hall.claim("odd", create(hall.engine), **told)
    (kept,) = Parked(hall.engine).list()
    assert said in str(kept.error)
    assert hall.heard("ann") == []


def test_a_claim_of_no_task_is_parked_and_of_an_unknown_one_refused(hall: Hall) -> None:
    hall.claim("odd", None, reply_to="ann")
    hall.claim("c1", MISSING_TASK, reply_to="ann")
    (kept,) = Parked(hall.engine).list()
    assert kept.message_id == "odd"
    assert [each[:2] for each in hall.heard("ann")] == [("c1", "task.refused")]


def test_a_report_that_is_to_be_answered_nowhere_is_parked_alone(hall: Hall) -> None:
    held = [take(hall.engine, create(hall.engine)) for _ in range(3)]
    names = ("ann", "no name", "ann")
    said = [
        replace(
            message(f"m{place}"),
            run_id=None,
            task_id=each.task_id,
            type="attempt.completed",
            payload={"token": each.token, "reply_to": name},
        )
        for place, (each, name) in enumerate(zip(held, names, strict=True))
    ]
    hall.bus.publish_event(Channel.RESULTS, *said)
    hall.report("attempt.released", held[1].task_id, token=held[1].token)
    (kept,) = Parked(hall.engine).list()
    assert kept.message_id == "m1"
    assert {each[0] for each in hall.heard("ann")} == {"m0", "m2"}
    found = [hall.engine.tasks.get(each.task_id).status for each in held]
    assert found == ["done", "running", "done"]


def test_a_lease_is_renewed_by_message_until_it_is_anothers(hall: Hall) -> None:
    task = create(hall.engine)
    held = take(hall.engine, task)
    hall.world.clock.advance(20)
    hall.report("attempt.renewed", task, token=held.token, progress="half", reply_to="ann")
    assert hall.heard("ann")[0][2]["ok"] is True
    found = hall.engine.tasks.get(task)
    assert found.lease is not None
    assert (found.lease.expires_at, found.progress) == (
        to_datetime(hall.engine.now() + 30_000_000),
        "half",
    )
    hall.engine.tasks.cancel(task)
    hall.report("attempt.failed", task, token=held.token, error="late", reply_to="ann")
    assert hall.heard("ann")[1][2] == {
        "ok": False,
        "repeated": False,
        "reason": "already_terminal",
    }
