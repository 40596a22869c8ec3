"""An attempt that was taken from its worker ends at once, whoever took it, wherever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from holdfast import Context, Holdfast
from holdfast.api.handle import Handle
from holdfast.engine.engine import engine_of
from holdfast.store.notifiers.postgresql import CHANNEL
from tests.race.racers import eventually

PATIENCE = 30
HOUR = 3600


@contextmanager
def first_attempt_runs(
    hf: Holdfast,
) -> Iterator[tuple[Handle[Any], threading.Event]]:
    """A run whose only step waits in its first attempt until that is over, and says so."""
    began, ended = threading.Event(), threading.Event()
    flow = hf.workflow("flow")

    @flow.step
    def only(ctx: Context) -> int:
        if ctx.attempt == 1:
            began.set()
            if eventually(lambda: ctx.ended):
                ended.set()
        return ctx.attempt

    with hf.worker(concurrency=2):
        handle = flow.start()
        assert began.wait(PATIENCE)
        yield handle, ended


def retry_from(hf: Holdfast, run_id: str) -> None:
    assert hf.runs.retry(run_id, step="only").ok


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_superseded_attempt_ends_long_before_its_next_renewal(store_url: str, where: str) -> None:
    with (
        Holdfast(store_url, lease=2 * HOUR, renewal=HOUR) as hf,
        Holdfast(store_url) as other,
        first_attempt_runs(hf) as (handle, ended),
    ):
        retry_from(hf if where == "here" else other, handle.id)
        assert ended.wait(PATIENCE)
        assert handle.result(PATIENCE) == 2
        (task,) = hf.runs.tasks(handle.id)
        outcomes = [each.outcome for each in hf.tasks.attempts(task.id)]
        assert outcomes == ["superseded", "completed"]


def test_a_cancel_of_one_running_step_of_a_run_is_hinted_at_elsewhere(
    postgres_store_url: str,
) -> None:
    with Holdfast(postgres_store_url) as hf:
        flow = hf.workflow("flow")

        @flow.step
        def left() -> None: ...

        @flow.step(needs=[])
        def right() -> None: ...

        flow.start()
        first, _ = hf.work.claim("worker", count=2)
        with psycopg.connect(postgres_store_url, autocommit=True) as other:
            other.execute(f"LISTEN {CHANNEL}")
            assert hf.tasks.cancel(first.task.id).ok
            assert next(other.notifies(timeout=PATIENCE)).channel == CHANNEL


def test_a_new_attempt_goes_on_when_an_older_one_of_its_task_is_ended(hf: Holdfast) -> None:
    with first_attempt_runs(hf) as (handle, ended):
        told: list[tuple[str, int]] = []
        engine_of(hf).on_attempts_ended(told.extend)
        (task,) = hf.runs.tasks(handle.id)
        retry_from(hf, handle.id)
        assert ended.wait(PATIENCE)
        assert handle.result(PATIENCE) == 2
        # Recovery may read the result before the commit is told.
        assert eventually(lambda: told == [(task.id, 1), (task.id, 2)])
        assert hf.work.attempts_over(told) == set(told)


def test_tasks_that_have_left_a_worker_are_told_by_attempt(hf: Holdfast) -> None:
    @hf.task
    def job() -> None: ...

    handle = job.enqueue()
    (first,) = hf.work.claim("one")
    assert hf.work.attempts_over([(handle.id, 1)]) == set()
    assert hf.work.release(handle.id, first.token).ok
    assert hf.work.attempts_over([(handle.id, 1)]) == {(handle.id, 1)}
    (second,) = hf.work.claim("two")
    assert hf.work.attempts_over([(handle.id, 1), (handle.id, 2)]) == {(handle.id, 1)}
    assert hf.work.complete(handle.id, second.token).ok
