"""Callers without a token, by the hundred: what a server takes, while a good client is answered."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.acceptance.server.test_server import serving
from tests.acceptance.terminals import holdfast

BEGUN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
MEBIBYTE = 1024 * 1024
Address = tuple[str, int]


def ask(token: str) -> bytes:
    head = f"GET /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}"
    return head.encode() + b"\r\n\r\n"


def connect(address: Address) -> socket.socket:
    return socket.create_connection(address, 10)


@contextmanager
def attack(*args: Any, by: Callable[..., None]) -> Iterator[None]:
    """Have it go on beside, again and again, and not so fast that it takes the processor."""
    stopped = threading.Event()

    def go_on() -> None:
        while not stopped.is_set():
            with suppress(OSError):
                by(*args)
            time.sleep(0.05)

    attacker = threading.Thread(target=go_on)
    attacker.start()
    try:
        yield
    finally:
        stopped.set()
        attacker.join(30)


def keep_open(address: Address, token: str, source: str) -> socket.socket:
    """A connection that has shown a good token, if there is room for it."""
    made = socket.create_connection(address, 10, (source, 0))
    with suppress(ConnectionError):
        made.sendall(ask(token))
        made.recv(12)
    return made


def say_nothing(address: Address) -> None:
    with ExitStack() as stack:
        for _ in range(80):
            stack.enter_context(connect(address))
        time.sleep(0.1)


def drip(address: Address) -> None:
    with ExitStack() as stack:
        made = [stack.enter_context(connect(address)) for _ in range(120)]
        for piece in (BEGUN, b"X-One: a\r\n", b"X-Two"):
            for each in made:
                with suppress(OSError):
                    each.sendall(piece)


def send_one_endless_header(address: Address) -> None:
    with connect(address) as connection:
        connection.sendall(BEGUN + b"X-One: ")
        for _ in range(200):
            connection.sendall(b"a" * 256 * 1024)


def send_many_headers(address: Address) -> None:
    with connect(address) as connection:
        connection.sendall(BEGUN)
        for _ in range(50):
            connection.sendall(b"X-One: a\r\n" * 25_000)


def ask_on(address: Address) -> None:
    with connect(address) as connection:
        for _ in range(50):
            connection.sendall((BEGUN + b"\r\n") * 5_000)


def send_nonsense(address: Address) -> None:
    for _ in range(20):
        with connect(address) as connection:
            connection.sendall(b"nonsense\r\n\r\n")


def memory(process: int) -> int:
    """The resident memory of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = (each for each in lines if each.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def slowest(address: Address, token: str, seconds: float) -> float:
    """The longest that a client waits which connects anew for each call."""
    took = 0.0
    until = time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        with connect(address) as connection:
            connection.sendall(ask(token))
            assert connection.recv(12) == b"HTTP/1.1 200"
        took = max(took, time.monotonic() - began)
    return took


def test_a_good_client_is_answered_within_a_second_whatever_strangers_do(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")
    with serving(tmp_path, "serve", by="prlimit --nofile=100") as (process, client):
        address = ("127.0.0.1", client.base_url.port or 0)
        assert client.get("/runs").status_code == 200
        token = client.headers["Authorization"]
        before = memory(process.pid)
        own = len([*Path(f"/proc/{process.pid}/fd").iterdir()])
        for stranger in (
            say_nothing,
            drip,
            send_one_endless_header,
            send_many_headers,
            ask_on,
            send_nonsense,
        ):
            with attack(address, by=stranger):
                took = slowest(address, token, 0.25)
            assert took < 1, stranger
            assert memory(process.pid) - before < 30 * MEBIBYTE, stranger
            assert client.get("/runs").status_code == 200
        said = tmp_path / "said"
        with ExitStack() as stack:
            for source in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
                for _ in range(30):
                    stack.enter_context(keep_open(address, token, source))
            assert client.get("/runs").status_code == 200
        # Descriptors were left for all else.
        assert "no connection can be accepted" not in said.read_text()
        # So few that not even half of them are left for connections.
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (own + 6, own + 6))
        with ExitStack() as stack:
            for _ in range(80):
                stack.enter_context(connect(address))
            took = slowest(address, token, 0.3)
        assert took < 1
        assert client.get("/runs").status_code == 200
        assert said.read_text().count("no connection can be accepted") == 1
        assert len(said.read_text()) < 2_000
