"""A worker's process and the signals it is sent: one lets it finish, two end it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.model.workflow.declarations import StepWork
from tests.acceptance.worker.watched_attempt import alive
from tests.contract.worker.file_steps import enqueue
from tests.programs import running
from tests.race.racers import eventually

PATIENCE = 30
PROGRAM = """
import asyncio, logging, sys, threading
from holdfast import Holdfast
from holdfast.model.workflow.declarations import StepWork
from tests.acceptance.worker.watched_attempt import alive

logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
hf = Holdfast(sys.argv[1], lease=2, renewal=0.5)

@hf.task
def job() -> str:
    print("began", flush=True)
    return sys.stdin.readline().strip()

@hf.task
def stuck() -> None:
    print("began", flush=True)
    threading.Event().wait()

@hf.task
async def stuck_elsewhere() -> None:
    print("began", flush=True)
    await asyncio.to_thread(threading.Event().wait)

@hf.task
async def patient() -> None:
    print("began", flush=True)
    await asyncio.Event().wait()

options = {"grace": sys.argv[2]} if len(sys.argv) > 2 else {}
with hf:
    worker = hf.worker(name="w", concurrency=2, **options)
    if "block" in sys.argv:
        with worker:
            threading.Event().wait()
    worker.run()
print("left", flush=True)
"""

SIGNALS = pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    with Holdfast(store_url) as opened:
        yield opened
        diagnosis = opened.doctor()
        assert diagnosis.ok, str(diagnosis)


def working(url: str, folder: Path, *more: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return running(PROGRAM, url, folder, *more)


def said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().removesuffix("\n")


def made(hf: Holdfast, name: str) -> str:
    def nothing() -> None: ...

    return hf.task(name=name)(nothing).enqueue().id


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_a_worker_finish_what_it_runs(
    hf: Holdfast, store_url: str, tmp_path: Path, sent: signal.Signals
) -> None:
    task_id = made(hf, "job")
    with working(store_url, tmp_path) as child:
        assert said(child) == (
            f"INFO worker w (process {child.pid}, agents default, up to 2 steps at once) "
            "has started"
        )
        assert said(child) == "began"
        child.send_signal(sent)
        told = said(child)
        assert told.startswith(f"WARNING interrupted; waiting for attempt 1 of job ({task_id});")
        assert "a second Ctrl-C or SIGTERM stops now" in told
        assert child.stdin is not None
        child.stdin.write("there\n")
        child.stdin.flush()
        assert said(child) == "left"
        assert child.wait(PATIENCE) == 0
    task = hf.tasks.get(task_id)
    assert (task.status, task.output) == ("done", "there")
    assert [each.outcome for each in hf.tasks.attempts(task_id)] == ["completed"]


@SIGNALS
def test_a_worker_with_nothing_to_finish_leaves_at_the_first_signal(
    hf: Holdfast, store_url: str, tmp_path: Path, sent: signal.Signals
) -> None:
    assert hf.doctor().ok
    with working(store_url, tmp_path) as child:
        assert said(child).endswith("has started")
        child.send_signal(sent)
        assert said(child) == "WARNING interrupted; nothing is running"
        assert said(child) == "left"
        assert child.wait(PATIENCE) == 0


@SIGNALS
@pytest.mark.parametrize("name", ["stuck", "stuck_elsewhere"])
def test_a_second_signal_ends_a_worker_at_once_and_reports_nothing(
    hf: Holdfast, store_url: str, tmp_path: Path, sent: signal.Signals, name: str
) -> None:
    task_id = made(hf, name)
    with working(store_url, tmp_path) as child:
        assert said(child).endswith("has started")
        assert said(child) == "began"
        child.send_signal(sent)
        assert said(child).startswith("WARNING interrupted; waiting for attempt 1")
        child.send_signal(sent)
        assert child.wait(PATIENCE) == -sent
        assert child.stderr is not None
        assert child.stderr.read() == ""
        assert said(child) == ""
        assert hf.workers.list() == []
    assert hf.tasks.get(task_id).attempt == 1
    assert hf.tasks.get(task_id).status != "done"


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_ctrl_c_in_a_block_of_a_worker_says_what_is_waited_for_and_waits(
    hf: Holdfast, store_url: str, tmp_path: Path
) -> None:
    task_id = made(hf, "job")
    with working(store_url, tmp_path, "1h", "block") as child:
        assert said(child).endswith("has started")
        assert said(child) == "began"
        child.send_signal(signal.SIGINT)
        assert said(child) == (
            f"WARNING interrupted; waiting up to 1h for attempt 1 of job ({task_id}); after that, "
            "or at a second Ctrl-C or SIGTERM, it stops: commands are given back, and what else "
            "was running is tried again when its lease has run out"
        )
        assert child.stdin is not None
        child.stdin.write("there\n")
        child.stdin.flush()
        assert child.wait(PATIENCE) == -signal.SIGINT
    assert hf.tasks.get(task_id).output == "there"


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("block", [(), ("block",)])
def test_a_coroutine_is_given_back_when_the_grace_of_its_worker_is_over(
    hf: Holdfast, store_url: str, tmp_path: Path, block: tuple[str, ...]
) -> None:
    task_id = made(hf, "patient")
    with working(store_url, tmp_path, "0.1s", *block) as child:
        assert said(child).endswith("has started")
        assert said(child) == "began"
        child.send_signal(signal.SIGINT)
        assert said(child).startswith("WARNING interrupted; waiting up to 0.1s for attempt 1")
        name = f"attempt 1 of patient ({task_id})"
        assert said(child) == f"WARNING 0.1s are over; what still runs is stopped: {name}"
        assert said(child) == ("" if block else "left")
        assert child.wait(PATIENCE) == (-signal.SIGINT if block else 0)
    assert [each.outcome for each in hf.tasks.attempts(task_id)] == ["released"]
    assert hf.tasks.get(task_id).status == "queued"


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("block", [(), ("block",)])
def test_a_function_that_cannot_be_stopped_ends_with_the_process_after_the_grace(
    hf: Holdfast, store_url: str, tmp_path: Path, block: tuple[str, ...]
) -> None:
    task_id = made(hf, "stuck")
    with working(store_url, tmp_path, "0.1s", *block) as child:
        assert said(child).endswith("has started")
        assert said(child) == "began"
        child.send_signal(signal.SIGINT)
        assert said(child).startswith("WARNING interrupted; waiting up to 0.1s for attempt 1")
        assert said(child).startswith("WARNING 0.1s are over")
        assert said(child).startswith(f"WARNING attempt 1 of stuck ({task_id}) cannot be stopped")
        assert child.wait(PATIENCE) == -signal.SIGINT
        assert hf.workers.list() == []
    assert [each.outcome for each in hf.tasks.attempts(task_id)][:1] != ["completed"]


COMMAND = """
import logging, sys
from pathlib import Path
from tests.contract.worker.file_steps import file_steps

logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(levelname)s %(message)s")
with file_steps(sys.argv[1], Path(__file__).parent, started=False) as steps:
    steps.worker.run()
"""


@SIGNALS
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_second_signal_stops_a_command_and_gives_it_back(
    hf: Holdfast, store_url: str, tmp_path: Path, sent: signal.Signals
) -> None:
    pid = tmp_path / "pid"
    text = 'echo $$ > "$0.new"; mv "$0.new" "$0"; exec sleep 1000'
    task_id = enqueue(hf, StepWork(command=("sh", "-c", text, str(pid))))
    with running(COMMAND, store_url, tmp_path) as child:
        assert eventually(pid.exists)
        child.send_signal(sent)
        assert said(child).startswith("WARNING interrupted; waiting for attempt 1 of step")
        child.send_signal(sent)
        assert child.wait(PATIENCE) == -sent
    assert alive([int(pid.read_text())]) == []
    assert [each.outcome for each in hf.tasks.attempts(task_id)] == ["released"]
    assert hf.tasks.get(task_id).state == "ready"


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_task_given_back_on_a_signal_to_a_whole_service_is_not_taken_again_by_its_worker(
    hf: Holdfast, store_url: str, tmp_path: Path
) -> None:
    # Its main thread looks too late for what it has heard: the claim itself has to know.
    late = (
        "from holdfast.worker.pool import worker\n"
        f"worker.SIGNAL_CHECK_EVERY = {PATIENCE}\n{COMMAND}"
    )
    pid = tmp_path / "pid"
    text = 'echo $PPID > "$0.new"; mv "$0.new" "$0"; exec sleep 1000'
    task_id = enqueue(hf, StepWork(command=("sh", "-c", text, str(pid))))
    with running(late, store_url, tmp_path) as child:
        assert eventually(pid.exists)
        child.send_signal(signal.SIGTERM)
        os.kill(int(pid.read_text()), signal.SIGTERM)
        assert "is given back: was told to end" in said(child)
        assert eventually(lambda: hf.tasks.attempts(task_id)[0].outcome == "released")
        assert len(hf.tasks.attempts(task_id)) == 1
