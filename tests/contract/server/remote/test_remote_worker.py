"""A worker elsewhere as its server sees it, and what it hears there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from holdfast import AgentCommand, AgentUse
from holdfast.engine.claims.picker import Claimed
from holdfast.model.status import Hold
from holdfast.model.task import Assignment, Renewal
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.remote.allowlist import Allowlist, RemoteExecutors
from holdfast.worker.remote.remote_store import RemoteStore
from tests.contract.server.local_server import Served, served
from tests.programs_of_agents import AgentPrograms, replay
from tests.race.racers import eventually


class Full:
    """Has room for so many tasks, and asks for no more once it has those."""

    def __init__(self, office: RemoteStore, places: int = 1) -> None:
        self.office = office
        self._places = places
        self.got: list[Assignment] = []
        self.full = Event()
        office.workers.register("far", process="this one")
        self._standing_claim = office.work.standing_claim(
            "far",
            agents=["default"],
            tags=[],
            room=lambda: places - len(self.got),
            passing=tuple,
            deliver=self._deliver,
        )
        self._leave = office.work.add_standing_claim(self._standing_claim)

    def _deliver(self, claimed: Claimed) -> None:
        self.got += claimed.read()
        if len(self.got) == self._places:
            self.full.set()

    def told(self) -> str | None:
        answer = self.office.workers.announce("far", 0)
        assert answer is not None
        return answer["told"] if answer["told"] is None else str(answer["told"])

    def leave(self) -> None:
        self._leave()
        self.office.work.pull(self._standing_claim)


@contextmanager
def full(server: Served, places: int = 1) -> Iterator[Full]:
    office = RemoteStore(server.url, server.tokens["worker"])
    made = Full(office, places)
    try:
        assert made.full.wait(30)
        yield made
    finally:
        made.leave()
        office.close()


def test_a_full_worker_tells_of_its_usage_stays_known_and_hears(
    sqlite_url: str, tmp_path: Path
) -> None:
    with served(sqlite_url, tmp_path / "home", renewal=0.05, lease=1) as server:
        bare, task = server.add(), server.add(step="pack")
        with full(server) as far:
            (got,) = far.got
            assert got.usd_per_attempt is None
            renewal = Renewal(task_id=got.task_id, token=got.token, progress=1, usage={"usd": 2})
            (kept,) = far.office.work.renew_each([renewal])
            assert kept.result().ok
            found = server.hf.tasks.get(task["id"])
            assert (found.progress, found.usage) == (1, {"usd": 2})
            assert eventually(lambda: [each.name for each in server.hf.workers.list()] == ["far"])
            assert server.hf.workers.drain("far").ok
            assert eventually(lambda: far.told() == "drain")
        assert [each["task"]["id"] for each in server.claim("plain", max=9)] == [bare["id"]]


def test_a_worker_that_leaves_is_listed_no_more(quick_server: Served, tmp_path: Path) -> None:
    server = quick_server
    office = RemoteStore(server.url, server.tokens["worker"])
    executors = RemoteExecutors(office, Allowlist(), StateDirectory(root=tmp_path / "far"))
    worker = StoreWorker(office, executors, WorkerOptions(name="far", agents=["default"])).start()

    def listed() -> list[str]:
        return [each["name"] for each in server("viewer").get("/workers").json()["items"]]

    assert eventually(lambda: listed() == ["far"])
    worker.stop()
    office.close()
    assert listed() == []


def test_a_worker_elsewhere_runs_its_own_command_for_an_agent_if_it_allows_it(
    quick_server: Served, tmp_path: Path
) -> None:
    server = quick_server
    commands = {
        "dev": AgentCommand(command=("cat",)),
        "critic": AgentCommand(command=("false",)),
    }
    office = RemoteStore(server.url, server.tokens["worker"])
    state = StateDirectory(root=tmp_path / "far")
    executors = RemoteExecutors(office, Allowlist(names=["cat"]), state, commands)
    options = WorkerOptions(name="far", agents=["*"])
    with StoreWorker(office, executors, options, executors.clean):
        refused = server.add(agent="critic")["id"]
        left = server.add(agent="planner")["id"]
        task = server.add(agent="dev", prompt='{"built": "it"}')["id"]
        tasks = server.hf.tasks
        assert eventually(lambda: tasks.get(task).status == "done"), server.hf.why(task)
        assert tasks.get(task).output == {"built": "it"}
        assert eventually(lambda: tasks.get(refused).attempt >= 1)
        (far,) = server.hf.workers.list()
        assert (far.agents, far.equipped) == (("*",), ("dev", "critic"))
    assert (tasks.get(left).attempt, tasks.get(refused).failures) == (0, 0)
    office.close()


def test_a_worker_elsewhere_runs_the_presets_that_it_lends(
    quick_server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = quick_server
    install = AgentPrograms(tmp_path / "programs", monkeypatch)
    install("claude", replay("claude-ok"))
    install("copilot", replay("copilot-429", code=1))
    read_only = AgentUse(preset="codex", access="read")
    commands = {
        "dev": AgentCommand(use=AgentUse(preset="claude")),
        "slow": AgentCommand(use=AgentUse(preset="copilot")),
        "critic": AgentCommand(use=read_only),
    }
    office = RemoteStore(server.url, server.tokens["worker"])
    state = StateDirectory(root=tmp_path / "far")
    lent = Allowlist(names=["claude=edit", "copilot=edit"])
    executors = RemoteExecutors(office, lent, state, commands)
    options = WorkerOptions(name="far", agents=["*"])
    with StoreWorker(office, executors, options, executors.clean):
        refused = server.add(agent="critic")["id"]
        limited = server.add(agent="slow", prompt="Create it")["id"]
        task = server.add(agent="dev", prompt="Create it")["id"]
        tasks = server.hf.tasks
        assert eventually(lambda: tasks.get(task).status == "done"), server.hf.why(task)
        assert tasks.get(task).output == {"text": "Done: wrote hello.txt."}
        assert tasks.attempts(task)[0].usage["usd"] == 0.010708
        assert eventually(lambda: Hold.LIMIT in tasks.get(limited).holds)
        assert eventually(lambda: tasks.get(refused).attempt >= 1)
    assert (tasks.get(limited).failures, tasks.get(refused).failures) == (0, 0)
    office.close()


def test_leaving_is_for_workers_and_takes_nobody_else_along(quick_server: Served) -> None:
    server = quick_server
    assert server.claim("plain") == []
    leave = {"worker": "plain"}
    assert server("operator").post("/claims/leave", json=leave).status_code == 403
    other = server("worker").post("/claims/leave", json={**leave, "process": "another"})
    assert other.json() == {"ok": True, "repeated": True}
    assert [each.name for each in server.hf.workers.list()] == ["plain"]
    assert server("worker").post("/claims/leave", json=leave).json() == {
        "ok": True,
        "repeated": False,
    }
    assert server.hf.workers.list() == []


def test_a_worker_that_was_told_to_go_is_given_nothing_more(
    sqlite_url: str, tmp_path: Path
) -> None:
    with served(sqlite_url, tmp_path / "home", renewal=0.05, lease=1) as server:
        assert server.claim("plain") == []
        assert eventually(lambda: [each.name for each in server.hf.workers.list()] == ["plain"])
        assert server.hf.workers.drain("plain").ok
        asked = {"worker": "plain"}
        assert eventually(lambda: "told" in server("worker").post("/claims", json=asked).json())
        server.add()
        assert server.claim("plain", wait_seconds=20) == []
        assert len(server.claim("another")) == 1


def test_a_worker_takes_nothing_with_a_token_that_its_commands_must_not_have(
    quick_server: Served,
) -> None:
    server = quick_server
    task = server.add(step="pack")
    office = RemoteStore(server.url, server.tokens["admin"])
    far = Full(office)
    assert eventually(lambda: office.refused is not None or far.full.is_set())
    far.leave()
    office.close()
    said = str(office.refused)
    assert "has the role admin" in said
    assert "holdfast token create NAME --role worker" in said
    assert server.hf.tasks.get(task["id"]).attempt == 0
