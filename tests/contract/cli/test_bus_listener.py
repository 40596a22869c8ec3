"""Whether a process carries out what comes over the bus: only one that is told to."""

from __future__ import annotations

import threading

import pytest

from holdfast.server.http_server import HttpServer
from tests.contract.cli.command_line import Typed

PORT = ("--port", "0")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The channels that a process hears at the moment when it has begun; then it ends."""
    found: list[str] = []

    def note(*_: object) -> None:
        names = [each.name for each in threading.enumerate()]
        found.extend(each.rpartition(" ")[2] for each in names if "hearing" in each)

    def serve(server: HttpServer, *_: object) -> None:
        note()
        server.stop()
        server.run()

    monkeypatch.setattr("holdfast.server.http_server.serve_until_signalled", serve)
    monkeypatch.setattr("holdfast.worker.pool.worker.StoreWorker.run", note)
    return found


@pytest.mark.parametrize("command", [("worker",), ("up", *PORT), ("serve", *PORT)])
def test_a_process_hears_the_bus_when_it_is_told_to_and_not_before(
    typed: Typed, heard: list[str], command: tuple[str, ...]
) -> None:
    typed.ok(*command)
    assert heard == []
    typed.ok(*command, "--hear")
    assert sorted(heard) == ["agent.results", "workflow.commands"]


def test_a_worker_for_a_server_hears_no_bus(typed: Typed) -> None:
    said = typed.refused(2, "worker", "--server", "http://127.0.0.1:1", "--hear")
    assert "hear: is for a worker on the store itself" in said
