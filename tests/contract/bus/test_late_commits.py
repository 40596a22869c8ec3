"""Writers whose transactions end late, beside readers: nothing skipped, each run in its order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.relay import Relay, RelayOptions
from holdfast.model.run import NewRun
from tests.contract.bus.worlds import COMMANDS, World, message, share, take_all
from tests.contract.raw_store import raw
from tests.contract.task_states import CHAIN, finish

EVENTS = Subscription(channel=Channel.EVENTS, group="audit")
WRITERS = 8


class Writers:
    """Each starts a run in a transaction that stays open until a turn of its own, and goes on.

    They end last first, and every fourth rolls back.
    """

    def __init__(self, world: World) -> None:
        self.engine = world.engine
        # Known before: who is the first to insert its name would keep the others waiting.
        self.engine.workflows.add(CHAIN)
        self.runs: list[str] = []
        self._turns = [threading.Event() for _ in range(WRITERS)]
        self._begun, self._ended = (threading.Barrier(WRITERS + 1) for _ in range(2))
        self._threads = [
            threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)
        ]

    def _write(self, number: int) -> None:
        with suppress(ZeroDivisionError):
            with self.engine.transaction() as connection:
                run = self.engine.runs.start(NewRun(workflow=CHAIN), connection=connection)
                self._begun.wait(30)
                self._turns[number].wait(30)
                if number % 4 == 0:
                    raise ZeroDivisionError
            self.runs.append(run.id)
            for task in self.engine.runs.tasks(run.id):
                finish(self.engine, task.id)
        self._ended.wait(30)

    def go(self, look: Callable[[], None]) -> None:
        """Let them end one by one, the last first, and look in between."""
        for each in self._threads:
            each.start()
        self._begun.wait(30)
        look()
        for turn in reversed(self._turns):
            turn.set()
            look()
        self._ended.wait(30)
        for each in self._threads:
            each.join()
        look()


def test_no_event_of_eight_writers_is_skipped_and_each_run_is_in_order(
    opened_worlds: dict[str, World],
) -> None:
    world = opened_worlds["redis beside postgresql"]
    assert isinstance(world.bus, RedisBus)
    writers, taken, found = Writers(world), share(subscription=EVENTS), list[Envelope]()
    relays = [Relay(world.engine, world.bus, RelayOptions(batch=7)) for _ in range(2)]
    world.bus.subscribe(EVENTS)

    def look() -> None:
        for relay in relays:
            relay.drain()
        for batch in world.bus.fetch(taken, count=10_000):
            found.extend(batch.envelopes)
            assert world.bus.acknowledge(batch)

    writers.go(look)
    for relay in relays:
        relay.close()
    world.clean()
    assert len(writers.runs) == WRITERS - 2
    for run in writers.runs:
        history = writers.engine.runs.events(run)
        seen = [each.message_id for each in found if each.run_id == run]
        assert seen == [f"{event.task_id or event.run_id}.{event.version}" for event in history]


def test_a_message_whose_publisher_waited_for_another_is_not_passed_by(
    opened_worlds: dict[str, World],
) -> None:
    world = opened_worlds["postgresql"]
    bus, engine, url = world.bus, world.engine, world.engine.settings.url
    bus.subscribe(COMMANDS)
    published, commit = threading.Event(), threading.Event()

    def publish_again() -> None:
        with engine.transaction() as connection:
            bus.publish_command(Channel.COMMANDS, message("m1"), connection=connection)
            published.set()
            commit.wait(30)

    again = threading.Thread(target=publish_again)
    with suppress(ZeroDivisionError), engine.transaction() as connection:
        bus.publish_command(Channel.COMMANDS, message("m1"), connection=connection)
        again.start()
        with raw(url) as look:
            while not look("SELECT 1 FROM pg_locks WHERE NOT granted"):
                pass
        bus.publish_command(Channel.COMMANDS, message("m2"))
        found = take_all(bus, share())
        raise ZeroDivisionError
    assert published.wait(30)
    found += take_all(bus, share())
    commit.set()
    again.join()
    found += take_all(bus, share())
    world.clean()
    assert found == ["m2", "m1"]
