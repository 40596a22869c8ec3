"""Shared reads: what many threads want to read at once is read by one, on one snapshot (ADR 38).

So hundreds of threads need one connection, and their questions are asked together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, TypeVar, cast

from holdfast.clock import Clock
from holdfast.engine.core.thread_wakeups import WAKEUPS, ThreadWaiter
from holdfast.errors import StoreGone, StoreUnreachable
from holdfast.store.database import Database, Transaction
from holdfast.store.deadlocks import is_writer_thread
from holdfast.threads import Threads

Q = TypeVar("Q")
A = TypeVar("A")
# Reads the answers to many questions, in their order.
ReadAll = Callable[[Transaction, list[Any]], Sequence[Any]]


class _Question:
    __slots__ = ("answer", "asked_at", "error", "leads", "read_all", "waiter", "what")

    def __init__(self, read_all: ReadAll, what: object) -> None:
        self.read_all = read_all
        self.what = what
        self.answer: Any = None
        self.error: Exception | None = None
        self.leads = False
        self.asked_at = 0.0
        self.waiter: ThreadWaiter | None = None


class SharedReads:
    """A thread that asks while another one reads is answered by the next read.

    The first of those who wait reads for all of them, so a thread alone reads what it asks for
    without another thread.
    """

    def __init__(self, database: Database, threads: Threads, clock: Clock, patience: float) -> None:
        self._database = database
        self._clock = clock
        self._patience = patience
        self._lock = threads.lock()
        self._waiting: deque[_Question] = deque()
        self._somebody_reads = False

    @property
    def waiting(self) -> int:
        """How many wait for the next read."""
        return len(self._waiting)

    def ask(self, read_all: Callable[[Transaction, list[Q]], Sequence[A]], what: Q) -> A:
        """The answer of `read_all` to `what`, read after this call began."""
        if is_writer_thread():
            # Whoever reads may wait for threads that this one has yet to wake.
            return self._database.view(lambda tx: read_all(tx, [what]))[0]
        question = _Question(read_all, what)
        with self._lock:
            question.leads = not self._somebody_reads
            self._somebody_reads = True
            if not question.leads:
                question.waiter = ThreadWaiter(WAKEUPS)
                question.asked_at = self._clock.monotonic()
                self._waiting.append(question)
        if question.waiter is not None:
            self._wait(question, question.waiter)
        if question.leads:
            self._read_with_others(question)
        if question.error is not None:
            raise question.error
        return cast("A", question.answer)

    def share(self, read: Callable[[Transaction], A]) -> A:
        """What `read` gives, on a snapshot that others may read as well."""
        return cast("A", self.ask(_read_each, read))

    def _wait(self, question: _Question, waiter: ThreadWaiter) -> None:
        try:
            waiter.wait()
        except BaseException:
            with self._lock:
                if question in self._waiting:
                    self._waiting.remove(question)
            if question.leads:
                self._hand_over()
            raise

    def _read_with_others(self, leader: _Question) -> None:
        group = [leader]
        answered: list[ThreadWaiter] = []
        try:
            # Threads that have just been told of a commit mostly ask too, and share this read.
            WAKEUPS.wait_behind_others()
            with self._lock:
                group += self._waiting
                self._waiting.clear()
            # An empty context: log lines about the read do not belong to the step of this thread.
            Context().run(self._answer, group)
            if leader.error is not None and _concerns_all(leader.error):
                self._fail_late(leader.error, group)
            answered = [each.waiter for each in group[1:] if each.waiter is not None]
        except BaseException:
            with self._lock:
                self._waiting.extendleft(reversed(group[1:]))
            raise
        finally:
            # An interrupt that comes meanwhile leaves nobody waiting.
            try:
                self._hand_over()
            finally:
                WAKEUPS.add(*answered)

    def _fail_late(self, error: Exception, group: list[_Question]) -> None:
        """Fail those, too, who have waited for most of their patience while a read failed.

        The next read may take a whole patience again. Who asked later has it for the next read.
        """
        asked_before = self._clock.monotonic() - self._patience / 2
        with self._lock:
            while self._waiting and self._waiting[0].asked_at <= asked_before:
                group.append(self._waiting.popleft())
        _fail_questions(group, error)

    def _hand_over(self) -> None:
        with self._lock:
            self._somebody_reads = bool(self._waiting)
            following = self._waiting.popleft() if self._waiting else None
            if following is not None:
                following.leads = True
        if following is not None and following.waiter is not None:
            following.waiter.wake()

    def _answer(self, group: Sequence[_Question]) -> None:
        try:
            self._database.view(lambda tx: _read_answers(tx, group))
        except Exception as error:  # noqa: BLE001 - any error may belong to one caller
            if len(group) == 1 or _concerns_all(error):
                _fail_questions(group, error)
            else:
                self._answer_separately(group)

    def _answer_separately(self, group: Sequence[_Question]) -> None:
        for index, each in enumerate(group):
            self._answer([each])
            if each.error is not None and _concerns_all(each.error):
                # The others would get the same error, each after as long a wait.
                _fail_questions(group[index + 1 :], each.error)
                return


def _concerns_all(error: Exception) -> bool:
    return isinstance(error, StoreGone | StoreUnreachable)


def _fail_questions(questions: Sequence[_Question], error: Exception) -> None:
    for each in questions:
        each.error = error


def _read_answers(tx: Transaction, group: Sequence[_Question]) -> None:
    kinds: dict[ReadAll, list[_Question]] = {}
    for each in group:
        kinds.setdefault(each.read_all, []).append(each)
    for read_all, asked in kinds.items():
        for each, answer in zip(asked, read_all(tx, [e.what for e in asked]), strict=True):
            each.answer = answer


def _read_each(tx: Transaction, reads: Sequence[Callable[[Transaction], Any]]) -> list[Any]:
    return [read(tx) for read in reads]
