"""A worker for a server elsewhere: the executors of a local one, and only what it allows."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.server.test_server import ended, serving
from tests.acceptance.terminals import PATIENCE, PROGRAM, environment, holdfast
from tests.contract.worker.git.repositories import run as git
from tests.contract.worker.git.repositories import write
from tests.race.racers import eventually

FLOW = """
name: flow
input: {word: string}
steps:
  - id: list
    run: [sh, -c, 'echo on it, in $(pwd); echo "{\\"items\\": [1, 2]}"']
    outputs: {items: [integer]}
    cwd: inner
  - id: each
    for_each: "{{ steps.list.items }}"
    steps:
      - {id: say, run: [sh, -c, 'cat "$HOLDFAST_INPUT" >&2; echo "{\\"said\\": \\"$W\\"}"'], env: {W: "{{ input.word }}{{ item }}"}}
  - id: forbidden
    run: [touch, "{{ input.word }}"]
  - id: guarded
    run: [sh, -c, '$HOLDFAST guard >&2 && echo "$HOLDFAST_TOKEN" && echo "{\\"ok\\": true}"']
"""  # noqa: E501 - a line of YAML
ALLOW_CWD = ("--allow-cwd", ".", "--allow-cwd", "away")
ALLOW = ("--allow", "sh", "--allow", "absent-tool", "--allow-env", "W", *ALLOW_CWD)
YAML = {"Content-Type": "application/yaml"}


@contextmanager
def working(folder: Path, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    with (
        (folder / "worker-said").open("w") as said,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "worker", *arguments],
            cwd=folder,
            env=environment(**more),
            stderr=said,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def test_a_worker_elsewhere_runs_what_it_allows_and_leaves_the_rest_to_others(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (there / "inner").mkdir(parents=True)
    holdfast(here, "init", "--bare")
    with serving(here, "serve") as (_, client):
        url = str(client.base_url).removesuffix("/api/v1/")
        token = client.post("/tokens", json={"name": "there", "role": "worker"}).json()["token"]
        assert client.post("/workflows", content=FLOW, headers=YAML).status_code == 201
        asked = {"workflow": "flow", "input": {"word": "x"}}
        run_id = client.post("/runs", json=asked).json()["id"]
        far = {"HOLDFAST_TOKEN": token, "HOLDFAST": f"{sys.executable} -m holdfast"}
        with working(there, "--server", url, *ALLOW, "--name", "far", **far) as process:
            left = _given_back(client, run_id, "forbidden")
            assert (left["state"], left["failures"], left["lost"]) == ("ready", 0, 0)
            assert "--allow touch" in client.get(f"/tasks/{left['id']}/logs").json()["text"]
            assert [each["name"] for each in client.get("/workers").json()["items"]] == ["far"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        assert client.get("/workers").json()["items"] == []
        told = (there / "worker-said").read_text()
        assert "--allow absent-tool: there is no such command here" in told
        assert "--allow-cwd away: there is no such folder here" in told
        assert ("allows nothing" in told, "--allow sh: there is no" in told) == (False, False)
        assert not (there / "x").exists()
        with working(there, "--server", url, "--allow-any", **far):
            run = ended(client, run_id)
        assert run["status"] == "completed", run
        assert (there / "x").exists()
        tasks = {(each["step"], each.get("item"), each["kind"]): each for each in run["tasks"]}
        said = [tasks["say", n, "work"]["output"] for n in range(2)]
        assert said == [{"said": "x1"}, {"said": "x2"}]
        logs = [_log(client, tasks[step, None, "work"]) for step in ("list", "guarded")]
        assert f"on it, in {there}/inner\n" in logs[0]
        assert "is running" in logs[1]
        assert "[secret HOLDFAST_TOKEN]" in logs[1]
        heard = (there / "worker-said").read_text()
        assert token not in heard + "".join(logs)
        assert "HTTP Request" not in heard


WORKSPACE = """
name: work
input: {repo: string}
workspace: {git: "{{ input.repo }}", setup: [sh, -c, echo ready]}
steps:
  - {id: one, run: [sh, -c, 'echo two > a.txt; echo "{\\"made\\": true}"']}
  - {id: look, run: [sh, -c, 'cat a.txt'], workspace: read}
  - {id: merge, merge: main}
"""


def test_a_worker_elsewhere_works_in_the_repositories_that_it_allows(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    holdfast(here, "init", "--bare")
    for path in (there / "repository", tmp_path / "private"):
        path.mkdir(parents=True)
        git(path, "init", "--quiet", "--initial-branch=main")
        write(path, {"a.txt": "one\n"})
        git(path, "add", "a.txt")
        author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        git(path, *author, "commit", "--quiet", "-m", "Begin")
    with serving(here, "serve") as (_, client):
        url = str(client.base_url).removesuffix("/api/v1/")
        token = client.post("/tokens", json={"name": "there", "role": "worker"}).json()["token"]
        assert client.post("/workflows", content=WORKSPACE, headers=YAML).status_code == 201
        allowed = ("--allow", "sh", "--allow-cwd", "repository")
        far = {"HOLDFAST_TOKEN": token}
        with working(there, "--server", url, *allowed, "--name", "far", **far):
            asked = {"workflow": "work", "input": {"repo": str(there / "repository")}}
            run = ended(client, client.post("/runs", json=asked).json()["id"])
            assert run["status"] == "completed", run
            asked = {"workflow": "work", "input": {"repo": str(tmp_path / "private")}}
            refused = _given_back(client, client.post("/runs", json=asked).json()["id"], "one")
            told = client.get(f"/tasks/{refused['id']}/logs").json()["text"]
            assert f"--allow-cwd {tmp_path}/private" in told
    assert git(there / "repository", "show", "main:a.txt") == "two"
    assert git(tmp_path / "private", "log", "--all", "--format=%s") == "Begin"


def _given_back(client: httpx.Client, run_id: str, step: str) -> dict[str, Any]:
    """The task of a step, once a worker has had it and let it go."""
    found: dict[str, Any] = {}

    def given_back() -> bool:
        tasks = client.get(f"/runs/{run_id}").json()["tasks"]
        found.update(next(each for each in tasks if each.get("step") == step))
        return bool(found["attempt"] and found["status"] != "running")

    assert eventually(given_back), found
    return found


def _log(client: httpx.Client, task: dict[str, Any]) -> str:
    return str(client.get(f"/tasks/{task['id']}/logs").json()["text"])


def test_a_worker_without_a_token_says_where_to_get_one(tmp_path: Path) -> None:
    said = holdfast(tmp_path, "worker", "--server", "http://127.0.0.1:1")
    assert said.returncode == 2
    assert "holdfast token create" in said.stderr


def test_the_token_of_a_folder_is_shown_to_no_server_elsewhere(tmp_path: Path) -> None:
    assert holdfast(tmp_path, "token").returncode == 0
    said = holdfast(tmp_path, "worker", "--server", "http://elsewhere.invalid", "--allow-any")
    assert said.returncode == 2
    assert "set HOLDFAST_TOKEN" in said.stderr


def test_a_link_in_the_place_of_its_own_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir(mode=0o700)
    (tmp_path / "victim").mkdir()
    (tmp_path / ".holdfast" / "remote").symlink_to(tmp_path / "victim")
    said = holdfast(
        tmp_path,
        *("worker", "--server", "http://127.0.0.1:1", "--allow", "sh"),
        HOLDFAST_TOKEN="hf_token-of-far",
        HOLDFAST_HOME=str(tmp_path / ".holdfast"),
    )
    assert said.returncode == 2
    assert "is a link" in said.stderr
    assert list((tmp_path / "victim").iterdir()) == []
