"""The name of a worker that was given none, and of one whose process is dead; a full disk."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import Engine
from holdfast.service.queries.explanations import explain
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.steps.process_identity import ProcessIdentity
from tests.contract.task_states import create
from tests.contract.worker.function_workers import started, worker_of
from tests.race.racers import eventually

FULL = 2**53
FIRST, SECOND = WorkerOptions().number_name(1), WorkerOptions().number_name(2)


def gone() -> ProcessIdentity:
    """A process of this machine that has ended."""
    with subprocess.Popen([sys.executable, "--version"], stdout=subprocess.DEVNULL) as child:
        pass
    return replace(ProcessIdentity.own(), process=child.pid, started="1")


def names(hf: Holdfast) -> list[str]:
    return sorted(each.name for each in hf.workers.list())


def test_a_worker_without_a_name_takes_the_first_that_is_free(store_url: str) -> None:
    with Holdfast(store_url) as hf:
        with hf.worker(), hf.worker(service="shop"):
            with hf.worker():
                assert names(hf) == sorted(
                    [WorkerOptions(service="shop").number_name(1), FIRST, SECOND]
                )
            assert eventually(lambda: SECOND not in names(hf))
            with hf.worker():
                assert SECOND in names(hf)
        assert FIRST.startswith("worker-")
        assert socket.gethostname().partition(".")[0] in FIRST


def test_a_worker_takes_the_name_of_a_worker_whose_process_is_dead_at_once(store_url: str) -> None:
    with Holdfast(store_url) as hf:
        for name in (FIRST, "given"):
            hf.workers.register(name, agents=["default"], process=str(gone()))
        hf.workers.register("elsewhere", agents=["default"], process=str(gone()))
        with hf.worker(), hf.worker(name="given"):
            assert names(hf) == sorted([FIRST, "given"])
            assert {ProcessIdentity.read(each.process) for each in hf.workers.list()} == {
                ProcessIdentity.own()
            }


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "another"},
        {"boot": "another"},
        {"processes": "another"},
        {"process": ProcessIdentity.own().process, "started": ProcessIdentity.own().started},
    ],
)
def test_a_worker_that_may_still_live_keeps_its_name(
    sqlite_url: str, changed: dict[str, Any]
) -> None:
    with Holdfast(sqlite_url) as hf:
        hf.workers.register(FIRST, agents=["default"], process=str(replace(gone(), **changed)))
        with hf.worker():
            assert names(hf) == [FIRST, SECOND]


def test_a_worker_whose_process_nobody_can_read_keeps_its_name(sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:
        for number, process in enumerate((None, "{}", "[", '{"of": "a newer release"}'), 1):
            hf.workers.register(
                WorkerOptions().number_name(number), agents=["default"], process=process
            )
        with hf.worker():
            assert WorkerOptions().number_name(5) in names(hf)


def paused(engine: Engine) -> list[str]:
    return [each.pausing for each in engine.workers.list() if each.pausing is not None]


def test_with_too_little_disk_nothing_is_claimed_and_everybody_can_see_it(store_url: str) -> None:
    with started(store_url) as engine:
        with worker_of(engine, lambda ctx: ctx.attempt, name="full", least_disk=FULL):
            task_id = create(engine, step="pack")
            assert eventually(lambda: paused(engine) != [])
            (why,) = paused(engine)
            assert why.endswith("of disk are free, and it claims nothing below 9.01e+03 TB")
            (clause,) = [
                each for each in explain(engine, task_id)["clauses"] if each["name"] == "worker"
            ]
            assert not clause["ok"]
            assert f'0 of 1 live workers serve "default"; full: {why}' in clause["detail"]
            assert engine.tasks.run_now(task_id).ok
            assert engine.tasks.get(task_id).attempt == 0
            with worker_of(engine, lambda ctx: ctx.attempt, name="roomy", least_disk=0):
                assert eventually(lambda: engine.tasks.get(task_id).terminal)
        (attempt,) = engine.tasks.attempts(task_id)
        assert attempt.owner == "roomy"
