"""The address of a running command: whose calls it takes, and what it does with everybody else."""

from __future__ import annotations

import gc
import json
import resource
import socket
import string
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.model.task import Assignment
from holdfast.service.protocol.attempt_calls import AttemptCalls
from holdfast.threads import SystemThreads
from holdfast.worker.attempt_server import attempt_listener
from holdfast.worker.attempt_server.attempt_addresses import AttemptAddress, AttemptAddresses
from holdfast.worker.attempt_server.attempt_listener import AttemptListener
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.secrets.secrets import Secrets
from tests.contract.server.local_server import PLAIN
from tests.contract.task_states import create, take
from tests.race.racers import eventually

HORSE = "correct-horse-battery"
CLAIMS = "/api/v1/claims"


class Desk:
    """A store, and addresses for attempts that are carried out by the test itself."""

    def __init__(self, hf: Holdfast, folder: Path) -> None:
        self.hf = hf
        self.state = StateDirectory(root=folder)
        self.secrets = secrets = Secrets(hf.settings.url, {"HORSE": HORSE})
        secrets.get("HORSE")
        calls = AttemptCalls(engine_of(hf), self.state)
        self.addresses = AttemptAddresses(SystemThreads(), lambda: calls, secrets)

    def attempt(self) -> Assignment:
        return take(engine_of(self.hf), create(engine_of(self.hf)))


@pytest.fixture
def desk(sqlite_store_url: str, tmp_path: Path) -> Iterator[Desk]:
    with Holdfast(sqlite_store_url) as hf:
        yield Desk(hf, tmp_path / "state")


def call(address: AttemptAddress, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {address.variables['HOLDFAST_TOKEN']}"}
    url = address.variables["HOLDFAST_SERVER"] + path
    answer = httpx.post(url, json=body, headers=headers, verify=PLAIN, trust_env=False)
    return answer.status_code, answer.json()


def dial(address: AttemptAddress) -> socket.socket:
    port = int(address.variables["HOLDFAST_SERVER"].rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def test_an_address_serves_its_own_attempt_alone(desk: Desk) -> None:
    one, other = desk.attempt(), desk.attempt()
    own, foreign = f"{CLAIMS}/{one.task_id}", f"{CLAIMS}/{other.task_id}"
    with desk.addresses.open(one) as address, desk.addresses.open(other):
        assert call(address, f"{own}/guard", token=one.token)[0] == 200
        refused = [
            call(address, f"{own}/guard", token=other.token),
            call(address, f"{own}/complete", token=other.token, output=1),
            call(address, f"{foreign}/complete", token=other.token, output=1),
            call(address, f"{CLAIMS}/renew", leases=[{"task_id": other.task_id, "token": "x"}]),
            call(address, f"{CLAIMS}/complete", results=[]),
            call(address, CLAIMS, worker="w"),
            call(address, "/api/v1/tasks", title="x"),
            call(address, f"{own}/guard"),
        ]
        codes = [(status, told["code"]) for status, told in refused]
        assert codes == [
            *[(409, "stale_token")] * 2,
            *[(403, "forbidden")] * 5,
            (422, "invalid_input"),
        ]
    assert [desk.hf.tasks.get(each.task_id).status for each in (one, other)] == ["running"] * 2


def test_an_address_is_gone_with_its_attempt_and_the_listener_with_the_last(desk: Desk) -> None:
    one, other = desk.attempt(), desk.attempt()
    with desk.addresses.open(one) as longer:
        with desk.addresses.open(other) as ended:
            assert ended.variables["HOLDFAST_SERVER"] == longer.variables["HOLDFAST_SERVER"]
            assert ended.variables["HOLDFAST_TOKEN"] != longer.variables["HOLDFAST_TOKEN"]
        status, told = call(ended, f"{CLAIMS}/{other.task_id}/guard", token=other.token)
        assert (status, told["code"]) == (401, "unauthorized")
    assert eventually(lambda: not _listens(longer))
    assert desk.hf.tasks.get(other.task_id).status == "running"


def _listens(address: AttemptAddress) -> bool:
    try:
        dial(address).close()
    except ConnectionError:
        return False
    return True


def test_refusals_of_the_store_carry_the_codes_that_a_server_gives(desk: Desk) -> None:
    held = desk.attempt()
    own = f"{CLAIMS}/{held.task_id}"
    with desk.addresses.open(held) as address:
        wrong = call(address, f"{own}/complete", token=held.token, outputs=1)
        assert (wrong[0], wrong[1]["mistakes"][0]["field"]) == (422, "outputs")
        assert call(address, f"{own}/children", token=held.token, tasks=[{"title": "a"}])[0] == 201
        named = [{"title": "a", "step": "wipe"}]
        assert call(address, f"{own}/children", token=held.token, tasks=named)[0] == 422
        assert call(address, f"{own}/complete", token=held.token, output=1)[0] == 200
        status, told = call(address, f"{own}/complete", token=held.token, output=2)
        assert (status, told["code"]) == (409, "result_conflict")
        status, told = call(address, f"{own}/logs", token=held.token, chunk="late")
        assert (status, told["code"]) == (409, "already_terminal")


BAD = [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400 "),
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"401 "),
    (b"POST / HTTP/1.1\r\nAuthorization: Bearer \xff\r\n\r\n", b"401 "),
    (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400 "),
    (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", b"401 "),
    (b"POST / HTTP/9.9\r\n\r\n", b"400 "),
    (b"X: " + b"x" * 100_000, b"431 "),
    (b"\r\n\r\n", b"400 "),
    (b"", b""),
]
KNOWN = [
    (b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411 "),
    (b"Content-Length: 999999999\r\n\r\n", b"413 "),
    (b"Content-Length: -1\r\n\r\n", b"411 "),
    (b"Content-Length: 2\r\n\r\n{}", b"415 "),
    (b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{]", b"400 "),
    (b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n[]", b"422 "),
    (b"Content-Type: application/json\r\nContent-Length: 90000\r\n\r\n" + b"[" * 90_000, b"400 "),
]


def test_garbage_is_refused_and_the_command_is_served_all_the_same(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    held = desk.attempt()
    path = f"{CLAIMS}/{held.task_id}/guard"
    with desk.addresses.open(held) as address:
        token = address.variables["HOLDFAST_TOKEN"]
        head = f"POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n".encode()
        for sent, answered in [*BAD, *((head + more, said) for more, said in KNOWN)]:
            with dial(address) as caller:
                caller.sendall(sent)
                caller.shutdown(socket.SHUT_WR)
                assert answered in _read_all(caller)[:20], sent[:80]
        assert call(address, path, token=held.token)[0] == 200
    # Nor can whoever sends it fill the worker's log.
    assert not caplog.records


def _read_all(caller: socket.socket) -> bytes:
    data = b""
    try:
        while piece := caller.recv(65_536):
            data += piece
    except ConnectionError:
        pass
    return data


def test_silent_connections_do_not_keep_other_callers_out(desk: Desk) -> None:
    held = desk.attempt()
    files = len([*Path("/proc/self/fd").iterdir()])
    with ExitStack() as silent, desk.addresses.open(held) as address:
        for _ in range(3 * attempt_listener.MOST_CONNECTIONS):
            caller = silent.enter_context(closing(dial(address)))
            caller.sendall(b"POST ")
        path = f"{CLAIMS}/{held.task_id}/guard"
        assert call(address, path, token=held.token)[0] == 200
        own = (
            len([*Path("/proc/self/fd").iterdir()]) - files - 3 * attempt_listener.MOST_CONNECTIONS
        )
        assert own < attempt_listener.MOST_CONNECTIONS + 20


CROWD = """
import http.client, json, socket, sys
port, path, token, attempt = sys.argv[1:]
input()
crowd = [socket.create_connection(("127.0.0.1", int(port)), timeout=9) for _ in range(60)]
caller = http.client.HTTPConnection("127.0.0.1", int(port), timeout=9)
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
caller.request("POST", path, json.dumps({"token": attempt}), headers)
print(caller.getresponse().status)
"""


def test_a_crowd_takes_neither_all_files_nor_the_log_of_a_worker_that_may_open_few(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    held = desk.attempt()
    path = f"{CLAIMS}/{held.task_id}/guard"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with desk.addresses.open(held) as address:
        port = address.variables["HOLDFAST_SERVER"].rpartition(":")[2]
        told = [port, path, address.variables["HOLDFAST_TOKEN"], held.token]
        crowd = subprocess.Popen(
            [sys.executable, "-c", CROWD, *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        used = {int(each.name) for each in Path("/proc/self/fd").iterdir()}
        free = [number for number in range(len(used) + 12) if number not in used]
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1] + 1, hard))
        try:
            assert crowd.communicate(b"\n", timeout=30)[0] == b"200\n"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(caplog.records) <= 1


def test_strangers_have_a_share_of_the_files_that_a_worker_may_open(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (40, 40))
    held = desk.attempt()
    files = len([*Path("/proc/self/fd").iterdir()])
    with ExitStack() as silent, desk.addresses.open(held) as address:
        for _ in range(50):
            silent.enter_context(closing(dial(address)))
        assert call(address, f"{CLAIMS}/{held.task_id}/guard", token=held.token)[0] == 200
        assert len([*Path("/proc/self/fd").iterdir()]) - files - 50 < 30


def test_a_caller_that_never_finishes_a_head_or_a_body_is_dropped(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_listener, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(attempt_listener, "BODY_SECONDS", 0.1)
    held = desk.attempt()
    with desk.addresses.open(held) as address:
        token = address.variables["HOLDFAST_TOKEN"]
        known = f"POST / HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n"
        for sent in (b"POST ", known.encode()):
            with dial(address) as caller:
                caller.sendall(sent)
                assert _read_all(caller) == b""


def test_a_large_body_that_waits_to_be_asked_for_is_asked_for(desk: Desk) -> None:
    held = desk.attempt()
    text = json.dumps({"token": held.token, "chunk": "x" * 100_000}).encode()
    with desk.addresses.open(held) as address, dial(address) as caller:
        token = address.variables["HOLDFAST_TOKEN"]
        lines = [
            f"POST {CLAIMS}/{held.task_id}/logs HTTP/1.1",
            f"Authorization: Bearer {token}",
            "Content-Type: application/json",
            f"Content-Length: {len(text)}",
            "Expect: 100-continue",
        ]
        caller.sendall("\r\n".join([*lines, "", ""]).encode())
        assert caller.recv(1_000).startswith(b"HTTP/1.1 100 ")
        caller.sendall(text)
        assert caller.recv(1_000).startswith(b"HTTP/1.1 200 ")
    assert len(desk.state.log(held.task_id, 1).path.read_bytes()) == 100_000


def test_a_log_is_whole_though_many_write_to_it_at_once(desk: Desk) -> None:
    held = desk.attempt()
    path = f"{CLAIMS}/{held.task_id}/logs"
    with desk.addresses.open(held) as address:
        writers = [
            threading.Thread(
                target=call, args=(address, path), kwargs={"token": held.token, "chunk": f"{n}\n"}
            )
            for n in range(20)
        ]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
    lines = desk.state.log(held.task_id, 1).path.read_text().split()
    assert sorted(lines, key=int) == [str(n) for n in range(20)]


def test_the_end_of_a_log_that_may_begin_a_secret_is_written_when_the_attempt_ends(
    desk: Desk,
) -> None:
    held = desk.attempt()
    log, path = desk.state.log(held.task_id, 1).path, f"{CLAIMS}/{held.task_id}/logs"
    with desk.addresses.open(held) as address:
        assert call(address, path, token=held.token, chunk=f"a {HORSE[:9]}")[0] == 200
        assert log.read_text() == "a "
        assert call(address, path, token=held.token, chunk=f"{HORSE[9:]} b corr")[0] == 200
        assert log.read_text() == "a [secret HORSE] b "
    assert log.read_text() == "a [secret HORSE] b corr"


def test_a_line_is_not_held_back_for_the_token_of_an_address(desk: Desk) -> None:
    held = desk.attempt()
    without = desk.secrets.make_redaction_with({"A": held.token})()
    lines = [f"zz {letter}\n".encode() for letter in string.ascii_letters + string.digits]
    for _ in range(10):
        with desk.addresses.open(held) as address:
            present = address.current_redaction()
            assert [present.split(each) for each in lines] == [
                without.split(each) for each in lines
            ]


def test_a_report_writes_the_end_of_the_log_and_one_that_is_refused_parts_what_follows(
    desk: Desk,
) -> None:
    held = desk.attempt()
    log, own = desk.state.log(held.task_id, 1).path, f"{CLAIMS}/{held.task_id}"
    with desk.addresses.open(held) as address:
        call(address, f"{own}/logs", token=held.token, chunk=HORSE[:9])
        assert call(address, f"{own}/complete", token=held.token, outputs=1)[0] == 422
        assert log.read_text() == HORSE[:9]
        call(address, f"{own}/logs", token=held.token, chunk=f"{HORSE[9:]} corr")
        assert call(address, f"{own}/complete", token=held.token, output=1)[0] == 200
        assert log.read_text() == f"{HORSE[:9]}\n{HORSE[9:]} corr"


def test_a_piece_of_a_log_that_was_refused_is_sent_again_and_written_once(desk: Desk) -> None:
    held = desk.attempt()
    log, path = desk.state.log(held.task_id, 1).path, f"{CLAIMS}/{held.task_id}/logs"
    with desk.addresses.open(held) as address:
        call(address, path, token=held.token, chunk=HORSE[:9])
        log.chmod(0o400)
        log.rename(log.with_name("kept"))
        log.mkdir()
        assert call(address, path, token=held.token, chunk=HORSE[9:])[0] in {422, 503}
        log.rmdir()
        log.with_name("kept").rename(log)
        log.chmod(0o600)
        assert call(address, path, token=held.token, chunk=f"{HORSE[9:]}\n")[0] == 200
    assert log.read_text() == "[secret HORSE]\n"


def test_a_caller_that_connects_while_the_listener_stops_leaves_no_socket_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: left.append(found.exc_value))
    threads = SystemThreads()
    for _ in range(20):
        listener = AttemptListener(threads, lambda _: None)
        coming = threads.start("coming", partial(_come, urlsplit(listener.start()).port or 0))
        listener.stop()
        coming.join()
    assert eventually(lambda: "holdfast-address" not in {t.name for t in threading.enumerate()})
    gc.collect()
    assert left == []


def _come(port: int) -> None:
    """Connect until nobody listens any more."""
    with ExitStack() as callers, suppress(ConnectionError):
        for _ in range(50):
            callers.enter_context(socket.create_connection(("127.0.0.1", port)))
