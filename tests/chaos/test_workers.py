"""Workers that are killed, or stopped past their lease, in the middle of a step, for real."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from holdfast.api.handle import Handle
from holdfast.model.task import Task
from tests.chaos.payment import Payment, work
from tests.chaos.processes import start
from tests.contract.raw import dump
from tests.race.racers import PATIENCE, eventually

REFUSED = {
    "guard": "already_claimed",
    "renew": "stale_token",
    "release": "stale_token",
    "fail": "stale_token",
    "complete": "stale_token",
}


@contextmanager
def begun(url: str, folder: Path) -> Iterator[tuple[Payment, Handle[str], BaseProcess]]:
    """A payment that the first worker is in the middle of; in the end, all is as it should be."""
    payment = Payment(url, folder)
    with closing(payment.hf), start(work, url, folder, "first") as first:
        run = payment.workflow.start()
        assert eventually(lambda: payment.begun.read() != []), "the first worker never began"
        yield payment, run, first
        assert payment.paid.read() == [("2",)], "the step's effect happened not just once"
        diagnosis = payment.hf.doctor()
        assert diagnosis.ok, str(diagnosis)


def paid(payment: Payment, run: Handle[str]) -> Task:
    """The task of the paying step, done by the second worker's attempt and no other."""
    result = run.result(PATIENCE)
    assert result == "shipped: tea paid by attempt 2"
    task = next(each for each in payment.hf.runs.tasks(run.id) if each.step == "pay")
    attempts = payment.hf.tasks.attempts(task.id)
    assert [(each.owner, each.outcome) for each in attempts] == [
        ("first", "lost"),
        ("second", "completed"),
    ]
    return task


def test_a_step_whose_worker_is_killed_is_done_once_by_another(
    store_url: str, tmp_path: Path
) -> None:
    with begun(store_url, tmp_path) as (payment, run, first):
        os.kill(first.pid or 0, signal.SIGKILL)
        first.join(PATIENCE)
        with start(work, store_url, tmp_path, "second"):
            task = paid(payment, run)
        before = dump(store_url)
        token = payment.begun.read()[0][1]
        answers = payment.report(task.id, token)
        assert {name: each.reason for name, each in answers.items()} == REFUSED
        assert dump(store_url) == before


def test_a_worker_that_was_stopped_past_its_lease_is_refused_everything(
    store_url: str, tmp_path: Path
) -> None:
    with begun(store_url, tmp_path) as (payment, run, first):
        os.kill(first.pid or 0, signal.SIGSTOP)
        with start(work, store_url, tmp_path, "second"):
            task = paid(payment, run)
            before = dump(store_url)
            payment.go.touch()
            os.kill(first.pid or 0, signal.SIGCONT)
            assert eventually(lambda: len(payment.refused.read()) == len(REFUSED))
        assert payment.refused.read() == list(REFUSED.items())
        os.kill(first.pid or 0, signal.SIGINT)
        first.join(PATIENCE)
        assert first.exitcode == 0
        assert dump(store_url) == before
        assert payment.hf.tasks.get(task.id).output == "tea paid by attempt 2"
