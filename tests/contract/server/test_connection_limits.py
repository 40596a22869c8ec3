"""Limits on connections: what one may send and take, and which goes where there are too many."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest

from holdfast.server.connection_limits import ConnectionLimits
from holdfast.server.gate import GateRules
from tests.contract.server.local_server import Served, served
from tests.race.racers import eventually

LIMITS = ConnectionLimits(
    connections=40,
    address_share=0.5,
    silent_share=0.5,
    head=8_192,
    headers=20,
    head_time=0.6,
    body_time=0.6,
    idle_time=1.6,
    answer_time=0.6,
    pipelined=5,
    streams=2,
)
BEGUN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
WHOLE = BEGUN + b"\r\n"
UPLOAD = b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1\r\n"
UNWANTED = b"POST /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = UPLOAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def limits() -> ConnectionLimits:
    return LIMITS


@pytest.fixture
def server(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: ConnectionLimits
) -> Iterator[Served]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with served(sqlite_url, tmp_path / "home", rules=GateRules(connections=limits)) as made:
        yield made


@pytest.fixture
def patient_server(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """The same for what has nothing to do with time."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    limits = replace(LIMITS, head_time=30.0, body_time=30.0, idle_time=30.0, answer_time=30.0)
    with served(sqlite_url, tmp_path / "home", rules=GateRules(connections=limits)) as made:
        yield made


def connect(server: Served, source: str = "127.0.0.1") -> socket.socket:
    port = int(server.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), 10, (source, 0))


def heard(connection: socket.socket) -> bytes:
    """All that is said until the connection ends."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            said += piece
    return said


def told(connection: socket.socket) -> str:
    """The last of what is answered, and that the connection ends."""
    said = heard(connection)
    if not said:
        return "nothing"
    head, _, body = said[said.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    assert b"\r\nconnection: close" in head
    return f"{head.split()[1].decode()} {json.loads(body)['code']}"


def drip(connection: socket.socket, piece: bytes) -> tuple[float, bytes]:
    """Send a little again and again until it is refused; how long that went, and what was said."""
    began, said = time.monotonic(), b""
    connection.settimeout(0.1)
    with suppress(ConnectionError):
        while b'"status":408' not in said and time.monotonic() < began + 5:
            connection.sendall(piece)
            with suppress(TimeoutError):
                come = connection.recv(65_536)
                said += come
                if not come:
                    break
    return time.monotonic() - began, said


@contextmanager
def flood(
    server: Served, number: int, source: str = "127.0.0.1", asked: bytes = b""
) -> Iterator[list[socket.socket]]:
    """Connections that ask nothing, or something without a token, and then nothing more."""
    with ExitStack() as stack:
        made = []
        for _ in range(number):
            made.append(stack.enter_context(connect(server, source)))
            made[-1].sendall(asked)
            assert not asked or made[-1].recv(65_536)
        yield made


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def is_closed(connection: socket.socket) -> bool:
    return not is_open(connection)


def good(server: Served, source: str = "127.0.0.9") -> int:
    transport = httpx.HTTPTransport(local_address=source)
    headers = {"Authorization": f"Bearer {server.tokens['viewer']}"}
    with httpx.Client(transport=transport, headers=headers, timeout=5) as client:
        began = time.monotonic()
        status = client.get(f"{server.url}/api/v1/runs").status_code
        assert time.monotonic() - began < 1
        return status


TOO_LARGE = {
    "one": BEGUN + b"X-One: " + b"a" * 9_000 + b"\r\n\r\n",
    "endless": BEGUN + b"X-One: " + b"a" * 600_000,
    "path": b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "many": BEGUN + b"".join(b"X-%d: a\r\n" % each for each in range(20)) + b"\r\n",
    "trailers": CHUNKED + b"1\r\na\r\n0\r\n" + b"X: a\r\n" * 20,
    "endless trailer": CHUNKED + b"1\r\na\r\n0\r\nX: " + b"a" * 600_000,
    "endless extension": CHUNKED + b"1;" + b"a" * 600_000,
}


def test_a_request_whose_headers_are_too_large_is_refused(patient_server: Served) -> None:
    refused = patient_server.application.server_state.refused
    for number, (name, sent) in enumerate(TOO_LARGE.items(), 1):
        with connect(patient_server) as connection:
            with suppress(ConnectionError):
                connection.sendall(sent)
            # What is sent on and on after the refusal may cost the sender its answer.
            allowed = {"431 headers_too_large", *(["nothing"] if "endless" in name else [])}
            assert told(connection) in allowed, name
        assert refused["headers_too_large"] == number, name


def drip_each(server: Served, *sent: tuple[bytes, bytes]) -> list[tuple[float, bytes]]:
    """What becomes of connections that begin with something and then drip, all at once."""

    def dripped(begun: bytes, piece: bytes) -> tuple[float, bytes]:
        with connect(server) as connection:
            connection.sendall(begun)
            return drip(connection, piece)

    with ThreadPoolExecutor(len(sent)) as pool:
        return list(pool.map(dripped, *zip(*sent, strict=True)))


def test_headers_and_bodies_have_to_come_in_time(server: Served) -> None:
    for took, said in drip_each(
        server,
        (BEGUN, b"X-One: a\r\n"),
        (BEGUN + b"X: ", b"a"),
        (UPLOAD + b"Content-Length: 9000\r\n\r\n", b"a"),
        (CHUNKED, b"1\r\na\r\n"),
        (WHOLE + BEGUN, b"X-One: a\r\n"),
    ):
        assert 0.3 < took < 1.5
        assert b"HTTP/1.1 408" in said
        assert b'"request_timeout"' in said


def test_a_caller_that_asks_nothing_is_hung_up_on(server: Served) -> None:
    for took, said in drip_each(
        server,
        (b"", b"\r\n"),
        (WHOLE, b"\r\n"),
        # Answered without its body, the rest of which nobody waits for.
        (b"POST /runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9000\r\n\r\n", b"a"),
        (
            b"POST /runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9000000\r\n\r\n",
            b"a" * 9_000,
        ),
    ):
        assert took < 3
        assert b" 408 " not in said


def test_a_body_that_comes_steadily_may_take_its_time(server: Served) -> None:
    body = b'{"title": "a task", "payload": "' + b"a" * 60_000 + b'"}'
    with connect(server) as connection:
        connection.sendall(
            b"POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            b"Authorization: Bearer " + server.tokens["operator"].encode() + b"\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        for start in range(0, len(body), 6_000):
            connection.sendall(body[start : start + 6_000])
            time.sleep(0.15)
        assert heard(connection).startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize("limits", [replace(LIMITS, bodies=20_000, body_time=30.0)])
def test_one_token_has_only_so_many_bytes_of_bodies_under_way(server: Served) -> None:
    body = b'{"title": "' + b"a" * 15_000

    def begin() -> socket.socket:
        connection = connect(server)
        connection.sendall(
            b"POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            b"Authorization: Bearer " + server.tokens["operator"].encode() + b"\r\n"
            b"Content-Type: application/json\r\nContent-Length: 16000\r\n\r\n" + body
        )
        return connection

    with begin() as first:
        assert eventually(lambda: server.application.gate.under_way > len(body) - 1)
        with begin() as second:
            assert heard(second).startswith(b"HTTP/1.1 429")
        # Another token has room of its own.
        assert server("admin").post("/tasks", json={"title": "b" * 200}).status_code == 201
        first.shutdown(socket.SHUT_WR)
    assert eventually(lambda: server.application.gate.under_way == 0)
    assert server("operator").post("/tasks", json={"title": "b" * 200}).status_code == 201


@pytest.mark.parametrize("limits", [replace(LIMITS, pipelined=1_000)])
def test_a_caller_that_takes_no_answer_is_cut_off(server: Served) -> None:
    token = server.tokens["viewer"].encode()
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    with made as connection:
        connection.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        ended = select.poll()
        ended.register(connection, 0)
        # More than the kernel takes for the server.
        for _ in range(40):
            with suppress(ConnectionError):
                connection.sendall(asked + b"\r\n\r\n")
            ended.poll(20)
        assert ended.poll(5_000)
    assert good(server) == 200


def test_a_caller_that_asks_on_without_waiting_is_stopped(patient_server: Served) -> None:
    with connect(patient_server) as connection:
        connection.sendall(WHOLE * 5)
        said = b""
        while said.count(b"HTTP/1.1 200") < 5:
            said += connection.recv(65_536)
    with connect(patient_server) as connection:
        connection.sendall(WHOLE * 1_000)
        assert heard(connection).count(b"HTTP/1.1 200") < 5


@pytest.mark.parametrize("asked", [b"", WHOLE], ids=["nothing", "something"])
def test_the_oldest_silent_connections_of_an_address_make_room(
    patient_server: Served, asked: bytes
) -> None:
    with (
        connect(patient_server, "127.0.0.3") as other,
        flood(patient_server, 30, "127.0.0.2", asked) as silent,
    ):
        assert eventually(lambda: sum(map(is_open, silent)) <= 10)
        assert not is_open(silent[0])
        assert is_open(silent[-1])
        # Others have theirs, and their place.
        assert is_open(other)
        assert good(patient_server) == good(patient_server, "127.0.0.2") == 200


def test_a_known_caller_is_not_closed_while_a_body_still_comes(patient_server: Served) -> None:
    token, body = patient_server.tokens["operator"].encode(), b'{"title": "a task"}'
    with connect(patient_server, "127.0.0.2") as upload:
        upload.sendall(
            b"POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            b"Authorization: Bearer " + token + b"\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body[:5]
        )
        assert good(patient_server) == 200
        with flood(patient_server, 30, "127.0.0.2") as silent:
            assert eventually(partial(is_closed, silent[0]))
            upload.sendall(body[5:])
            assert heard(upload).startswith(b"HTTP/1.1 201")


def test_a_field_that_comes_after_a_body_is_no_header(patient_server: Served) -> None:
    token, body = patient_server.tokens["operator"].encode(), b'{"title": "a task"}'
    with connect(patient_server) as connection:
        connection.sendall(
            b"POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            b"Authorization: Bearer " + token + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"%x\r\n" % len(body) + body + b"\r\n0\r\nContent-Type: application/json\r\n\r\n"
        )
        assert heard(connection).startswith(b"HTTP/1.1 422")


def test_the_oldest_silent_connections_of_all_make_room(patient_server: Served) -> None:
    with ExitStack() as stack:
        floods = [
            stack.enter_context(flood(patient_server, 9, f"127.0.1.{n}")) for n in range(1, 5)
        ]
        silent = [each for some in floods for each in some]
        assert eventually(lambda: sum(map(is_open, silent)) <= 20)
        assert not any(map(is_open, floods[0]))
        assert all(map(is_open, floods[-1]))
        assert good(patient_server) == 200


def test_a_caller_that_is_known_or_being_answered_is_not_closed_for_others(
    patient_server: Served,
) -> None:
    with (
        patient_server.client(patient_server.tokens["viewer"]) as known,
        waits(patient_server, "127.0.0.1") as reader,
    ):
        pool = known._transport._pool  # type: ignore[attr-defined] # noqa: SLF001
        assert known.get("/runs").status_code == 200
        (kept,) = pool.connections
        for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"):
            with flood(patient_server, 30, source) as silent:
                assert eventually(partial(is_closed, silent[0]))
        assert known.get("/runs").status_code == 200
        assert pool.connections == [kept]
        assert reader.recv(12) == b"HTTP/1.1 200"
        assert is_open(reader)


def test_a_newcomer_is_told_of_too_many_connections_where_none_is_silent(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    rules = GateRules(connections=replace(LIMITS, connections=8, streams=100, head_time=30.0))
    with served(sqlite_url, tmp_path / "home", rules=rules) as server, ExitStack() as stack:
        for source in ["127.0.0.2"] * 4 + ["127.0.0.3"] * 4:
            assert stack.enter_context(waits(server, source)).recv(12) == b"HTTP/1.1 200"
        with connect(server, "127.0.0.2") as more:
            assert told(more) == "429 too_many_connections"
        with connect(server, "127.0.0.4") as more:
            assert told(more) == "503 too_many_connections"


def waits(server: Served, source: str) -> socket.socket:
    """A connection that is being answered for as long as it stays."""
    made = connect(server, source)
    token = server.tokens["viewer"].encode()
    made.sendall(
        b"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token
    )
    made.sendall(b"\r\n\r\n")
    return made


def test_a_token_reads_so_many_streams_at_once_and_no_more(patient_server: Served) -> None:
    with waits(patient_server, "127.0.0.2") as one, waits(patient_server, "127.0.0.2") as other:
        assert one.recv(12) == other.recv(12) == b"HTTP/1.1 200"
        with waits(patient_server, "127.0.0.2") as more:
            said = more.recv(65_536)
        assert said.startswith(b"HTTP/1.1 429")
        assert b'"too_many_streams"' in said
    assert eventually(lambda: good_stream(patient_server))


def good_stream(server: Served) -> bool:
    with waits(server, "127.0.0.2") as one:
        return one.recv(12) == b"HTTP/1.1 200"
