"""A worker elsewhere takes what it asked for, once, and is steered by words that it knows."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast.worker.remote import poller
from holdfast.worker.remote.remote_store import RemoteStore
from tests.acceptance.worker.false_answers import Scene, assignment
from tests.contract.http_service import Heard, Reply, Service, standing
from tests.contract.server.remote.test_remote_worker import Full
from tests.race.racers import eventually

AWAY = Path("/nowhere")
SCENE = Scene(
    allowed="greet",
    canary=AWAY,
    hook=AWAY,
    evil_path=AWAY,
    victim=AWAY,
    server="http://server",
    elsewhere="http://elsewhere",
)
FIRST, SECOND = (
    assignment(random.Random(seed), SCENE)  # noqa: S311 - the same each time
    for seed in (1, 2)
)


class Giver(Service):
    """Gives these answers to one question for work after another, and nothing afterwards."""

    def __init__(self, *given: list[dict[str, Any]], told: object = None) -> None:
        super().__init__()
        self.given = list(given)
        self._told = told

    def answer(self, heard: Heard) -> Reply:
        self.heard.append(heard)
        found = self.given.pop(0) if heard.path.endswith("/claims") and self.given else []
        said = {"role": "worker", "assignments": found, "leases": [], "told": self._told}
        return Reply(body=json.dumps(said).encode())


@pytest.fixture(autouse=True)
def _ask_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "PAUSE", 0.01)


def got(giver: Giver, places: int) -> list[str]:
    """The ids of the tasks that a worker takes of all that is given."""
    with standing(giver):
        office = RemoteStore(giver.url, "hf_token-of-far")
        far = Full(office, places)
        asked = len(giver.given) + 3
        assert eventually(lambda: far.full.is_set() or len(giver.heard) > asked)
        far.leave()
        office.close()
    return [each.task_id for each in far.got]


def test_more_tasks_than_were_asked_for_are_none() -> None:
    assert got(Giver([FIRST, SECOND], [SECOND]), 1) == [SECOND["task"]["id"]]


def test_the_same_attempt_is_not_taken_twice() -> None:
    first, second = FIRST["task"]["id"], SECOND["task"]["id"]
    assert got(Giver([FIRST, FIRST], [FIRST], [FIRST], [SECOND]), 2) == [first, second]


@pytest.mark.parametrize("told", ["go", 1, ["drain"], {"drain": True}, "drain "])
def test_a_word_that_steers_no_worker_is_not_heard(told: object) -> None:
    with standing(Giver(told=told)) as giver:
        office = RemoteStore(giver.url, "hf_token-of-far")
        assert office.workers.announce("far", 0) == {"told": None}
        office.close()
