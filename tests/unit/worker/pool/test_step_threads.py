"""The threads that run plain functions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from holdfast.threads import RunningThread, SystemThreads
from holdfast.worker.pool.step_threads import StepThreads

PATIENCE = 30
Job = Callable[[], object]


class Counted(SystemThreads):
    """Real threads, counted, and no more of them than a test allows."""

    def __init__(self, most: int = 1_000) -> None:
        self.most = most
        self.started = 0

    def start(self, name: str, target: Callable[[], None]) -> RunningThread:
        if self.started == self.most:
            raise RuntimeError("can't start new thread")
        self.started += 1
        return super().start(name, target)


def step_threads_of(threads: Counted, limit: int = 1_000) -> StepThreads[Job]:
    return StepThreads(threads, "step_threads", do, limit=limit)


def do(job: Job) -> None:
    job()


def test_jobs_that_wait_for_one_another_all_begin() -> None:
    threads = Counted()
    meeting = threading.Barrier(20, timeout=PATIENCE)
    with closing(step_threads_of(threads)) as step_threads:
        step_threads.run([meeting.wait] * 20)
    assert threads.started == 20


def test_a_thread_that_has_nothing_left_is_called_again() -> None:
    threads = Counted()
    with closing(step_threads_of(threads)) as step_threads:
        for _ in range(50):
            done = threading.Event()
            step_threads.run([done.set])
            assert done.wait(PATIENCE)
            while not step_threads._idle:  # noqa: SLF001 - until it waits again
                pass
    assert threads.started == 1


def test_closing_waits_for_what_was_begun_and_what_waits() -> None:
    began, go_on, done = threading.Event(), threading.Event(), []
    step_threads = step_threads_of(Counted(most=1))

    def first() -> None:
        began.set()
        assert go_on.wait(PATIENCE)
        done.append("first")

    step_threads.run([first])
    assert began.wait(PATIENCE)
    with pytest.raises(RuntimeError):
        step_threads.run([lambda: done.append("second")])
    closer = threading.Thread(target=step_threads.close)
    closer.start()
    go_on.set()
    closer.join(PATIENCE)
    assert done == ["first", "second"]


def ends_after(closer: threading.Thread, go_on: threading.Event) -> None:
    closer.join(0.05)
    assert closer.is_alive()
    go_on.set()
    closer.join(PATIENCE)
    assert not closer.is_alive()


class Slow:
    """A thread that tells who started it of its life when something has happened, if it may."""

    def __init__(self, running: RunningThread, caller: int, happened: threading.Event) -> None:
        self.join = running.join
        self._running, self._caller, self._happened = running, caller, happened

    def is_alive(self) -> bool:
        if threading.get_ident() == self._caller:
            self._happened.wait(0.05)
        return self._running.is_alive()


class Overtaken(Counted):
    """Whoever starts the second thread has noted it only when that one has done its job."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = threading.Event()

    def start(self, name: str, target: Callable[[], None]) -> RunningThread:
        is_first = not self.started
        started = super().start(name, target)
        return Slow(started, threading.get_ident(), self.noted) if is_first else started


def test_closing_waits_for_who_was_started_while_another_is_noted() -> None:
    threads = Overtaken()
    stuck, last, go_on = (threading.Event() for _ in range(3))
    step_threads = step_threads_of(threads)

    def wait_for_the_last() -> None:
        threads.noted.set()
        last.wait(PATIENCE)

    def do_the_last() -> None:
        last.set()
        go_on.wait(PATIENCE)

    step_threads.run([lambda: stuck.wait(PATIENCE)])
    step_threads.run([wait_for_the_last, do_the_last])
    assert last.wait(PATIENCE)
    stuck.set()
    closer = threading.Thread(target=step_threads.close)
    closer.start()
    ends_after(closer, go_on)


def test_closing_waits_for_who_is_started_meanwhile() -> None:
    """The only one at work starts somebody for the last job, and goes when that has begun."""
    began, stuck, last, go_on = (threading.Event() for _ in range(4))
    step_threads = step_threads_of(Counted())

    def do_the_last() -> None:
        last.set()
        go_on.wait(PATIENCE)

    def leave_one_behind() -> None:
        began.set()
        stuck.wait(PATIENCE)
        step_threads.run([lambda: last.wait(PATIENCE), do_the_last])

    step_threads.run([leave_one_behind])
    assert began.wait(PATIENCE)
    closer = threading.Thread(target=step_threads.close)
    closer.start()
    while not step_threads._closed:  # noqa: SLF001 - until it waits
        pass
    stuck.set()
    ends_after(closer, go_on)


def test_a_job_for_which_there_is_no_thread_can_be_taken_back() -> None:
    step_threads = step_threads_of(Counted(most=0))
    jobs: list[Job] = [lambda: None, lambda: None]
    with pytest.raises(RuntimeError, match="can't start"):
        step_threads.run(jobs)
    assert step_threads.take_unbegun(lambda _: True) == jobs
    assert step_threads.take_unbegun(lambda _: True) == []


def test_a_job_is_done_though_there_is_no_thread_for_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[int] = []
    with closing(step_threads_of(Counted(most=1))) as step_threads:
        step_threads.run([lambda: done.append(1), lambda: done.append(2)])
    assert done == [1, 2]
    assert "no thread for the next step" in caplog.text


def test_jobs_that_do_not_block_share_one_thread_and_one_that_stands_by() -> None:
    threads, done = Counted(), []
    with closing(step_threads_of(threads)) as step_threads:
        step_threads.run([lambda: done.append(threading.get_ident())] * 5_000)
    assert len(done) == 5_000
    assert threads.started < 100


def test_a_job_begins_though_the_only_one_at_work_is_stuck() -> None:
    began, go_on = threading.Event(), threading.Event()
    with closing(step_threads_of(Counted())) as step_threads:
        step_threads.run([lambda: go_on.wait(PATIENCE)])
        step_threads.run([began.set])
        assert began.wait(PATIENCE)
        go_on.set()


def test_a_job_that_is_offered_is_done_by_a_thread_that_stands_by() -> None:
    took, stood = threading.Event(), threading.Event()
    meeting = threading.Barrier(2, timeout=PATIENCE)
    with closing(step_threads_of(Counted())) as step_threads:
        assert not step_threads.try_next(took.set)
        step_threads.run([meeting.wait])
        step_threads.run([stood.set])
        assert stood.wait(PATIENCE)
        while not step_threads._idle:  # noqa: SLF001 - until it waits again
            pass
        assert step_threads.try_next(took.set)
        assert took.wait(PATIENCE)
        meeting.wait()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_job_that_was_left_to_a_thread_that_dies_is_done_by_another() -> None:
    done = threading.Event()
    with closing(step_threads_of(Counted())) as step_threads:

        def die() -> None:
            step_threads.run([done.set], free=True)
            raise SystemError("for a test")

        step_threads.run([die])
        assert done.wait(PATIENCE)


def test_functions_and_coroutines_take_turns_in_the_order_in_which_they_came() -> None:
    begun: list[Job] = []

    def coroutine() -> None:
        raise AssertionError("it runs on a loop, and in no thread")

    threads: StepThreads[Job] = StepThreads(
        Counted(),
        "step_threads",
        do,
        limit=2,
        is_coroutine=lambda job: job is coroutine,
        begin_coroutines=begun.extend,
    )
    began, go_on, last = threading.Event(), threading.Event(), threading.Event()

    def block() -> None:
        began.set()
        assert go_on.wait(PATIENCE)

    with closing(threads) as step_threads:
        step_threads.run([coroutine, block, coroutine, last.set])
        assert began.wait(PATIENCE)
        assert len(begun) == 1
        assert step_threads.has_jobs_waiting
        step_threads.end_coroutine_turn()
        assert len(begun) == 2
        assert not last.is_set()
        step_threads.end_coroutine_turn()
        assert last.wait(PATIENCE)
        assert not step_threads.has_jobs_waiting
        go_on.set()


def test_what_needs_no_turn_begins_although_as_many_run_as_may() -> None:
    go_on, first, waits = threading.Event(), threading.Event(), threading.Event()
    began = threading.Event()

    def block() -> None:
        began.set()
        assert go_on.wait(PATIENCE)

    with closing(step_threads_of(Counted(), limit=1)) as step_threads:
        step_threads.run([block, waits.set])
        assert began.wait(PATIENCE)
        step_threads.run_first(first.set)
        assert first.wait(PATIENCE)
        assert not waits.is_set()
        go_on.set()
        assert waits.wait(PATIENCE)


def test_no_more_jobs_run_at_one_instant_than_may() -> None:
    lock, running, most = threading.Lock(), 0, 0
    meeting = threading.Barrier(3, timeout=PATIENCE)

    def meet() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait()
        with lock:
            running -= 1

    with closing(step_threads_of(Counted(), limit=3)) as step_threads:
        step_threads.run([meet] * 30)
    assert most == 3
