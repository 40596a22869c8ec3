"""What a function says of another attempt: Permanent, RetryAfter, retry_on and never_retry_on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast import Ended, Handle, Holdfast, InvalidInput, Permanent, RetryAfter, TaskFailed
from holdfast.engine.engine import engine_of
from holdfast.model.task import Task
from holdfast.worker.files.state_directory import find_state_directory

PATIENCE = 30
BAD_TIMES: dict[str, Any] = {
    "word": "soon",
    "without a time zone": datetime(2100, 1, 1),  # noqa: DTZ001 - what is refused
    "too far away": "80000d",
    "absent": None,
}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))


class CardDeclined(Permanent):
    pass


def count_attempts(hf: Holdfast, error: BaseException, **options: Any) -> int:
    """How many attempts a task makes that may fail three times and always raises this error."""

    @hf.task(backoff=0, **options)
    def stumble() -> None:
        raise error

    with hf.worker(), pytest.raises(TaskFailed):
        (handle := stumble.enqueue()).result(PATIENCE)
    return hf.tasks.get(handle).failures


def run_until_given_back(hf: Holdfast, enqueue: Callable[[], Handle[Any]]) -> Task:
    """The task after one attempt, which has raised."""
    raised = threading.Event()
    stop = engine_of(hf).on_attempts_ended(lambda _: raised.set())
    with hf.worker():
        handle = enqueue()
        assert raised.wait(PATIENCE)
    stop()
    return hf.tasks.get(handle)


def test_a_permanent_error_fails_the_task_with_attempts_to_spare(hf: Holdfast) -> None:
    @hf.task
    def charge() -> None:
        raise CardDeclined("no money on it")

    with hf.worker(), pytest.raises(TaskFailed, match="CardDeclined: no money on it"):
        (handle := charge.enqueue()).result(PATIENCE)
    task = hf.tasks.get(handle)
    assert (task.status, task.failures, task.attempt) == ("failed", 1, 1)


def test_a_permanent_error_of_a_coroutine_counts_before_what_failed_beside_it(hf: Holdfast) -> None:
    @hf.task
    async def charge() -> None:
        raise BaseExceptionGroup("both", [OSError("slow"), CardDeclined("no money on it")])

    with hf.worker(), pytest.raises(TaskFailed, match="CardDeclined: no money on it"):
        (handle := charge.enqueue()).result(PATIENCE)
    assert hf.tasks.get(handle).failures == 1


def test_a_task_that_asks_for_later_waits_that_long_and_spends_no_attempt(hf: Holdfast) -> None:
    @hf.task(max_attempts=1)
    def call_bank() -> None:
        raise RetryAfter("1h", "the bank is closed")

    before = datetime.now(UTC)
    task = run_until_given_back(hf, call_bank.enqueue)
    assert (task.status, task.state, task.failures) == ("queued", "scheduled", 0)
    assert task.scheduled_for is not None
    assert 3_600 <= (task.scheduled_for - before).total_seconds() < 3_600 + PATIENCE
    (attempt,) = hf.tasks.attempts(task.id)
    assert attempt.outcome == "released"


def test_the_log_of_an_attempt_tells_until_when_it_was_given_back_and_why(hf: Holdfast) -> None:
    @hf.task
    def call_bank() -> None:
        raise RetryAfter(90, "the bank is closed")

    task = run_until_given_back(hf, call_bank.enqueue)
    log = find_state_directory(hf.settings.url).log(task.id, 1)
    assert log.path.read_text() == "given back until 1m 30s from now: the bank is closed\n"


@pytest.mark.parametrize(
    ("time", "seconds"),
    [(0, 1), (-5, 1), (90, 90), (timedelta(minutes=2), 120), ("2m", 120)],
)
def test_later_is_a_duration_of_at_least_one_second(
    time: float | str | timedelta, seconds: int
) -> None:
    assert RetryAfter(time).until == timedelta(seconds=seconds)


def test_later_may_be_a_moment_with_a_time_zone(hf: Holdfast) -> None:
    noon = datetime(2100, 1, 1, 12, tzinfo=UTC)

    @hf.task
    async def call_bank() -> None:
        raise RetryAfter(noon)

    task = run_until_given_back(hf, call_bank.enqueue)
    assert task.scheduled_for == noon


@pytest.mark.parametrize("kind", BAD_TIMES)
def test_a_time_that_is_none_fails_the_task_for_good(hf: Holdfast, kind: str) -> None:
    @hf.task
    def call_bank() -> None:
        raise RetryAfter(BAD_TIMES[kind])

    with hf.worker(), pytest.raises(TaskFailed, match=r"time: .*change the function"):
        (handle := call_bank.enqueue()).result(PATIENCE)
    assert hf.tasks.get(handle).failures == 1


def test_only_the_errors_in_retry_on_are_tried_again(hf: Holdfast) -> None:
    assert count_attempts(hf, ConnectionResetError(), retry_on=OSError, name="connect") == 3
    assert count_attempts(hf, ValueError(), retry_on=(OSError, KeyError), name="read") == 1
    together = BaseExceptionGroup("both", [OSError(), ValueError()])
    assert count_attempts(hf, together, retry_on=OSError, name="both") == 1


def test_the_errors_in_never_retry_on_are_final_also_when_retry_on_names_them(hf: Holdfast) -> None:
    assert count_attempts(hf, ValueError(), never_retry_on=(ValueError,), name="read") == 1
    assert count_attempts(hf, KeyError(), never_retry_on=[ValueError], name="find") == 3
    both = {"retry_on": OSError, "never_retry_on": FileNotFoundError}
    assert count_attempts(hf, FileNotFoundError(), name="open", **both) == 1
    assert count_attempts(hf, PermissionError(), name="write", **both) == 3


def test_a_timeout_is_tried_again_though_no_rule_names_it(hf: Holdfast) -> None:
    over = threading.Event()

    @hf.task(backoff=0, max_attempts=2, timeout="50ms", retry_on=ValueError)
    def wait() -> None:
        assert over.wait(PATIENCE)

    with hf.worker():
        handle = wait.enqueue()
        with pytest.raises(TaskFailed, match="ran longer than"):
            handle.result(PATIENCE)
        over.set()
    assert hf.tasks.get(handle).failures == 2


def test_the_rules_of_a_step_and_of_a_hook_hold_too(hf: Holdfast) -> None:
    shop = hf.workflow("shop")
    heard = threading.Event()

    @shop.step(backoff=0, never_retry_on=ValueError)
    def pack() -> None:
        raise ValueError

    @hf.on("run.failed", workflow=shop, backoff=0, never_retry_on=LookupError)
    def mourn(_event: Ended) -> None:
        heard.set()
        raise LookupError

    with hf.worker():
        run = shop.start()
        with pytest.raises(TaskFailed, match="ValueError"):
            run.result(PATIENCE)
        assert heard.wait(PATIENCE)
    counts = sorted((each.title.split()[0], each.failures) for each in hf.tasks.list())
    assert counts == [("mourn", 1), ("pack", 1)]


def test_the_rules_stay_with_the_function_when_other_options_are_chosen(hf: Holdfast) -> None:
    @hf.task(backoff=0, never_retry_on=ValueError)
    def read() -> None:
        raise ValueError

    with hf.worker(), pytest.raises(TaskFailed):
        (handle := read.using(max_attempts=5).enqueue()).result(PATIENCE)
    assert hf.tasks.get(handle).failures == 1
    with pytest.raises(InvalidInput, match="retry_on: belongs to the function"):
        cast("Any", read).using(retry_on=OSError)


@pytest.mark.parametrize("given", ["ValueError", ValueError("no class"), 5, [ValueError, int]])
def test_a_rule_takes_classes_of_errors_alone(hf: Holdfast, given: object) -> None:
    for field in ("retry_on", "never_retry_on"):
        options: dict[str, Any] = {field: given}
        with pytest.raises(InvalidInput, match=f"{field}: .* is no class of errors"):
            hf.task(**options)
        with pytest.raises(InvalidInput, match=f"{field}: .* is no class of errors"):
            hf.workflow(field).step(**options)
