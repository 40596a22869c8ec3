"""Time that a test moves: sleeps, retries, schedules, deadlines, timeouts and leases."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Context, InvalidInput, TaskFailed
from holdfast.testing import Harness, NotEnded, TooManyAttempts
from tests.contract.testing import shop_program as shop

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


def find_process_and_thread() -> list[int]:
    return [os.getpid(), threading.get_ident()]


def test_time_stands_still_until_it_is_moved() -> None:
    with Harness(now=NEW_YEAR) as harness:
        assert harness.now == NEW_YEAR
        shop.send_mail.enqueue("ada").result()
        assert harness.now == NEW_YEAR
        harness.advance("1h30m")
        assert harness.now == NEW_YEAR + timedelta(hours=1, minutes=30)
        harness.advance_to("2030-01-02T00:00:00Z")
        assert harness.now == NEW_YEAR + timedelta(days=1)
        with pytest.raises(InvalidInput, match="has passed"):
            harness.advance_to(NEW_YEAR)
        with pytest.raises(InvalidInput, match="forward"):
            harness.advance(-1)


def test_a_sleep_of_a_week_and_a_signal_take_no_time(store_url: str) -> None:
    with Harness(url=store_url) as harness:
        job = shop.welcome.enqueue("ada")
        harness.advance("6d")
        assert harness.hf.tasks.get(job).state == "scheduled"
        harness.advance("1d")
        shop.hf.signal(job, "confirmed", "mail")
        assert job.result() == "account of ada, confirmed by mail"
        harness.assert_effects(shop.welcome, "open account")
        harness.assert_enqueued(shop.send_mail, to="ada", subject="welcome")


def test_a_coroutine_sleeps_a_week_too(harness: Harness) -> None:
    began = harness.now
    assert harness.run_to_end(shop.welcome_softly.enqueue("ada")) == "softly account of ada"
    assert harness.now - began == timedelta(days=7)


def test_a_signal_that_does_not_come_times_out(harness: Harness) -> None:
    job = shop.welcome.enqueue("ada")
    with pytest.raises(TaskFailed, match="no signal 'confirmed' came in time"):
        harness.run_to_end(job)


def test_running_to_the_end_stops_where_a_person_is_waited_for(harness: Harness) -> None:
    letter = harness.hf.workflow("letter")

    @letter.step
    def draft() -> str:
        return "dear all"

    letter.approval("approve", "Send it?")
    run = letter.start()
    with pytest.raises(NotEnded, match="approve"):
        harness.run_to_end(run)
    harness.hf.approve(run.task("approve"), "yes")
    assert harness.run_to_end(run) == "yes"
    with pytest.raises(NotEnded):
        harness.run_to_end(shop.welcome.enqueue("bob"), within="1h")


def test_a_retry_comes_after_its_backoff_and_not_before(harness: Harness) -> None:
    left = ["first", "second"]

    @harness.hf.task(max_attempts=3, backoff="10s", backoff_max="10s")
    def flaky() -> str:
        if left:
            raise ConnectionError(left.pop())
        return "third time lucky"

    job = flaky.enqueue()
    assert len(harness.run_until_idle()) == 1
    harness.advance("20s")
    assert job.result() == "third time lucky"
    harness.assert_ran(flaky, times=3)


def test_each_tick_of_a_schedule_is_fired_at_its_time() -> None:
    fired: list[datetime] = []
    with Harness(now=NEW_YEAR) as harness:

        @harness.hf.task
        def report() -> None:
            fired.append(harness.now)

        report.schedule("daily", "0 9 * * *")
        harness.advance("3d")
    assert fired == [NEW_YEAR + timedelta(days=day, hours=9) for day in range(3)]


def test_a_run_fails_at_its_deadline(harness: Harness) -> None:
    slow = harness.hf.workflow("slow", deadline="2h")

    @slow.step
    def wait(ctx: Context) -> None:
        ctx.wait_for("never")

    run = slow.start()
    harness.advance("119m")
    assert harness.hf.runs.get(run).status == "running"
    harness.advance("1m")
    with pytest.raises(TaskFailed, match="deadline"):
        run.result()


def test_a_step_that_takes_longer_than_a_lease_keeps_it_and_one_beyond_its_timeout_fails(
    harness: Harness,
) -> None:
    @harness.hf.task(timeout="10m", max_attempts=1)
    def work(minutes: int) -> str:
        harness.advance(f"{minutes}m")
        return f"took {minutes}m"

    assert work.enqueue(9).result() == "took 9m"
    with pytest.raises(TaskFailed, match="ran longer than 600 s"):
        work.enqueue(11).result()


def test_a_step_that_is_silent_for_too_long_fails_and_one_that_tells_its_progress_does_not(
    harness: Harness,
) -> None:
    @harness.hf.task(idle_timeout="5m", max_attempts=1)
    def work(ctx: Context, *, tells: bool) -> str:
        for part in range(3):
            harness.advance("4m")
            if tells:
                ctx.progress(part)
        return "done"

    assert work.enqueue(tells=True).result() == "done"
    with pytest.raises(TaskFailed, match="silent for longer than 300 s"):
        work.enqueue(tells=False).result()


def test_a_step_that_really_takes_longer_than_its_timeout_is_told_of(harness: Harness) -> None:
    @harness.hf.task(timeout=0.01)
    def work() -> str:
        time.sleep(0.02)
        return "done"

    job = work.enqueue()
    with pytest.warns(UserWarning, match=r"'work' really took .* its timeout of 0.01 s"):
        harness.run_until_idle()
    assert job.result() == "done"


def test_a_function_with_a_process_of_its_own_runs_in_the_thread_of_the_test(
    harness: Harness,
) -> None:
    own = harness.hf.task(isolation="process")(find_process_and_thread)
    assert own.enqueue().result() == [os.getpid(), threading.get_ident()]


def test_work_that_goes_on_for_ever_is_ended_also_where_time_is_moved(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.testing.harness.MOST_ATTEMPTS", 20)

    @harness.hf.task
    def poll(ctx: Context) -> None:
        for _ in range(1_000):
            ctx.sleep("1m")

    job = poll.enqueue()
    with pytest.raises(TooManyAttempts, match="poll"):
        harness.run_to_end(job)
    with pytest.raises(TooManyAttempts, match="poll"):
        harness.advance("1d")
