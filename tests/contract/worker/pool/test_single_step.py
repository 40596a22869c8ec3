"""A worker with one step: the thread that ran it writes its report, and goes on with the next."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from holdfast import Holdfast

PATIENCE = 30


@pytest.fixture
def writers(hf: Holdfast) -> Iterator[list[str]]:
    """The threads that wrote, each as often as it did."""
    names: list[str] = []
    leave = hf.engine.on_commit(lambda: names.append(threading.current_thread().name))
    yield names
    leave()


def test_the_thread_of_a_step_that_is_alone_writes_its_report(
    hf: Holdfast, writers: list[str]
) -> None:
    @hf.task
    def job() -> None: ...

    with hf.worker(concurrency=1):
        # Where the writer is still awake, the report is left to it.
        for _ in range(200):
            job.enqueue().result(PATIENCE)
            if "holdfast-step" in writers:
                break
    assert set(writers) == {"holdfast-writer", "holdfast-step"}


def test_a_coroutine_keeps_its_loop_from_no_other_with_a_commit(
    hf: Holdfast, writers: list[str]
) -> None:
    @hf.task
    async def job() -> None: ...

    with hf.worker(concurrency=1):
        for _ in range(5):
            job.enqueue().result(PATIENCE)
    assert set(writers) == {"holdfast-writer"}
