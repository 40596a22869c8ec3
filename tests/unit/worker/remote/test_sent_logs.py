"""The log of a step that runs elsewhere: sent while it runs and whole before its report."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.errors import HoldfastError, InvalidInput, StoreUnreachable
from holdfast.threads import SystemThreads
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.remote import log_stream
from holdfast.worker.remote.log_stream import LogStream

TASK = "t_00000000000000000001"
PATIENCE = 30


class Wire:
    """A server that gives each of some answers once, and takes whatever comes after them."""

    def __init__(self, *answers: HoldfastError) -> None:
        self._answers = list(answers)
        self.took: list[str] = []
        self.taken = Event()

    def transition(self, path: str, said: dict[str, str], **_: type) -> None:
        if self._answers:
            raise self._answers.pop(0)
        assert path == f"/claims/{TASK}/logs"
        self.took.append(said["chunk"])
        self.taken.set()


class Log:
    """The log of one attempt, and its stream to a server."""

    def __init__(self, wire: Wire, folder: Path, *, lease: float = 30) -> None:
        path = StateDirectory(root=folder).log(TASK, 1)
        path.path.parent.mkdir(parents=True)
        self._file = path.path
        self.clock = clock = ManualClock()

        class Tenure:
            @property
            def ended(self) -> bool:
                return clock.monotonic() >= lease

        attempt: Any = (SimpleNamespace(task_id=TASK, attempt=1, token="1.x"), Tenure())
        client: Any = wire
        self.stream = LogStream(client, path, attempt, clock=clock, threads=SystemThreads())

    def write(self, data: bytes) -> None:
        with self._file.open("ab") as file:
            file.write(data)


def test_a_log_is_sent_while_its_step_writes_and_no_character_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_stream, "SEND_EVERY", 0.01)
    wire = Wire(StoreUnreachable("away"))
    log = Log(wire, tmp_path)
    with log.stream:
        log.write("on it: ü".encode()[:-1])
        assert wire.taken.wait(PATIENCE)
        assert wire.took == ["on it: "]
        wire.taken.clear()
        log.write("ü".encode()[-1:])
        assert wire.taken.wait(PATIENCE)
        log.write(b"done\xc3")
    assert "".join(wire.took) == "on it: üdone\ufffd"


def test_a_long_log_is_sent_in_pieces_that_a_server_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_stream, "CHUNK_BYTES", 4)
    wire = Wire()
    log = Log(wire, tmp_path)
    with log.stream:
        log.write(b"0123456789")
    assert wire.took == ["0123", "4567", "89"]


def test_a_log_is_sent_again_until_the_server_is_back(tmp_path: Path) -> None:
    wire = Wire(StoreUnreachable("away"), StoreUnreachable("away"))
    log = Log(wire, tmp_path)
    with log.stream:
        log.write(b"on it")
    assert wire.took == ["on it"]


@pytest.mark.parametrize("error", [InvalidInput("chunk", "is too long"), HoldfastError("odd")])
def test_a_log_that_is_refused_costs_the_step_nothing_and_is_sent_no_further(
    tmp_path: Path, error: HoldfastError
) -> None:
    wire = Wire(error)
    log = Log(wire, tmp_path)
    with log.stream:
        log.write(b"on it")
    assert wire.took == []


def test_a_log_is_sent_no_longer_than_the_lease_lasts(tmp_path: Path) -> None:
    wire = Wire(*[StoreUnreachable("away")] * 100)
    log = Log(wire, tmp_path, lease=3)
    with log.stream:
        log.write(b"on it")
    assert log.clock.monotonic() == 3


def test_a_step_without_a_log_sends_nothing(tmp_path: Path) -> None:
    wire = Wire()
    with Log(wire, tmp_path).stream:
        pass
    assert wire.took == []
