"""The examples, each run as its header says, by real processes on real databases."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import Holdfast, NewTask
from tests.acceptance.terminals import PATIENCE, ROOT, on_path
from tests.race.racers import eventually

ORDERING = """
import asyncio, httpx, json
from orders import app, hf

async def ask():
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(
        transport=transport, base_url="http://orders"
    ) as client:
        taken = await client.post("/orders", json={"product": "tea", "amount": 4})
        refused = await client.post("/orders", json={"product": "mug", "amount": 7})
        looked = await client.get(f"/orders/{taken.json()['task']}")
        print(json.dumps([[each.status_code, each.json()] for each in (taken, refused, looked)]))
        print(len(hf.tasks.list()))

asyncio.run(ask())
"""


class Desk:
    """A folder with the examples, where `holdfast` can be typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "examples"
        shutil.copytree(ROOT / "examples", self.folder, ignore=shutil.ignore_patterns("*.db*"))
        self.environment = on_path(folder)

    def typed(self, *command: str, exits: int = 0) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ran.returncode == exits, ran.stdout + ran.stderr
        return ran

    @contextmanager
    def started(self, *command: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_pipeline_fans_out_tries_one_day_again_and_comes_together(desk: Desk) -> None:
    ran = desk.typed("holdfast", "run", "pipeline:week", "-i", "days=7", "--wait", "--json")
    run = json.loads(ran.stdout)
    assert run["output"] == "7 days, 154 pounds in all, day 7 the best with 31"
    extracted = [task for task in run["tasks"] if task.get("step") == "extract"]
    assert sorted(task["attempt"] for task in extracted) == [1, 1, 1, 1, 1, 1, 2]


def test_a_letter_is_sent_when_a_person_has_said_yes(desk: Desk) -> None:
    with desk.started("holdfast", "worker") as worker:
        asked = desk.typed(
            "holdfast", "run", "approval.yaml", "-i", "to=Ada", "--wait", exits=4
        ).stdout
        assert "asks: Send “News for Ada”, 2 pages, to Ada?\n" in asked
        desk.typed("holdfast", "approve", "@last", "--note", "looks good")
        desk.typed("holdfast", "show", "--follow")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
    said = desk.typed("holdfast", "logs", "@last:send").stdout
    assert said.endswith("sent to Ada: News for Ada\n")


def test_a_durable_function_waits_without_a_worker_and_does_nothing_twice(desk: Desk) -> None:
    said = desk.typed(sys.executable, "durable.py").stdout.splitlines()
    assert any("it waits for the signal 'confirmed'" in line for line in said)
    assert said[-2] == "ada has account-of-ada, confirmed by mail"
    assert said[-1] == "began: 3, account opened: 1, gift sent: 1"


def test_a_shell_script_that_slept_past_its_lease_is_refused_and_goes_on(desk: Desk) -> None:
    store = desk.folder / "counts.db"
    go = desk.folder / "go"
    desk.environment |= {"HOLDFAST_DB": str(store), "LEASE": "6", "WAIT_FOR": str(go)}
    with Holdfast(f"sqlite:///{store}") as hf:
        first, second = (add_count(hf, text) for text in ("to be or not to be", "one two"))
        with desk.started("sh", "worker.sh") as script:
            assert eventually(lambda: hf.tasks.get(first).lease is not None)
            os.killpg(script.pid, signal.SIGSTOP)
            assert eventually(lambda: hf.tasks.get(first).lost == 1)
            (taken,) = hf.work.claim_by_id(first, "other", agents=["counter"])
            assert hf.work.complete(first, taken.token, {"words": 99}).ok
            go.touch()
            os.killpg(script.pid, signal.SIGCONT)
            said, complained = script.communicate(timeout=PATIENCE)
        assert "stale_token" in complained
        assert said.endswith("nothing left to do\n")
        assert [hf.tasks.get(each).output for each in (first, second)] == [
            {"words": 99},
            {"words": 2},
        ]
        assert [each.outcome for each in hf.tasks.attempts(first)] == ["lost", "completed"]
        assert hf.doctor().ok


def add_count(hf: Holdfast, text: str) -> str:
    wanted = NewTask(title="Count", agent="counter", payload={"text": text})
    return hf.tasks.create(wanted).id


def test_an_order_and_its_task_are_both_there_or_neither_is(desk: Desk, store_url: str) -> None:
    desk.environment["HOLDFAST_DB"] = store_url
    answers, tasks = desk.typed(sys.executable, "-c", ORDERING).stdout.splitlines()
    taken, refused, looked = json.loads(answers)
    assert (taken[0], looked) == (201, [200, {"status": "queued", "output": None}])
    assert refused == [409, {"detail": "only 6 left"}]
    assert tasks == "1"
    with Holdfast(store_url) as hf, desk.started("holdfast", "worker", "orders:hf") as worker:
        shipped = hf.handle(taken[1]["task"]).result(timeout=PATIENCE)
        assert shipped == f"4 tea shipped for {taken[1]['order']}"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
        assert hf.doctor().ok
