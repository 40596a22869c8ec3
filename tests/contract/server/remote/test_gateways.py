"""A worker elsewhere, with something in between that answers in the server's place."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from holdfast.errors import StoreUnreachable
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.remote import end_watch, log_stream, poller, sender
from holdfast.worker.remote.allowlist import Allowlist, RemoteExecutors
from holdfast.worker.remote.client import ServerClient
from holdfast.worker.remote.remote_store import RemoteStore
from tests.contract.http_service import Heard, Reply, Service, service, standing
from tests.contract.server.local_server import PLAIN, Served
from tests.race.racers import eventually

TOKEN = "hf_0123456789"
WORKER = Reply(body=b'{"name": "w", "role": "worker"}')
ODD = [
    Reply(status=400, body=b'{"code": "E42", "detail": "no"}'),
    Reply(status=401, body=b'{"detail": "log in first"}'),
    Reply(status=404, body=b'{"code": "not_found", "detail": "no such route"}'),
    Reply(status=403, body=b'"forbidden"'),
    Reply(status=409, body=b"[]"),
    Reply(status=422, body=b"null"),
    Reply(status=413, body=b"<html>too large</html>"),
    Reply(status=302, body=b"{}", headers={"Location": "/login"}),
    Reply(status=502, body=b'"upstream connect error"'),
    Reply(body=b"{}"),
    Reply(body=b"[]"),
    Reply(body=b'{"ok": "yes", "task": "t"}'),
    Reply(body=b"\xff" * 3),
    Reply(body=b"[" * 100_000),
    Reply(body=b"plain", headers={"Content-Encoding": "gzip"}),
]


class Gateway(Service):
    """Passes on what it hears, but for the odd answers that it gives first, by a path's end."""

    def __init__(self, server: str, odd: dict[str, list[Reply]]) -> None:
        super().__init__()
        self._server = server
        self.odd = odd

    def answer(self, heard: Heard) -> Reply:
        odd = self.odd.get(heard.path.rpartition("/")[2])
        if odd:
            return odd.pop(0)
        kept = {
            name: heard.headers[name]
            for name in ("authorization", "content-type")
            if name in heard.headers
        }
        told = httpx.request(
            heard.method, self._server + heard.path, content=heard.body, headers=kept, verify=PLAIN
        )
        return Reply(status=told.status_code, body=told.content)


@contextmanager
def working(url: str, token: str, folder: Path) -> Iterator[RemoteStore]:
    office = RemoteStore(url, token)
    executors = RemoteExecutors(office, Allowlist(anything=True), StateDirectory(root=folder))
    executors.begin()
    worker = StoreWorker(office, executors, WorkerOptions(name="far"), executors.clean)
    try:
        with worker:
            yield office
    finally:
        office.close()


@pytest.fixture(autouse=True)
def _ask_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (end_watch, log_stream, sender, poller):
        monkeypatch.setattr(each, "PAUSE", 0.01)
    monkeypatch.setattr(poller, "LONGEST_POLL", 0.2)


@pytest.mark.parametrize("reply", ODD, ids=lambda each: f"{each.status}-{each.body[:12]!r}")
def test_an_answer_that_no_holdfast_server_gives_counts_as_no_answer(reply: Reply) -> None:
    with service(reply) as gateway:
        client = ServerClient(gateway.url, TOKEN)
        with pytest.raises(StoreUnreachable):
            client.transition("/claims/t_1/complete", {"token": "1.x"}, task=dict)
        client.close()


def test_an_odd_answer_is_shown_by_its_status_and_its_beginning_and_without_the_token() -> None:
    said = f'{{"error": "no route for Bearer {TOKEN}"}}{" " * 200}end'
    with service(Reply(status=418, body=said.encode())) as gateway:
        client = ServerClient(gateway.url, TOKEN)
        with pytest.raises(StoreUnreachable, match=r"418 .*no route for Bearer …") as raised:
            client.get("/session", role=str)
        client.close()
    assert (TOKEN in str(raised.value), "end" in str(raised.value)) == (False, False)


def test_no_proxy_is_shown_the_token_for_a_server_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with service(WORKER) as server, service(WORKER) as proxy:
        for each in ("http_proxy", "all_proxy"):
            monkeypatch.setenv(each, proxy.url)
        client = ServerClient(server.url, TOKEN)
        assert client.get("/session", role=str)["role"] == "worker"
        client.close()
    assert (len(server.heard), proxy.heard) == (1, [])


@pytest.mark.parametrize(
    "leases",
    ["[]", "[1]", '[{"task_id": "t_2", "ok": true}]', '[{"task_id": "t_1", "ok": false}]'],
)
def test_a_renewal_that_is_answered_oddly_is_neither_kept_nor_refused(leases: str) -> None:
    with service(Reply(body=f'{{"leases": {leases}}}'.encode())) as gateway:
        client = ServerClient(gateway.url, TOKEN)
        with pytest.raises(StoreUnreachable):
            client.renew([{"task_id": "t_1", "token": "1.x"}], 20)
        client.close()


def test_a_finished_result_outlives_whatever_a_gateway_says_to_it(
    quick_server: Served, tmp_path: Path
) -> None:
    server, ran = quick_server, tmp_path / "ran"
    text = f"name: f\nsteps: [{{id: a, run: [sh, -c, 'echo x >> {ran}; echo said']}}]"
    yaml = {"Content-Type": "application/yaml"}
    assert server().post("/workflows", content=text, headers=yaml).status_code == 201
    run = server("operator").post("/runs", json={"workflow": "f"}).json()["id"]
    some = (*ODD[:4], Reply(body=b'{"ok": true}'))
    odd = {each: list(some) for each in ("session", "claims", "logs", "complete")}
    gateway = Gateway(server.url, odd)
    with standing(gateway), working(gateway.url, server.tokens["worker"], tmp_path / "far"):
        assert eventually(lambda: server.hf.runs.get(run).status == "completed")
    assert odd == {each: [] for each in odd}
    (task,) = server().get(f"/runs/{run}").json()["tasks"]
    assert (task["attempt"], ran.read_text()) == (1, "x\n")
    assert server().get(f"/tasks/{task['id']}/logs").json()["text"] == "said\n"


def test_a_worker_asks_on_whatever_it_is_answered_and_tells_each_kind_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    odd = [
        *(Reply(body=b'{"assignments": [{"whole": {}}]}') for _ in range(3)),
        Reply(body=b'{"assignments": ["x"]}'),
        Reply(status=503, body=b"[]"),
        Reply(status=503, body=b"null"),
    ]
    with service(WORKER, *odd) as gateway, working(gateway.url, TOKEN, tmp_path):
        assert eventually(lambda: len(gateway.heard) > len(odd) + 3)
    told = [each.message for each in caplog.records if "cannot ask for work" in each.message]
    assert [each.partition(gateway.url)[2][:33] for each in told] == [
        " gives work that cannot be read h",
        " does not answer as a Holdfast se",
    ]


def test_an_error_that_nobody_foresaw_does_not_end_the_asking(
    quick_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server = quick_server
    office = RemoteStore(server.url, server.tokens["worker"])
    rooms = iter([ZeroDivisionError("no room"), ZeroDivisionError("none")])
    got: list[str] = []

    def room() -> int:
        for error in rooms:
            raise error
        return 1 - len(got)

    taker = office.work.standing_claim(
        "far",
        agents=["default"],
        tags=[],
        room=room,
        passing=tuple,
        deliver=lambda claimed: got.extend(each.task_id for each in claimed.read()),
    )
    task = server.add(step="pack")["id"]
    leave = office.work.add_standing_claim(taker)
    assert eventually(lambda: got == [task])
    leave()
    office.work.pull(taker)
    office.close()
    (said,) = [each for each in caplog.records if "cannot ask for work" in each.message]
    assert (said.levelno, "ZeroDivisionError('no room')" in said.message) == (logging.WARNING, True)
    assert said.exc_info is not None
