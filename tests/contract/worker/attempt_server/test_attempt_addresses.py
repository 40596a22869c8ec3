"""A command reaches its store through its worker, which knows what must not get there."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.model.task import Task
from holdfast.model.workflow.declarations import StepWork
from holdfast.worker.remote import poller
from tests.contract.planted_secret import CALLS, ENV, LOOKED_FOR, REFUSED, SECRET, SHOWN, found
from tests.contract.server.local_server import served
from tests.contract.server.remote.test_gateways import working
from tests.contract.worker.file_steps import ONCE, enqueue, file_steps
from tests.race.racers import eventually


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A store, a worker of commands for it, and the folder of all that both write."""

    hf: Holdfast
    folder: Path
    # Where the log of an attempt is for people to read.
    logs: Path

    def ended(self, command: tuple[str, ...], **env: str) -> Task:
        """The task of a command, once it has ended or asked."""
        work = StepWork(command=command, env={**ENV, **env})
        task_id = enqueue(self.hf, work, retry=ONCE)
        assert eventually(lambda: self._over(self.hf.tasks.get(task_id)))
        return self.hf.tasks.get(task_id)

    def _over(self, task: Task) -> bool:
        processes = [*self.folder.rglob("processes/*")]
        return (task.terminal or task.question is not None) and not processes

    def log(self, task: Task) -> str:
        return (self.logs / task.id / "1.log").read_text()


@contextmanager
def local(url: str, folder: Path) -> Iterator[Scene]:
    with file_steps(url, folder, {"PLANTED": SECRET}, renewal=0.05) as steps:
        yield Scene(hf=steps.hf, folder=folder, logs=folder / "state" / "logs")


@contextmanager
def elsewhere(url: str, folder: Path) -> Iterator[Scene]:
    with served(url, folder / "home", renewal=0.05) as server:
        token = server.tokens["worker"]
        with working(server.url, token, folder / "far"):
            (place,) = folder.glob("*.db")
            yield Scene(hf=server.hf, folder=folder, logs=Path(f"{place}.state") / "logs")


@pytest.fixture(autouse=True)
def _ask_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "LONGEST_POLL", 0.2)


@pytest.fixture(params=["sqlite", "postgresql", "elsewhere"])
def scene(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    monkeypatch.setenv("PLANTED", SECRET)
    kind = "postgres" if request.param == "postgresql" else "sqlite"
    url: str = request.getfixturevalue(f"{kind}_store_url")
    with (elsewhere if request.param == "elsewhere" else local)(url, tmp_path) as made:
        yield made


def scan(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    assert found(scene.hf.settings.url, scene.folder) == []
    assert not any(each in caplog.text for each in LOOKED_FOR)


def test_no_call_of_an_address_writes_a_secret_down(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for report in ("complete", "fail", "ask"):
        answers = scene.folder / f"answers-{report}"
        task = scene.ended(CALLS, REPORT=report, ANSWERS=str(answers), SPAWNS="1")
        _look_at(json.loads(answers.read_text()))
        assert {"complete": task.output, "fail": task.error, "ask": task.question}[report] == SHOWN
        lines = scene.log(task).splitlines()
        assert lines[:2] == ["whole [secret PLANTED]", "half [secret PLANTED]"]
    scan(scene, caplog)


def _look_at(told: dict[str, tuple[int, dict[str, Any]]]) -> None:
    """What was answered to each call before the report."""
    assert {name: status for name, (status, _) in told.items()} == {
        name: 422 if name in REFUSED else 201 if name == "other child" else 200 for name in told
    }, told
    for name in REFUSED:
        assert "holds the secret PLANTED" in told[name][1]["detail"]
    assert told["other effect"][1]["value"] == {"n": [1]}
