"""The server as a person starts it: a token at first start, real processes, signals, kill -9."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast import Holdfast
from holdfast.service.project.server_address import find_server
from tests.acceptance.terminals import PATIENCE, PROGRAM, environment, holdfast, terminal
from tests.race.racers import eventually


@contextmanager
def serving(
    folder: Path, *arguments: str, by: str = "", **more: str
) -> Iterator[tuple[Any, httpx.Client]]:
    """A server of its own process, and a client with the token that it made.

    `by` is a command that starts it.
    """
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(
            [*by.split(), sys.executable, "-c", PROGRAM, *arguments, "--port", "0"],
            cwd=folder,
            env=environment(**more),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), (folder / "said").read_text()
            token = (folder / ".holdfast" / "token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=30) as client:
                yield process, client
        finally:
            process.kill()


def ended(client: httpx.Client, run_id: str) -> dict[str, Any]:
    """A run, once it has ended."""
    told: dict[str, Any] = {}

    def over() -> bool:
        told.update(client.get(f"/runs/{run_id}").json())
        return bool(told["status"] != "running")

    assert eventually(over), told
    return told


def test_a_server_begins_with_a_token_of_its_own_and_drains(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")
    with serving(tmp_path, "serve", "--log-json") as (process, client):
        path = tmp_path / ".holdfast" / "token"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert holdfast(tmp_path, "token").stdout.strip() == path.read_text().strip()
        assert client.get("/runs").status_code == 200
        assert httpx.get(f"{client.base_url}runs").status_code == 401
        client.post("/tokens", json={"name": "ci", "role": "worker"})
        kept = tmp_path / ".holdfast" / "audit.log"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        (line,) = map(json.loads, kept.read_text().splitlines())
        assert (line["did"], line["became"]) == ("POST /api/v1/tokens", "201")
        assert (line["role"], line["about"]) == ("admin", "ci worker")
        answers: list[httpx.Response] = []
        body = {"worker": "w", "wait_seconds": 60}
        waits = threading.Thread(target=lambda: answers.append(client.post("/claims", json=body)))
        waits.start()
        assert eventually(lambda: bool(client.get("/workers").json()["items"]))
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == 0
        waits.join(PATIENCE)
    assert [each.json()["assignments"] for each in answers] == [[]]
    said = [json.loads(each)["message"] for each in (tmp_path / "said").read_text().splitlines()]
    assert [each.split()[0] for each in said[:3]] == ["store", "token", "open"]


def test_a_proxy_is_believed_that_whoever_serves_has_named(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")
    named = {"HOLDFAST_PROXIES": "10.0.0.0/8, 127.0.0.1"}
    with serving(tmp_path, "serve", FORWARDED_ALLOW_IPS="*", **named) as (_, client):
        headers = {"Authorization": "Bearer wrong", "X-Forwarded-For": "1.1.1.1, 203.0.113.9"}
        assert client.post("/tasks", headers=headers).status_code == 401
        (line,) = map(json.loads, (tmp_path / ".holdfast" / "audit.log").read_text().splitlines())
    assert (line["became"], line["about"]) == ("401", "from 203.0.113.9")
    wrong = holdfast(tmp_path, "serve", "--proxy", "proxy.example.com")
    assert (wrong.returncode, "give the proxy's, as 10.0.0.7" in wrong.stderr) == (2, True)


def test_open_lets_a_browser_in_once(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")
    away = holdfast(tmp_path, "open", "--server", "http://127.0.0.1:1", HOLDFAST_TOKEN="x" * 40)
    assert (away.returncode, "holdfast up" in away.stderr) == (5, True)
    with serving(tmp_path, "serve") as (_, client):
        url = str(client.base_url).removesuffix("/api/v1/")
        link = holdfast(tmp_path, "open", "--print").stdout.strip()
        assert link.startswith(f"{url}/enter?code=")
        task = json.loads(holdfast(tmp_path, "task", "add", "look at me", "--json").stdout)["id"]
        there = holdfast(tmp_path, "open", task[:20], "--print").stdout.strip()
        assert there.endswith(f"&to=/tasks/{task}")
        code = {"code": link.partition("=")[2]}
        with httpx.Client(base_url=url) as browser:
            assert browser.post("/enter", data=code).status_code == 200
            assert browser.get("/").status_code == 200
            assert browser.get("/api/v1/session").json()["name"].startswith("admin-")
            assert browser.post("/enter", data=code).status_code == 401
        assert code["code"] not in (tmp_path / "said").read_text()
        told = (tmp_path / ".holdfast" / "server").read_text()
    # It was killed: whoever has its port now is sent no token.
    assert (tmp_path / ".holdfast" / "server").read_text() == told
    assert find_server(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") is None


def test_a_person_who_starts_a_server_is_shown_a_link_into_it(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")
    with terminal(tmp_path, "serve", "--port", "0") as shown:
        shown.until("within 10 minutes")
        (link,) = re.findall(r"http://\S+/enter\?code=[\w-]+", shown.text)
        assert httpx.get(link).status_code == 200


def test_a_server_listens_on_this_machine_alone_unless_told_otherwise(tmp_path: Path) -> None:
    said = holdfast(tmp_path, "serve", "--host", "0.0.0.0", "--db", "x.db")  # noqa: S104
    assert said.returncode == 2
    assert "--public" in said.stderr


def test_up_serves_and_works_in_one_process(tmp_path: Path) -> None:
    holdfast(tmp_path, "init")
    with serving(tmp_path, "up", "--concurrency", "1") as (process, client):
        text = "name: hi\nsteps: [{id: a, run: [echo, '{\"n\": 3}']}]"
        made = client.post("/workflows", content=text, headers={"Content-Type": "application/yaml"})
        assert made.status_code == 201, made.text
        run = client.post("/runs", json={"workflow": "hi"}).json()
        told = ended(client, run["id"])
        assert (told["status"], told["output"]) == ("completed", {"n": 3})
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    lines = (tmp_path / "said").read_text().splitlines()
    assert "draining: nobody new is served" in lines[-2]
    assert lines[-1].endswith("ended: nothing is under way here any more")
    assert not (tmp_path / ".holdfast" / "server").exists()


@pytest.mark.parametrize("by", ["option", "file", "variable"])
def test_up_gives_back_what_still_runs_when_its_grace_is_over(tmp_path: Path, by: str) -> None:
    (tmp_path / "holdfast.yaml").write_text("grace: 0.2s\n" if by == "file" else "grace: 1h\n")
    more = ("--grace", "0.2s") if by == "option" else ()
    variables = {"HOLDFAST_GRACE": "0.2s"} if by == "variable" else {}
    holdfast(tmp_path, "init", "--bare")
    with serving(tmp_path, "up", *more, **variables) as (process, client):
        text = "name: long\nsteps: [{id: a, run: [sleep, '600']}]"
        client.post("/workflows", content=text, headers={"Content-Type": "application/yaml"})
        run = client.post("/runs", json={"workflow": "long"}).json()["id"]

        def look() -> dict[str, Any]:
            told: dict[str, Any] = client.get(f"/runs/{run}").json()["tasks"][0]
            return told

        assert eventually(lambda: look()["status"] == "running")
        task_id = look()["id"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    said = (tmp_path / "said").read_text()
    name = f"attempt 1 of a ({task_id})"
    assert f"for {name}; after that, or at a second Ctrl-C or SIGTERM, it stops" in said
    assert f"what still runs is stopped: {name}" in said
    with Holdfast(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") as hf:
        assert [each.outcome for each in hf.tasks.attempts(task_id)] == ["released"]
        assert hf.tasks.get(task_id).status == "queued"


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_every_call_that_was_acknowledged_is_there_after_a_kill(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    (tmp_path / ".holdfast").mkdir()
    default = f"sqlite:///{tmp_path}/.holdfast/holdfast.db"
    url = default if database == "sqlite" else request.getfixturevalue("postgres_store_url")
    made: list[str] = []
    done: list[str] = []

    def work(client: httpx.Client) -> None:
        while True:
            task = client.post("/tasks", json={"title": "t"}).json()
            made.append(task["id"])
            (got,) = client.post("/claims", json={"worker": "w"}).json()["assignments"]
            identifier, body = got["task"]["id"], {"token": got["token"], "output": 1}
            client.post(f"/claims/{identifier}/complete", json=body).raise_for_status()
            done.append(identifier)

    def until_cut(client: httpx.Client) -> None:
        with pytest.raises((httpx.TransportError, ValueError)):
            work(client)

    with serving(tmp_path, "serve", HOLDFAST_DB=url) as (process, client):
        workers = [threading.Thread(target=until_cut, args=[client]) for _ in range(4)]
        for each in workers:
            each.start()
        while len(done) < 20:
            assert process.poll() is None
        process.kill()
        for each in workers:
            each.join(PATIENCE)
    with Holdfast(url) as hf:
        assert {*made} <= {task.id for task in hf.tasks.list(limit=1_000)}
        assert {*done} <= {task.id for task in hf.tasks.list(limit=1_000, status="done")}
        assert hf.doctor().ok
