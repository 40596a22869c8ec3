"""What a step prints and logs is in the log of its attempt, and in no log of another step."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Context, Holdfast, TaskFailed
from holdfast.cli.app.log_output import PlainLogHandler
from holdfast.engine.engine import engine_of
from holdfast.worker.attempt import step_output
from holdfast.worker.files.state_directory import find_state_directory

PATIENCE = 30
SECRET = "hunter2-hunter2"

shop = logging.getLogger("shop")
say = print
aside = logging.getLogger("shop.aside")


@pytest.fixture
def hf(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holdfast]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with Holdfast(store_url) as opened:
        yield opened


def log_of(hf: Holdfast, task_id: str, attempt: int = 1) -> str:
    return find_state_directory(engine_of(hf).settings.url).log(task_id, attempt).path.read_text()


def test_functions_and_coroutines_beside_each_other_write_each_into_its_own_log(
    hf: Holdfast, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, "propagate", False)
    both = threading.Barrier(2, timeout=PATIENCE)

    @hf.task
    def pack(name: str) -> None:
        say("packs", name)
        both.wait()
        say("packed", name, file=sys.stderr)
        shop.warning("sealed %s", name)
        aside.warning("weighed %s", name)

    @hf.task
    async def ship(name: str) -> None:
        say("ships", name, end="")
        await asyncio.to_thread(both.wait)

        async def load() -> None:
            shop.warning("loaded %s", name)

        async with asyncio.TaskGroup() as group:
            group.create_task(load())
        await asyncio.to_thread(say, "shipped", name)

    with hf.worker():
        packed, shipped = pack.enqueue("a"), ship.enqueue("b")
        packed.result(PATIENCE)
        shipped.result(PATIENCE)
        say("around")
    lines = log_of(hf, packed.id).splitlines()
    assert lines[:2] == ["packs a", "packed a"]
    assert [line[24:] for line in lines[2:]] == [
        "WARNING shop: sealed a",
        "WARNING shop.aside: weighed a",
    ]
    lines = log_of(hf, shipped.id).splitlines()
    assert (lines[0], lines[1][24:], lines[2]) == (
        "ships b",
        "WARNING shop: loaded b",
        "shipped b",
    )
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("packs", "ships", "shipped", "around"))


def test_streams_and_logging_are_as_before_once_no_worker_runs(hf: Holdfast) -> None:
    before = (sys.stdout, sys.stderr, logging.Logger.callHandlers)
    with hf.worker():
        with hf.worker():
            pass
        during = (sys.stdout, sys.stderr, logging.Logger.callHandlers)
        assert all(one is not other for one, other in zip(before, during, strict=True))
    assert (sys.stdout, sys.stderr, logging.Logger.callHandlers) == before


def test_a_stream_that_was_put_in_place_meanwhile_stays(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with hf.worker():
        mine = sys.stdout = sys.__stdout__
    assert sys.stdout is mine


def test_a_secret_that_is_printed_in_pieces_is_in_no_log(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "secrets"
    kept.touch(mode=0o600)
    kept.write_text(f"PLANTED = {SECRET}\n")
    monkeypatch.setenv("HOLDFAST_SECRETS", str(kept))

    @hf.task(max_attempts=1)
    def tell(ctx: Context) -> None:
        say("one", SECRET[:5], end="", sep="")
        say(SECRET[5:], "two", sep="")
        shop.warning("it is %s", SECRET)
        say(ctx.token)
        raise ValueError(SECRET)

    with hf.worker(), pytest.raises(TaskFailed):
        (handle := tell.enqueue()).result(PATIENCE)
    log = log_of(hf, handle.id)
    assert SECRET not in log
    assert log.startswith("one[secret PLANTED]two\n")
    assert "it is [secret PLANTED]" in log
    assert "\n[secret HOLDFAST_ATTEMPT_TOKEN]\n" in log
    assert "ValueError: [secret PLANTED]" in log


def test_a_record_that_cannot_be_formatted_fails_no_step(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    monkeypatch.setattr(logging.getLogger(), "handlers", [PlainLogHandler()])

    @hf.task
    def tell() -> str:
        shop.warning("%d pieces", "many")
        return "told"

    with hf.worker():
        handle = tell.enqueue()
        assert handle.result(PATIENCE) == "told"
    assert log_of(hf, handle.id) == "WARNING shop: '%d pieces' ('many',)\n"


def test_a_handler_that_prints_what_is_logged_does_not_write_it_twice(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    @hf.task
    def tell() -> None:
        shop.warning("once")

    with hf.worker():
        monkeypatch.setattr(shop, "handlers", [logging.StreamHandler(sys.stderr)])
        handle = tell.enqueue()
        handle.result(PATIENCE)
    assert log_of(hf, handle.id).count("once") == 1


def test_what_a_thread_prints_after_its_function_has_returned_is_in_no_log(hf: Holdfast) -> None:
    ended = threading.Event()
    left: list[asyncio.Task[None]] = []

    @hf.task
    async def leave() -> None:
        async def go_on() -> None:
            await asyncio.to_thread(ended.wait, PATIENCE)
            say("late")

        left.append(asyncio.create_task(go_on()))
        say("left")

    with hf.worker():
        handle = leave.enqueue()
        handle.result(PATIENCE)
        ended.set()
        while not left[0].done():
            pass
    assert log_of(hf, handle.id) == "left\n"


def test_more_steps_write_at_once_than_may_have_open_logs(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_output, "_places", threading.BoundedSemaphore(1))
    both = threading.Barrier(2, timeout=PATIENCE)

    @hf.task
    def tell(name: str) -> None:
        say(name, "begins")
        both.wait()
        say(name, "ends")

    with hf.worker():
        told = {name: tell.enqueue(name) for name in ("a", "b")}
        for handle in told.values():
            handle.result(PATIENCE)
    for name, handle in told.items():
        assert log_of(hf, handle.id) == f"{name} begins\n{name} ends\n"
