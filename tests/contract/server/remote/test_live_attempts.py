"""An attempt elsewhere is seen on the server while it lasts, and hears at once of its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.remote.allowlist import Allowlist, RemoteExecutors
from holdfast.worker.remote.remote_store import RemoteStore
from tests.contract.server.local_server import Served, served
from tests.contract.worker.file_steps import BusyWorker, enqueue, shell
from tests.race.racers import eventually

# Nothing is renewed while a test runs.
RARELY: dict[str, Any] = {"lease": 3600.0, "renewal": 1200.0}
FOR_EVER = "echo ü half; while :; do sleep 0.01; done"


@pytest.fixture
def server(store_url: str, tmp_path: Path) -> Iterator[Served]:
    with served(store_url, tmp_path / "home", **RARELY) as made:
        yield made


@contextmanager
def working(server: Served, folder: Path) -> Iterator[BusyWorker]:
    store = RemoteStore(server.url, server.tokens["worker"], **RARELY)
    executors = RemoteExecutors(store, Allowlist(anything=True), StateDirectory(root=folder))
    worker = BusyWorker(store, executors, WorkerOptions(name="far", concurrency=2))
    try:
        with worker:
            yield worker
    finally:
        store.close()


def log_of(server: Served, task_id: str) -> str:
    return str(server().get(f"/tasks/{task_id}/logs").json()["text"])


def test_logs_and_progress_of_a_command_elsewhere_are_seen_and_a_cancel_reaches_it_at_once(
    server: Served, tmp_path: Path
) -> None:
    with working(server, tmp_path / "far") as worker:
        first, second = (enqueue(server.hf, shell(FOR_EVER)) for _ in range(2))
        for task_id in (first, second):
            assert eventually(lambda: log_of(server, task_id) == "ü half\n")  # noqa: B023
            assert eventually(lambda: server.hf.tasks.get(task_id).progress is not None)  # noqa: B023
        assert server.hf.tasks.cancel(first).ok
        assert eventually(lambda: len(worker._held) == 1)  # noqa: SLF001
        # Another process than that of the server.
        with Holdfast(server.hf.settings.url) as other:
            assert other.tasks.cancel(second).ok
        assert eventually(lambda: worker.idle)
        last = enqueue(server.hf, shell("echo whole; printf '{}' > $HOLDFAST_OUTPUT"))
        assert eventually(lambda: server.hf.tasks.get(last).status == "done")
        assert log_of(server, last) == "whole\n"
    assert all(server.hf.tasks.get(each).attempt == 1 for each in (first, second, last))


def test_a_watch_tells_of_ends_when_they_come_and_of_earlier_ones_at_once(server: Served) -> None:
    for _ in range(3):
        server.add()
    got = {each["task"]["id"]: each["token"] for each in server.claim(max=3)}
    one, two, three = got

    def watch(*ids: str, wait: float = 0, token: str | None = None) -> list[str]:
        leases = [{"task_id": each, "token": token or got[each]} for each in ids]
        body = {"leases": leases, "wait_seconds": wait}
        told = server("worker").post("/claims/watch", json=body)
        assert told.status_code == 200, told.text
        return list(told.json()["ended"])

    assert watch(one, two, three) == []
    assert watch() == []
    told: list[list[str]] = []
    waiting = threading.Thread(target=lambda: told.append(watch(one, two, wait=30)))
    waiting.start()
    watches = server.application.server_state.end_watches
    assert eventually(lambda: len(watches._waiting) == 2)  # noqa: SLF001
    assert server.hf.tasks.cancel(three).ok
    assert server.hf.tasks.cancel(two).ok
    waiting.join(30)
    assert told == [[two]]
    assert not watches._waiting  # noqa: SLF001
    assert watch(one, two, three, wait=30) == sorted([two, three])
    assert watch(one, token=f"1.{'0' * 32}") == [one]
    refused = server("viewer").post("/claims/watch", json={"leases": []})
    assert refused.status_code == 403
