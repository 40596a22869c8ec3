"""Waiting for results: in time, too late, given up, failed."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast import Holdfast, InvalidInput, ShuttingDown, TaskFailed
from holdfast.engine.engine import engine_of

PATIENCE = 30


def test_waiting_for_a_result_can_end_before_the_task_does(hf: Holdfast) -> None:
    @hf.task
    def never() -> None: ...

    handle = never.enqueue()
    with pytest.raises(TimeoutError, match=f"{handle.id} has not ended within 0.01 s"):
        handle.result(0.01)
    with pytest.raises(TimeoutError, match=handle.id):
        asyncio.run(handle.result.aio("10ms"))
    with pytest.raises(InvalidInput, match="timeout: 'soon' is not a duration"):
        handle.result("soon")
    assert hf.tasks.get(handle.id).state == "ready"


def test_a_wait_that_was_given_up_logs_nothing_when_its_task_ends(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    @hf.task
    def job() -> str:
        return "made"

    async def use() -> str:
        handle = await job.enqueue.aio()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle.result.aio(), 0.01)
        creation = asyncio.ensure_future(job.enqueue.aio())
        await asyncio.sleep(0)
        creation.cancel()
        async with hf.worker():
            return await handle.result.aio(PATIENCE)

    assert asyncio.run(use()) == "made"
    assert caplog.text == ""


def test_a_failed_task_raises_what_went_wrong(hf: Holdfast) -> None:
    @hf.task(max_attempts=1)
    def broken(number: int) -> None:
        raise ValueError(f"no luck \x00 {number}")

    with hf.worker():
        handle = broken.enqueue(7)
        said = f"^{handle.id} ended failed: ValueError: no luck � 7$"
        with pytest.raises(TaskFailed, match=said):
            handle.result(PATIENCE)
        with pytest.raises(TaskFailed) as caught:
            asyncio.run(handle.result.aio(PATIENCE))
    assert (caught.value.identifier, caught.value.status) == (handle.id, "failed")
    assert isinstance(caught.value.error, dict)
    assert 'raise ValueError(f"no luck' in "".join(caught.value.error["traceback"])


def test_a_cancelled_run_says_so(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def only() -> None: ...

    handle = flow.start()
    assert hf.runs.cancel(handle.id).ok
    with pytest.raises(TaskFailed, match=f"^{handle.id} ended cancelled$"):
        handle.result(PATIENCE)


def test_a_result_made_by_another_process_arrives(hf: Holdfast, store_url: str) -> None:
    @hf.task
    def job() -> str:
        return "here"

    with Holdfast(store_url) as other:

        @other.task(name="job")
        def there() -> str:
            return "there"

        handle = job.enqueue()
        with other.worker():
            assert handle.result(PATIENCE) == "there"


def test_closing_ends_the_waits_for_results_with_an_error(store_url: str) -> None:
    hf = Holdfast(store_url)

    @hf.task
    def never() -> None: ...

    handle = never.enqueue()
    waiting = engine_of(hf).outcomes.wait(handle.id)
    closing = threading.Thread(target=hf.close)
    closing.start()
    with pytest.raises(ShuttingDown, match="closed while waiting"):
        waiting.result(PATIENCE)
    closing.join()
