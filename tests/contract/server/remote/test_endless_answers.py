"""A worker elsewhere, and answers of its server that never come to an end."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from holdfast.errors import StoreUnreachable
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.remote import client
from holdfast.worker.remote.allowlist import Allowlist, RemoteExecutors
from holdfast.worker.remote.client import ServerClient
from holdfast.worker.remote.remote_store import RemoteStore
from tests.contract.http_service import Reply, service

SESSION = b'HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{"name":"w","role":"worker"} '
TOKEN = "hf_token-of-far"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"
ENDS = {"headers": b"HTTP/1.1 200 OK\r\nX-Long: ", "body": HEAD}


@contextmanager
def dripping(beginning: bytes, called: Callable[[], object] = bool) -> Iterator[str]:
    """A server that says who asks, and then sends a blank of each answer at a time."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while head := connection.recv(65_536):
                if b"/session" in head:
                    connection.sendall(SESSION)
                    continue
                called()
                connection.sendall(beginning)
                while True:
                    connection.sendall(b" ")
                    time.sleep(0.02)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(autouse=True)
def _not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LONGEST_ANSWER", 0.3)


def test_an_answer_that_drips_is_none() -> None:
    with (
        dripping(ENDS["body"]) as url,
        closing(ServerClient(url, TOKEN)) as asking,
        pytest.raises(StoreUnreachable, match=r"more than .* bytes or 0.3 s"),
    ):
        asking.post("/claims", {})


def test_an_answer_that_is_too_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 5)
    with (
        dripping(ENDS["body"]) as url,
        closing(ServerClient(url, TOKEN)) as asking,
        pytest.raises(StoreUnreachable, match="more than 5 bytes"),
    ):
        asking.post("/claims", {})


@pytest.mark.parametrize("times", [1, 2])
def test_an_answer_that_is_packed_is_unpacked_no_further_than_it_may_be_long(times: int) -> None:
    body = bytes(100_000_000)
    for _ in range(times):
        body = gzip.compress(body)
    coding = ", ".join(["gzip"] * times)
    with (
        service(Reply(body=body, headers={"Content-Encoding": coding})) as to,
        closing(ServerClient(to.url, TOKEN)) as asking,
    ):
        tracemalloc.start()
        with pytest.raises(StoreUnreachable):
            asking.post("/claims", {})
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 2.5 * client.MOST_BYTES


@pytest.mark.parametrize("place", ENDS)
def test_a_worker_ends_when_it_is_told_to_whatever_its_server_sends(
    place: str, tmp_path: Path
) -> None:
    asked = threading.Event()
    with dripping(ENDS[place], asked.set) as url:
        office = RemoteStore(url, TOKEN)
        executors = RemoteExecutors(office, Allowlist(), StateDirectory(root=tmp_path))
        worker = StoreWorker(office, executors, WorkerOptions(name="far")).start()
        assert asked.wait(30)
        ended = threading.Event()

        def end() -> None:
            worker.stop()
            office.close()
            ended.set()

        threading.Thread(target=end, daemon=True).start()
        assert ended.wait(30)
