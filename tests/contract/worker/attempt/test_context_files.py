"""What a function leaves beside its result: lines of its log, files, and leases that it held."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import AsyncContext, AttemptEnded, Context, Holdfast, TaskFailed
from holdfast.engine.engine import engine_of
from holdfast.worker.files.state_directory import find_state_directory

PATIENCE = 30


@pytest.fixture
def hf(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holdfast]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with Holdfast(store_url) as opened:
        yield opened


def log_of(hf: Holdfast, task_id: str, attempt: int = 1) -> str:
    return find_state_directory(engine_of(hf).settings.url).log(task_id, attempt).path.read_text()


def test_each_attempt_has_a_log_of_its_own(hf: Holdfast) -> None:
    @hf.task(max_attempts=2, backoff=0)
    def greet(ctx: Context) -> None:
        ctx.log("begins")
        ctx.log({"attempt": ctx.attempt})
        if ctx.attempt == 1:
            raise ConnectionError

    with hf.worker():
        handle = greet.enqueue()
        handle.result(PATIENCE)
    begun, traceback = log_of(hf, handle.id).split("Traceback (most recent call last):\n")
    assert begun == "begins\n{'attempt': 1}\n"
    assert "raise ConnectionError\n" in traceback
    assert log_of(hf, handle.id, 2) == "begins\n{'attempt': 2}\n"


def test_a_coroutine_logs_without_awaiting(hf: Holdfast) -> None:
    @hf.task
    async def greet(ctx: AsyncContext) -> None:
        ctx.log("two\nlines\n")

    with hf.worker():
        handle = greet.enqueue()
        handle.result(PATIENCE)
    assert log_of(hf, handle.id) == "two\nlines\n"


def test_a_log_that_cannot_be_written_fails_no_step(hf: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")

    @hf.task
    def greet(ctx: Context) -> str:
        ctx.log("begins")
        return "done"

    with hf.worker():
        assert greet.enqueue().result(PATIENCE) == "done"


def test_an_attempt_that_was_cancelled_logs_and_keeps_nothing_more(hf: Holdfast) -> None:
    began, cancelled = threading.Event(), threading.Event()
    refused: list[str] = []

    @hf.task
    def linger(ctx: Context) -> None:
        began.set()
        cancelled.wait(PATIENCE)
        while not ctx.ended:
            pass
        for late in (ctx.log, lambda text: ctx.artifact("late.txt", text)):
            try:
                late("too late")
            except AttemptEnded:
                refused.append("refused")

    with hf.worker():
        handle = linger.enqueue()
        assert began.wait(PATIENCE)
        assert hf.tasks.cancel(handle.id).ok
        cancelled.set()
    assert refused == ["refused", "refused"]
    root = find_state_directory(engine_of(hf).settings.url).root
    assert not list(root.glob("logs/*/*"))
    assert not list(root.glob("artifacts/*/late.txt"))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_file_is_kept_under_its_name(hf: Holdfast, tmp_path: Path, *, asynchronous: bool) -> None:
    given = tmp_path / "chart.svg"
    given.write_bytes(b"<svg/>")

    def plain(ctx: Context) -> list[str]:
        return [str(ctx.artifact("report.txt", "well")), str(ctx.artifact("chart.svg", given))]

    async def awaited(ctx: AsyncContext) -> list[str]:
        kept = [await ctx.artifact("report.txt", "well"), await ctx.artifact("chart.svg", given)]
        return [str(each) for each in kept]

    function: Any = awaited if asynchronous else plain
    report = hf.task(function)
    with hf.worker():
        handle = report.enqueue()
        report_path, chart_path = map(Path, handle.result(PATIENCE))
    assert report_path.name == "report.txt"
    assert report_path.read_text() == "well"
    assert chart_path.read_bytes() == b"<svg/>"
    assert engine_of(hf).work.effects(handle.id)["artifact report.txt"]["bytes"] == 4


def test_the_same_file_again_is_the_same_and_another_content_is_refused_for_good(
    hf: Holdfast,
) -> None:
    contents = iter(["well", "well", "ill"])

    @hf.task(max_attempts=5, backoff=0)
    def report(ctx: Context) -> None:
        ctx.artifact("report.txt", next(contents))
        raise ConnectionError

    with hf.worker():
        handle = report.enqueue()
        with pytest.raises(TaskFailed, match=r"report\.txt was kept before, with another content"):
            handle.result(PATIENCE)
    assert hf.tasks.get(handle.id).attempt == 3
    root = find_state_directory(engine_of(hf).settings.url).root
    assert (root / "artifacts" / handle.id / "report.txt").read_text() == "well"


def test_concurrent_writes_of_one_artifact_keep_the_content_that_the_store_recorded(
    hf: Holdfast,
) -> None:
    contents = [bytes([each]) * 10 for each in range(4)]

    @hf.task(max_attempts=1)
    async def report(ctx: AsyncContext) -> None:
        await asyncio.gather(*(ctx.artifact("report.txt", each) for each in contents))

    with hf.worker():
        handle = report.enqueue()
        with pytest.raises(TaskFailed, match="with another content"):
            handle.result(PATIENCE)
    folder = find_state_directory(engine_of(hf).settings.url).root / "artifacts" / handle.id
    kept = engine_of(hf).work.effects(handle.id)["artifact report.txt"]
    assert hashlib.sha256((folder / "report.txt").read_bytes()).hexdigest() == kept["digest"]
    assert sorted(each.name for each in folder.iterdir()) == [".store", "report.txt"]


@pytest.mark.parametrize("name", ["../report.txt", "", ".hidden", "a/b"])
def test_a_name_that_is_no_file_name_is_refused_for_good(hf: Holdfast, name: str) -> None:
    @hf.task(max_attempts=5, backoff=0)
    def report(ctx: Context) -> None:
        ctx.artifact(name, "well")

    with hf.worker(), pytest.raises(TaskFailed, match="no file name"):
        report.enqueue().result(PATIENCE)


def test_a_lease_is_held_until_the_function_is_left(hf: Holdfast) -> None:
    seen: list[object] = []

    @hf.task
    def print_pages(ctx: Context) -> int:
        lease = ctx.lease("printer", "1h")
        assert lease is not None
        seen.append(ctx.lease("printer", "1h"))
        seen.append(hf.leases.acquire("printer", "somebody", ttl=60))
        return int(lease.fence)

    with hf.worker():
        first = print_pages.enqueue().result(PATIENCE)
        assert print_pages.enqueue().result(PATIENCE) == first + 1
    assert seen == [None] * 4
    taken = hf.leases.acquire("printer", "somebody", ttl=60)
    assert taken is not None
    assert taken.fence == first + 2


def test_a_function_that_waits_gives_its_leases_back(hf: Holdfast) -> None:
    @hf.task
    async def print_pages(ctx: AsyncContext) -> list[int]:
        lease = await ctx.lease("printer", 3600)
        assert lease is not None
        await ctx.sleep(0)
        return [lease.fence]

    with hf.worker():
        assert print_pages.enqueue().result(PATIENCE) == [2]


def test_a_lease_that_comes_after_its_branch_was_cancelled_is_given_back(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire = hf.leases.acquire.submit

    def take_and_leave(*args: Any, **options: Any) -> object:
        taken = acquire(*args, **options)
        # It is written, and its branch, which asks here, has not heard of it.
        assert taken.result(PATIENCE) is not None
        branch = asyncio.current_task()
        assert branch is not None
        branch.cancel()
        return taken

    @hf.task
    async def print_pages(ctx: AsyncContext) -> list[str]:
        branches = await asyncio.gather(ctx.lease("printer", "1h"), return_exceptions=True)
        return [type(each).__name__ for each in branches]

    with hf.worker(), monkeypatch.context() as patch:
        patch.setattr(hf.leases.acquire, "submit", take_and_leave)
        assert print_pages.enqueue().result(PATIENCE) == ["CancelledError"]
    taken = hf.leases.acquire("printer", "somebody", ttl=60)
    assert taken is not None
    assert taken.fence == 2
