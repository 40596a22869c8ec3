"""An end watch tells which attempts of a worker are over, and never one that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

from holdfast.errors import HoldfastError, StoreUnreachable
from holdfast.threads import SystemThreads
from holdfast.worker.remote.client import TokenRefused
from holdfast.worker.remote.end_watch import AttemptKey, EndWatch
from tests.race.racers import eventually

PATIENCE = 30
Answer = list[str] | HoldfastError


class Wire:
    """A server of which a test gives each answer, and sees the leases that were asked about."""

    def __init__(self) -> None:
        self.asked: Queue[list[str]] = Queue()
        self.answers: Queue[Answer] = Queue()

    def post(self, path: str, body: dict[str, Any], /, **_: type) -> dict[str, Any]:
        assert path == "/claims/watch"
        self.asked.put([each["token"] for each in body["leases"]])
        answer = self.answers.get(timeout=PATIENCE)
        if isinstance(answer, HoldfastError):
            raise answer
        return {"ended": answer}


@contextmanager
def watching() -> Iterator[tuple[EndWatch, Wire, Queue[list[AttemptKey]]]]:
    wire, told = Wire(), Queue[list[AttemptKey]]()
    client: Any = wire
    watch = EndWatch(client, SystemThreads())
    watch.subscribe(lambda keys: told.put(list(keys)))
    try:
        yield watch, wire, told
    finally:
        watch.close()
        wire.answers.put([])


def test_a_later_attempt_at_a_task_is_not_over_with_an_earlier_one() -> None:
    with watching() as (watch, wire, told):
        watch.add({("t_1", 1): "1.a", ("t_2", 1): "1.b"})
        assert wire.asked.get(timeout=PATIENCE) == ["1.a", "1.b"]
        # The same poll takes over what came meanwhile.
        watch._polls = 8  # noqa: SLF001 - as many as there may be
        watch.add({("t_1", 2): "2.a"})
        watch._polls = 1  # noqa: SLF001
        wire.answers.put(["t_2"])
        assert told.get(timeout=PATIENCE) == [("t_2", 1)]
        assert told.get(timeout=PATIENCE) == [("t_1", 1)]
        assert wire.asked.get(timeout=PATIENCE) == ["2.a"]
        wire.answers.put(["t_1"])
        assert told.get(timeout=PATIENCE) == [("t_1", 2)]


def test_what_a_server_refuses_to_watch_is_not_asked_again_and_one_that_is_away_is() -> None:
    with watching() as (watch, wire, told):
        watch.add({("t_1", 1): "1.a"})
        wire.answers.put(StoreUnreachable("away"))
        for _ in range(2):
            assert wire.asked.get(timeout=PATIENCE) == ["1.a"]
        wire.answers.put(TokenRefused("http://server", "it is not for this agent"))
        assert eventually(lambda: watch._polls == 0)  # noqa: SLF001
        watch.add({("t_2", 1): "1.b"})
        assert wire.asked.get(timeout=PATIENCE) == ["1.b"]
        wire.answers.put(["t_2"])
        assert told.get(timeout=PATIENCE) == [("t_2", 1)]
        assert eventually(lambda: watch._polls == 0)  # noqa: SLF001
        assert wire.asked.empty()
