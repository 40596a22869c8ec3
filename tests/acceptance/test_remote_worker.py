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

from tests.acceptance.terminals import PATIENCE, PROGRAM, environment, holdfast
from tests.acceptance.test_serving import serving

FLOW = """
name: flow
input: {word: string}
steps:
  - id: list
    run: [sh, -c, 'echo on it; echo "{\\"items\\": [1, 2]}"']
    outputs: {items: [integer]}
  - id: each
    for_each: "{{ steps.list.items }}"
    steps:
      - {id: say, run: [sh, -c, 'cat "$HOLDFAST_INPUT" >&2; echo "{\\"said\\": \\"$W\\"}"'], env: {W: "{{ input.word }}{{ item }}"}}
  - id: forbidden
    run: [touch, "{{ input.word }}"]
"""  # noqa: E501 - a line of YAML
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


def _ended(client: httpx.Client, run_id: str) -> dict[str, Any]:
    while (run := client.get(f"/runs/{run_id}").json())["status"] == "running":
        pass
    return dict(run)


def test_a_worker_elsewhere_runs_what_it_allows_and_nothing_else(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    holdfast(here, "init", "--bare")
    with serving(here, "serve") as (_, client):
        url = str(client.base_url).removesuffix("/api/v1/")
        token = client.post("/tokens", json={"name": "there", "role": "worker"}).json()["token"]
        assert client.post("/workflows", content=FLOW, headers=YAML).status_code == 201
        asked = {"workflow": "flow", "input": {"word": "x"}}
        run_id = client.post("/runs", json=asked).json()["id"]
        with working(
            there, "--server", url, "--allow", "sh", "--name", "remote", HOLDFAST_TOKEN=token
        ) as process:
            run = _ended(client, run_id)
            assert [each["name"] for each in client.get("/workers").json()["items"]] == ["remote"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        tasks = {(each["step"], each.get("item"), each["kind"]): each for each in run["tasks"]}
        said = [tasks["say", n, "work"]["output"] for n in range(2)]
        assert said == [{"said": "x1"}, {"said": "x2"}]
        refused = tasks["forbidden", None, "work"]
        assert (run["status"], refused["attempt"]) == ("failed", 1)
        assert "--allow touch" in refused["error"]["message"]
        assert not (there / "x").exists()
        first = tasks["list", None, "work"]["id"]
        assert "on it" in client.get(f"/tasks/{first}/logs").json()["text"]


def test_without_a_token_it_says_where_to_get_one(tmp_path: Path) -> None:
    said = holdfast(tmp_path, "worker", "--server", "http://127.0.0.1:1")
    assert said.returncode == 2
    assert "holdfast token create" in said.stderr
