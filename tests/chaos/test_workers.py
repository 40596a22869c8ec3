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
from tests.chaos.payment_pipeline import Payment, work
from tests.chaos.processes import interrupt, start
from tests.contract.raw_store import dump
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


def pay_again(payment: Payment, run: Handle[str]) -> Task:
    """Let the second attempt go; the task of its step, done by that attempt and no other."""
    payment.let_go[2].touch()
    assert run.result(PATIENCE) == "shipped: tea paid by attempt 2"
    task = paying(payment, run)
    attempts = payment.hf.tasks.attempts(task.id)
    assert [(each.owner, each.outcome) for each in attempts] == [
        ("first", "lost"),
        ("second", "completed"),
    ]
    return task


def paying(payment: Payment, run: Handle[str]) -> Task:
    return next(each for each in payment.hf.runs.tasks(run.id) if each.step == "pay")


def test_a_step_whose_worker_is_killed_is_done_once_by_another(
    store_url: str, tmp_path: Path
) -> None:
    with begun(store_url, tmp_path) as (payment, run, first):
        token = payment.begun.read()[0][1]
        os.kill(first.pid or 0, signal.SIGKILL)
        first.join(PATIENCE)
        with start(work, store_url, tmp_path, "second"):
            assert eventually(lambda: len(payment.begun.read()) == 2)
            assert reasons(payment, paying(payment, run).id, token) == REFUSED
            task = pay_again(payment, run)
        before = dump(store_url)
        assert reasons(payment, task.id, token) == REFUSED | {"guard": "already_passed"}
        assert dump(store_url) == before


def reasons(payment: Payment, task_id: str, token: str) -> dict[str, str]:
    return {name: str(each.reason) for name, each in payment.report(task_id, token).items()}


def test_a_worker_stopped_past_its_lease_is_refused_while_its_successor_is_at_work(
    store_url: str, tmp_path: Path
) -> None:
    with begun(store_url, tmp_path) as (payment, run, first):
        os.kill(first.pid or 0, signal.SIGSTOP)
        with start(work, store_url, tmp_path, "second"):
            assert eventually(lambda: len(payment.begun.read()) == 2)
            payment.let_go[1].touch()
            os.kill(first.pid or 0, signal.SIGCONT)
            assert eventually(lambda: len(payment.refused.read()) == len(REFUSED))
            assert payment.refused.read() == list(REFUSED.items())
            interrupt(first)
            task = pay_again(payment, run)
        assert payment.hf.tasks.get(task.id).output == "tea paid by attempt 2"
