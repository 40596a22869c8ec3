"""How a command ends that is told to, and whom that costs an attempt."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.work import Work
from tests.contract.file_steps import ONCE, FileSteps, file_steps
from tests.race.racers import eventually

# It leaves with 0 whenever it is told to end.
OBEDIENT = "trap 'exit 0' TERM; echo $PPID $$; while :; do sleep 0.01; done"


@pytest.fixture
def steps(sqlite_url: str, tmp_path: Path) -> Iterator[FileSteps]:
    with file_steps(sqlite_url, tmp_path) as made:
        yield made


def shell(text: str, **fields: Any) -> Work:
    return Work(command=("sh", "-c", text), **fields)


def test_a_command_that_is_ended_for_its_time_has_failed_though_it_leaves_with_0(
    steps: FileSteps,
) -> None:
    task = steps.done(shell(OBEDIENT), timeout=0.2, retry=ONCE)
    assert (task.status, task.error["message"]) == ("failed", "ran longer than 0.2 s")
    task = steps.done(shell(OBEDIENT, idle_timeout=0.2), retry=ONCE)
    assert (task.status, task.error["message"]) == ("failed", "was silent for longer than 0.2 s")


def test_a_command_that_a_signal_to_all_processes_ends_is_given_back(steps: FileSteps) -> None:
    text = f'[ "$HOLDFAST_ATTEMPT" = 1 ] || exit 0; {OBEDIENT}'
    task_id = steps.enqueue(shell(text), retry=ONCE)
    log = steps.state.log(task_id, 1)
    assert eventually(lambda: log.exists() and len(log.read_text().split()) == 2)
    for pid in log.read_text().split():
        os.kill(int(pid), signal.SIGTERM)
    assert eventually(lambda: steps.hf.tasks.get(task_id).terminal)
    assert [each.outcome for each in steps.hf.tasks.attempts(task_id)] == ["released", "completed"]
    assert "was told to end by a signal from outside" in log.read_text()


def test_a_question_that_cannot_be_kept_gets_the_repair_turn_and_then_is_a_failure(
    steps: FileSteps,
) -> None:
    work = shell(r"""cat; echo; printf '%s\n' '{"question": "a\u0000b"}'""", prompt="Do it")
    task = steps.done(work, retry=ONCE)
    assert task.status == "failed"
    assert "the question: contains a NUL character" in task.error["message"]
    assert "You have answered this before" in steps.log(task.id)
