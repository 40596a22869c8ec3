"""How a command ends that is told to, and whom that costs an attempt."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, StoreUnreachable
from holdfast.engine.engine import engine_of
from holdfast.model.workflow.declarations import HttpCall, StepWork
from tests.contract.http_service import Reply, service
from tests.contract.worker.file_steps import ONCE, FileSteps, file_steps, shell
from tests.race.racers import eventually

# It leaves with 0 whenever it is told to end.
OBEDIENT = "trap 'exit 0' TERM; echo $PPID $$; while :; do sleep 0.01; done"


@pytest.fixture
def steps(sqlite_url: str, tmp_path: Path) -> Iterator[FileSteps]:
    with file_steps(sqlite_url, tmp_path) as made:
        yield made


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
    log = steps.state.log(task_id, 1).path
    assert eventually(lambda: log.exists() and len(log.read_text().split()) == 2)
    for pid in log.read_text().split():
        os.kill(int(pid), signal.SIGTERM)
    assert eventually(lambda: steps.hf.tasks.get(task_id).terminal)
    assert [each.outcome for each in steps.hf.tasks.attempts(task_id)] == ["released", "completed"]
    assert "was told to end by a signal from outside" in log.read_text()


@pytest.mark.parametrize("code", [0, 1])
def test_a_command_that_told_a_usage_limit_itself_ends_without_a_word_of_its_worker(
    steps: FileSteps,
    sqlite_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    code: int,
) -> None:
    gate, told = tmp_path / "gate", tmp_path / "told"
    os.mkfifo(gate)
    keep = f"echo $HOLDFAST_ATTEMPT_TOKEN > {told}.new; mv {told}.new {told}"
    task_id = steps.enqueue(shell(f"{keep}; cat {gate}; exit {code}"))
    assert eventually(told.exists)
    with Holdfast(sqlite_url) as other:
        assert engine_of(other).work.reach_limit(task_id, told.read_text().strip(), "1h").ok
    gate.write_text("")
    assert eventually(lambda: steps.idle)
    assert [each.outcome for each in steps.hf.tasks.attempts(task_id)] == ["released"]
    assert "refused" not in caplog.text


def test_a_question_that_cannot_be_kept_gets_the_repair_turn_and_then_is_a_failure(
    steps: FileSteps,
) -> None:
    work = shell(r"""cat; echo; printf '%s\n' '{"question": "a\u0000b"}'""", prompt="Do it")
    task = steps.done(work, retry=ONCE)
    assert task.status == "failed"
    assert "the question: contains a NUL character" in task.error["message"]
    assert "You have answered this before" in steps.log(task.id)


def test_the_repair_turn_has_only_the_time_that_its_attempt_has_left(steps: FileSteps) -> None:
    text = """sleep 0.5; grep -q 'answered this before' && echo '{"n": 1}' || echo no"""
    work = shell(text, prompt="Do it", outputs={"type": "object"})
    task = steps.done(work, timeout=0.9, retry=ONCE)
    assert (task.status, task.error["message"]) == ("failed", "ran longer than 0.9 s")


class AwayOnce:
    """A store that cannot be reached the first time that it is asked something."""

    def __init__(self, ask: Callable[..., dict[str, Any]]) -> None:
        self._ask = ask
        self.asked = 0

    def __call__(self, *args: Any) -> dict[str, Any]:
        self.asked += 1
        if self.asked == 1:
            raise StoreUnreachable("the connection is lost")
        return self._ask(*args)

    async def aio(self, *args: Any) -> dict[str, Any]:
        return self(*args)


def test_an_attempt_whose_own_reads_do_not_reach_the_store_is_given_back(
    steps: FileSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    effects = AwayOnce(engine_of(steps.hf).work.effects)
    monkeypatch.setattr(type(engine_of(steps.hf).work), "effects", effects)
    task = steps.done(shell('[ "$HOLDFAST_ATTEMPT" != 1 ]'))
    outcomes = [each.outcome for each in steps.hf.tasks.attempts(task.id)]
    assert (outcomes, task.failures) == (["failed", "released", "completed"], 1)
    with service(Reply(status=500), Reply(body=b"{}")) as to:
        effects.asked = 0
        task = steps.done(StepWork(http=HttpCall(url=to.url)))
    outcomes = [each.outcome for each in steps.hf.tasks.attempts(task.id)]
    assert (outcomes, task.failures) == (["failed", "released", "completed"], 1)


def test_a_command_that_signals_its_own_keeper_is_not_given_back_for_ever(steps: FileSteps) -> None:
    task = steps.done(shell("kill $PPID; while :; do sleep 0.01; done"), retry=ONCE)
    assert task.error["message"] == "was told to end by a signal from outside"
    assert {each.outcome for each in steps.hf.tasks.attempts(task.id)} == {"released", "failed"}
