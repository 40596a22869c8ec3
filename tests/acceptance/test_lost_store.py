"""A store that goes away under real processes: each refuses, saves what it held, and ends."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.acceptance.server.test_server import serving
from tests.acceptance.terminals import PATIENCE, PROGRAM, environment, holdfast
from tests.race.racers import eventually

WRITERS = 4
BEFORE = 40


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S607


def clean(folder: Path) -> None:
    git(folder, "clean", "-fdx")


def replace(folder: Path) -> None:
    store = folder / ".holdfast" / "holdfast.db"
    other = folder.parent / "other.db"
    assert holdfast(folder, "task", "add", "elsewhere", "--db", str(other)).returncode == 0
    for end in ("-wal", "-shm"):
        store.with_name(f"{store.name}{end}").unlink()
    other.replace(store)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with something in it, and a store beside that."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init")
    (folder / "kept").write_text("kept")
    git(folder, "add", "kept")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "Keep it")
    said = holdfast(folder, "init", "--bare")
    assert "git clean -fdx" in said.stderr
    return folder


class Writers:
    """Clients that add one task after another until the server takes no more."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.acknowledged: list[str] = []
        self.refused: list[tuple[int, str]] = []
        self._threads = [threading.Thread(target=self._write) for _ in range(WRITERS)]
        for each in self._threads:
            each.start()

    def _write(self) -> None:
        while True:
            try:
                told = self._client.post("/tasks", json={"title": "one"})
            except httpx.TransportError:
                return
            if told.status_code != 201:
                self.refused.append((told.status_code, told.json()["code"]))
                return
            self.acknowledged.append(told.json()["id"])

    def join(self) -> None:
        for each in self._threads:
            each.join(PATIENCE)


@contextmanager
def beside(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process beside the server, on the same store."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def typed_commands(said: str) -> list[str]:
    return re.findall(r"`(holdfast db restore [^`]*)`", said)


@pytest.mark.parametrize("lose", [replace, clean])
def test_nothing_acknowledged_is_missing_in_what_a_lost_store_leaves(
    project: Path, lose: Callable[[Path], None]
) -> None:
    # Outside of the project: what was said must outlive it.
    said = project.parent / "said"
    said.touch()
    (project / "said").symlink_to(said)
    with (
        serving(project, "serve") as (server, client),
        beside(project, "worker", "--agent", "nobody") as worker,
        beside(project, "events", "--follow") as reader,
    ):
        assert eventually(lambda: bool(client.get("/workers").json()["items"]))
        assert reader.stdout is not None
        writers = Writers(client)
        assert eventually(lambda: len(writers.acknowledged) > BEFORE)
        assert reader.stdout.readline()
        lose(project)
        ended = [each.wait(PATIENCE) for each in (server, worker)]
        writers.join()
        _, told_reader = reader.communicate(timeout=PATIENCE)
        _, told_worker = worker.communicate(timeout=PATIENCE)
    assert ended == [5, 5]
    assert reader.returncode == 5
    # One that is about to end may say that instead.
    assert set(writers.refused) <= {(503, "store_gone"), (503, "shutting_down")}
    for told in (said.read_text(), told_worker, told_reader):
        assert "Traceback" not in told
        assert typed_commands(told)
    command = shlex.split(typed_commands(said.read_text())[-1])
    brought = holdfast(project.parent, *command[1:])
    assert brought.returncode == 0, brought.stderr
    listed = holdfast(project, "tasks", "--limit", "1000", "--json")
    there = {each["id"] for each in json.loads(listed.stdout)["items"]}
    missing = set(writers.acknowledged) - there
    assert not missing
    assert (project / ".holdfast").stat().st_mode & 0o077 == 0
