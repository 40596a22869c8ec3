"""Executions: one attempt from its assignment to its report, and the entry of that report."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from holdfast.engine.core.operation import HeldTask, Operation
from holdfast.engine.state.reports import FinalReport
from holdfast.errors import HoldfastError, InvalidInput, ShuttingDown, TaskFailed, summarize_error
from holdfast.logs import FAILURES, LogFields, set_log_subject
from holdfast.model.result import GIVEN_BACK, TransitionResult
from holdfast.model.status import TERMINAL, Status
from holdfast.model.task import Assignment
from holdfast.store.group_commit.entries import Entry
from holdfast.threads import is_program_ending
from holdfast.worker.attempt.attempt_lease import RESENDABLE_ERRORS, AttemptEnded, AttemptLease
from holdfast.worker.attempt.attempt_span import NO_SPAN, AttemptSpan, NoAttemptSpan, trace_attempt
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.durable import InvalidCall, InvalidWait, SignalTimeout
from holdfast.worker.attempt.effect_names import SharedName
from holdfast.worker.attempt.function_options import NO_OPTIONS, FunctionCall, FunctionOptions
from holdfast.worker.attempt.json_values import InvalidEffect, InvalidSignal
from holdfast.worker.attempt.retry_rules import Permanent, RetryAfter, leaf_errors
from holdfast.worker.attempt.waits import Suspended, SuspendedForAnswer
from holdfast.worker.secrets.secret_rules import WrittenKind, redact_or_refuse
from holdfast.worker.store_port import StorePort

if TYPE_CHECKING:
    from datetime import datetime
    from types import TracebackType

    from holdfast.worker.attempt.step_output import StepLog

TRACEBACK_LINES = 30
LONGEST_TEXT = 2_000

log = logging.getLogger("holdfast.worker")
# What steps have raised: a program that shows it in another way need not show these records.
failures = logging.getLogger(FAILURES)
ReportAnswer = TransitionResult | BaseException

# After these errors a function is not tried again: it said so, a child has failed for good, an
# effect cannot be remembered, two branches share a name, an argument is refused, the function would
# wait for its own transaction, or a signal was of another type or did not come in time.
FINAL_ERRORS = (
    Permanent,
    TaskFailed,
    InvalidEffect,
    InvalidSignal,
    SharedName,
    InvalidCall,
    InvalidWait,
    SignalTimeout,
)
# Each of these decides what becomes of the task, whatever else was raised beside it.
_DECISIVE_ERRORS = (AttemptEnded, *FINAL_ERRORS)
# These are reported even when the function was left for a wait: the attempt may report no more,
# or an effect must not be done again.
_ALWAYS_REPORTED = (AttemptEnded, InvalidEffect)


def choose_reported_error(error: BaseException, left: Suspended | None = None) -> BaseException:
    """The error to report of a group: a failure, or else a `RetryAfter`, or else a wait.

    If the function was `left` for a wait and caught it, that wait is reported: the error that the
    function raised instead may follow from its not having waited.
    """
    leaves = list(leaf_errors(error))
    if left is not None and not any(isinstance(leaf, Suspended) for leaf in leaves):
        return next((leaf for leaf in leaves if isinstance(leaf, _ALWAYS_REPORTED)), left)
    if not isinstance(error, BaseExceptionGroup):
        return error
    decisive = [leaf for leaf in leaves if isinstance(leaf, _DECISIVE_ERRORS)]
    if decisive:
        return decisive[0]
    _, failures = error.split((Suspended, RetryAfter))
    later = next((leaf for leaf in leaves if isinstance(leaf, RetryAfter)), leaves[0])
    return failures or later


class UnknownFunction(Exception):
    """No function of this process can run the task as it was asked for."""


class UnfitArguments(UnknownFunction):
    """The function takes other arguments than are stored for the task; `detail` names one."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"{detail}; until then it is held")
        self.detail = detail


class Invocation(NamedTuple):
    """A function with its arguments bound; `encode` turns its result into JSON."""

    function: Callable[..., object]
    arguments: dict[str, Any]
    encode: Callable[[object], object]
    asynchronous: bool
    options: FunctionOptions = NO_OPTIONS
    # The same call for a process of its own, if the function asks for one.
    process_call: FunctionCall | None = None


class PreparedReport(NamedTuple):
    """The report of a function that ran in a process of its own, and what it raised there."""

    report: FinalReport
    raised: str | None
    raised_traceback: str | None


class StepFailed(Exception):
    """A step that is no Python function failed; its message says all there is to say."""

    # Whether the line of commits of the step's item begins again where the line around it is.
    anew = False

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class GivenBack(Exception):
    """Something outside of the step failed: the task is released, and no failure is counted."""


class LimitReached(Exception):
    """The agent has reached its usage limit: the task is released until that lifts."""

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class Functions(Protocol):
    """The functions that a worker can run."""

    def bind(self, assignment: Assignment, context: AttemptContext) -> Invocation:
        """The call that carries out a task; raises `UnknownFunction` when there is none."""

    def has_function(self, workflow: str | None, step: str | None) -> bool:
        """Whether there is a function for a step of a workflow, or for a task without a run."""

    def list_equipped(self, agents: Sequence[str]) -> tuple[str, ...]:
        """Those of some agents that the worker itself has a command for."""

    def equip(self, assignment: Assignment) -> Assignment:
        """The assignment with the command of its agent, if it names no function and no program."""


def _do_nothing(*_: object) -> None:
    pass


class Execution:
    """One attempt under way: it runs its function, and reports how that ended.

    `on_begun` is called right before the function is. `on_vacated` is called with the report of a
    function that has returned: its worker has room for one more task then. `on_finished` is called
    when the answer to that report is there.
    """

    reported = False
    abandoned = False
    returned = False
    began_at: float | None = None
    timeout_at: float | None = None
    idle_timeout: float | None = None
    active_at: float = 0.0
    # The progress that was told last, and whether there is a newer one that is not told yet.
    told_progress: Any = None
    told_progress_at: float = -inf
    has_progress_to_tell = False
    unreported = False
    raised: str | None = None
    raised_traceback: str | None = None
    span: AttemptSpan | NoAttemptSpan = NO_SPAN
    stop: Callable[[], object] | None = None

    def __init__(  # noqa: PLR0913 - what it is, how long it may go on, and who hears of it
        self,
        store: StorePort,
        assignment: Assignment,
        *,
        deadline: float,
        claimed_at: float = 0.0,
        timeout: float | None = None,
        on_begun: Callable[[Execution], object] = _do_nothing,
        on_vacated: Callable[[Execution], object] = _do_nothing,
        on_finished: Callable[[Execution], object] = _do_nothing,
    ) -> None:
        self.store = store
        self.assignment = assignment
        self.claimed_at = claimed_at
        self.timeout = timeout
        self.on_begun = on_begun
        self.on_vacated = on_vacated
        self.on_finished = on_finished
        self.ended = AttemptLease(deadline)
        self.context = AttemptContext(store, assignment, self.ended)
        self.task_id = assignment.task_id
        self.key = (assignment.task_id, assignment.attempt)

    @property
    def deadline(self) -> float:
        return self.ended.deadline

    @deadline.setter
    def deadline(self, moment: float) -> None:
        self.ended.deadline = moment

    @property
    def about(self) -> LogFields:
        """The fields of this attempt in a line of the log."""
        return {
            "run": self.assignment.run_id,
            "task": self.task_id,
            "attempt": self.assignment.attempt,
        }

    def open_step_log(self) -> StepLog | None:
        """The log of the attempt, for what its step prints and logs."""
        return self.context.open_step_log()

    def begin(self) -> bool:
        """Count the timeout from now on; gives whether the function is to be called.

        An attempt that ended before, mostly by a cancel, never begins.
        """
        now = self.store.clock.monotonic()
        if self.ended.is_set() or now >= self.deadline:
            self.ended.set()
            self.finish_with(self.fail, AttemptEnded("it was over before it began"))
            return False
        self.began_at = self.active_at = now
        if self.timeout is not None:
            self.timeout_at = now + self.timeout
        self.on_begun(self)
        return True

    def limit_silence(self, seconds: float) -> None:
        """End the attempt when its function has neither said nor done anything for so long."""
        self.idle_timeout = seconds
        self.context.on_active = self._note_active

    def _note_active(self) -> None:
        self.active_at = self.store.clock.monotonic()

    @property
    def ends_at(self) -> float | None:
        """When the attempt will have gone on for too long, or been silent for too long."""
        if self.idle_timeout is None or self.began_at is None:
            return self.timeout_at
        idle_at = self.active_at + self.idle_timeout
        return idle_at if self.timeout_at is None else min(idle_at, self.timeout_at)

    def describe_overtime(self, now: float) -> str | None:
        """Say which of its limits the attempt has passed, if any."""
        if self.timeout_at is not None and now >= self.timeout_at:
            return f"ran longer than {self.timeout:g} s"
        if self.ends_at is not None and now >= self.ends_at:
            return (
                f"was silent for longer than {self.idle_timeout:g} s: it neither wrote nor "
                "remembered anything"
            )
        return None

    def end(self) -> None:
        """Tell the step that its attempt is over; a coroutine is cancelled, once."""
        self.ended.set()
        stop, self.stop = self.stop, None
        for each in (stop, self.context.interrupt):
            if each is not None:
                each()

    def abandon(self) -> bool:
        """Stop the step and release its task, if the step can be stopped; gives whether it can."""
        if self.reported or (self.stop is None and self.context.interrupt is None):
            return False
        self.abandoned = True
        self.end()
        return True

    def run_function(self, invocation: Invocation) -> None:
        """Run a plain function in this thread, and report; the thread waits for no answer."""
        set_log_subject(self)
        with trace_attempt(self.store, self.assignment) as self.span:
            try:
                result = invocation.function(**invocation.arguments)
            except BaseException as error:  # noqa: BLE001 - whatever a step raises is its report
                self._report_raised(invocation, error)
            else:
                self._report_result(invocation, result)

    async def run_coroutine(self, invocation: Invocation) -> None:
        """Run a coroutine function on the worker's loop, and report."""
        self.context.asynchronous = True
        set_log_subject(self)
        with trace_attempt(self.store, self.assignment) as self.span:
            try:
                awaitable = invocation.function(**invocation.arguments)
                if not isinstance(awaitable, Awaitable):
                    message = f"{invocation.function!r} gave no awaitable"
                    raise TypeError(message)  # noqa: TRY301 - reported like any other failure
                result = await awaitable
                await self.context.refuse_unawaited()
            except BaseException as error:  # noqa: BLE001 - whatever a step raises is its report
                await self.context.end_effects()
                self._report_raised(invocation, error)
            else:
                self._report_result(invocation, result)

    def _report_result(self, invocation: Invocation, result: object) -> None:
        if isinstance(result, PreparedReport):
            self.finish_with(self.pass_on, result)
            return
        caught = self.context.refusal or self.context.suspension
        if caught is None:
            self.finish_with(self.complete, invocation, result)
            return
        if isinstance(caught, Suspended):
            reason = "it runs again when that is over, and `why` names it"
            log.warning("%s returned after it was left for a wait: %s", self, reason)
        self._report_raised(invocation, caught)

    def _report_raised(self, invocation: Invocation, raised: BaseException) -> None:
        # The function may have caught the wait, as `return_exceptions=True` does.
        left = None if self.context.ended else self.context.suspension
        error = self.context.refusal or choose_reported_error(raised, left)
        if isinstance(error, Suspended):
            self.finish_with(self.suspend, error)
            return
        retryable = invocation.options.retry_rules.allow_retry(error)
        self.finish_with(partial(self.fail, retryable=retryable), error)
        if not isinstance(error, RetryAfter):
            self.span.fail(self.raised or type(error).__name__)

    def finish_with(self, report: Callable[..., bool], *arguments: Any) -> None:
        """Report after the function has returned; the execution finishes with the answer."""
        self.returned = True
        sent = False
        try:
            self.context.give_back_leases()
            # Before the report: whoever hears of the end finds the whole log.
            self.context.close_step_log()
            sent = report(*arguments)
        finally:
            if not sent:
                self.unreported = True
                self._free_capacity()
                self.on_finished(self)

    def _free_capacity(self) -> None:
        """Let the worker take one more task; the commit of the report already hands it over."""
        vacated, self.on_vacated = self.on_vacated, _do_nothing
        vacated(self)

    def complete(self, invocation: Invocation, result: object) -> bool:
        try:
            output = redact_or_refuse(
                WrittenKind.OUTPUT, invocation.encode(result), self.context.clean
            )
            return self._report(self.store.work.reports.complete, output)
        except Exception as error:  # noqa: BLE001 - a result that is not JSON is a failure
            return self.fail(error, retryable=not isinstance(error, InvalidInput))

    def pass_on(self, prepared: PreparedReport) -> bool:
        """Send the report of a function that ran in a process of its own."""
        self.raised, self.raised_traceback = prepared.raised, prepared.raised_traceback
        if prepared.raised is not None:
            self.span.fail(prepared.raised)
        return self._report(lambda _: prepared.report)

    def suspend(self, suspended: Suspended) -> bool:
        """Release the task until its wait is over, or until its question is answered."""
        reports, clean = self.store.work.reports, self.context.clean
        notes = suspended.notes
        try:
            if isinstance(suspended, SuspendedForAnswer):
                # The remembered question is redacted like the one that people read.
                asked, kept = (
                    redact_or_refuse(WrittenKind.QUESTION, each, clean)
                    for each in (suspended.question, notes)
                )
                return self._report(reports.ask, asked, notes=kept, **self._name_draft("draft"))
            redact_or_refuse(WrittenKind.NAME, notes, clean, "wait")
            draft = self._name_draft("draft")
            return self._report(reports.suspend, suspended.wait, notes=notes, **draft)
        except Exception as error:  # noqa: BLE001 - a question that cannot be kept is a failure
            return self.fail(error, retryable=not isinstance(error, InvalidInput))

    def fail(self, error: BaseException, *, retryable: bool = True) -> bool:
        """Report a failure, unless the attempt has ended; gives whether a report was sent."""
        if isinstance(error, AttemptEnded) or self.context.ended:
            # Released only now, because nothing of the step runs any more.
            return self.abandoned and self.in_time() and self.release()
        if is_program_ending():
            # An ending interpreter starts no threads, so the error says nothing of the step.
            told = self._redact(repr(error))
            log.warning("%s is given back, as the program ends: %s", self, told)
            return self.release()
        if isinstance(error, GivenBack):
            log.warning("%s is given back: %s", self, self._redact(str(error)))
            return self.release()
        if isinstance(error, RetryAfter):
            return self._postpone(error)
        if isinstance(error, LimitReached):
            log.warning("%s is given back: %s", self, self._redact(str(error)))
            return self._report(
                self.store.work.reports.reach_limit, error.until, **self._name_draft("draft")
            )
        shown = describe_traceback(error)
        if self.assignment.work is None:
            self.raised_traceback = self._redact(shown)
            self.context.log_end(self.raised_traceback)
        described = encode_error(error, self._redact, shown)
        self.raised = summarize_error(described)
        again = retryable and not isinstance(error, FINAL_ERRORS)
        options: dict[str, object] = self._name_draft("left")
        if isinstance(error, StepFailed):
            again &= error.retryable
            options |= {"anew": True} if error.anew else {}
        return self._report(self.store.work.reports.fail, described, retryable=again, **options)

    def release(self) -> bool:
        """Release the task; no failure is counted."""
        return self._report(self.store.work.reports.release, **self._name_draft("draft"))

    def _name_draft(self, name: str) -> dict[str, object]:
        """The commit of what the attempt leaves, for its report; mostly there is none."""
        draft = self.context.draft
        return {} if draft is None else {name: draft}

    def _postpone(self, error: RetryAfter) -> bool:
        """Release the task until the time that its function names."""
        told = self._redact(f"given back until {error}")
        log.warning("%s is %s", self, told)
        self.context.log_end(f"{told}\n")
        return self._report(partial(self.store.work.reports.release, until=error.until))

    def _log_answer(self, answer: ReportAnswer) -> None:
        """Log the answer to a report, if the report was refused or not written."""
        if isinstance(answer, BaseException):
            told = self._redact(str(answer))
            log.error("%s: its report was not written, its lease will run out: %s", self, told)
        elif not answer.ok:
            # A command may have released its task itself, at a usage limit: that is no mistake.
            level = logging.DEBUG if answer.detail == GIVEN_BACK else logging.WARNING
            log.log(level, "%s: its report was refused: %s", self, answer.detail or answer.reason)
        else:
            self._log_outcome(answer)

    def _redact(self, text: str) -> str:
        return str(redact_or_refuse(WrittenKind.ERROR, text, self.context.clean))

    def _log_outcome(self, answer: TransitionResult) -> None:
        if answer.status in TERMINAL:
            self.span.record_task(str(answer.status))
        if self.raised is not None:
            again = "it is tried again" if answer.status == "queued" else "it is not tried again"
            level = logging.ERROR if answer.status == Status.FAILED else logging.WARNING
            shown = f"\n{self.raised_traceback}" if self.raised_traceback else ""
            failures.log(
                level,
                "%s raised %s; %s%s",
                self,
                self.raised,
                answer.detail or again,
                shown.rstrip(),
            )

    def _report(
        self, make: Callable[..., FinalReport], *arguments: object, **options: object
    ) -> bool:
        # Set before the report is sent: its commit tells everyone that the attempt has ended.
        self.reported = True
        held = HeldTask(task_id=self.task_id, fence=self.assignment.attempt)
        report = make(held, *arguments, **options)
        try:
            # A timeout reports before the function has returned: the function still has its room.
            self.send(ReportEntry(report, self, last=self.returned))
        except ShuttingDown as error:
            log.warning("%s: %s; its lease will run out", self, error)
            return False
        return True

    def send(self, entry: ReportEntry) -> None:
        self.store.work.tell(entry, self._free_capacity if entry.last else _do_nothing)

    def in_time(self) -> bool:
        return self.store.clock.monotonic() < self.deadline

    def on_answer(self, answer: ReportAnswer, *, last: bool) -> None:
        try:
            self._log_answer(answer)
        finally:
            if last:
                self.on_finished(self)

    def __str__(self) -> str:
        return f"attempt {self.assignment.attempt} of {self.assignment.name} ({self.task_id})"


class ReportSender(Protocol):
    """The sender of a report, which also receives the answer to it."""

    def send(self, entry: ReportEntry) -> None: ...

    def in_time(self) -> bool: ...

    def on_answer(self, answer: ReportAnswer, *, last: bool) -> None: ...


class ReportEntry(Entry[Operation]):
    """The entry of a report: sent again while the store is away and the lease lasts.

    A report that is sent twice counts once. No thread waits: the thread that brings the error sends
    the report again.
    """

    __slots__ = ("_sender", "last")

    def __init__(self, report: FinalReport, sender: ReportSender, *, last: bool) -> None:
        super().__init__(report)
        self._sender = sender
        self.last = last

    def on_reply(self, reply: ReportAnswer) -> None:
        sender = self._sender
        if isinstance(reply, RESENDABLE_ERRORS) and sender.in_time():
            # If it cannot be sent again, the store's error is the better reason.
            with suppress(Exception):
                sender.send(self)
                return
        sender.on_answer(reply, last=self.last)


def describe_traceback(error: BaseException) -> str:
    """The traceback of an error, from the step's own code on.

    A `StepFailed` has none, and neither has an error of Holdfast's that was raised by no step.
    """
    if isinstance(error, StepFailed):
        return ""
    if isinstance(error, HoldfastError) and error.__traceback__ is None:
        return ""
    first = error.__traceback__
    while first is not None and _is_own_code(first):
        first = first.tb_next
    if first is None and not isinstance(error, TimeoutError):
        first = error.__traceback__
    return "".join(traceback.format_exception(type(error), error, first))


def _is_own_code(found: TracebackType) -> bool:
    return str(found.tb_frame.f_globals.get("__name__")).startswith("holdfast.worker.")


def encode_error(
    error: BaseException, clean: Callable[[str], str], shown: str
) -> dict[str, object]:
    """An exception as JSON that every store can keep; `clean` takes the secrets out of it.

    `shown` is its traceback, of which the end is kept.
    """
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the failure
        message = "its message cannot be shown"
    lines = clean(shown).splitlines()[-TRACEBACK_LINES:]
    return {
        "type": _printable(clean(type(error).__name__)),
        "message": _printable(clean(message)),
        "traceback": [_printable(line) for line in lines],
    }


def _printable(text: str) -> str:
    return text[:LONGEST_TEXT].encode("utf-8", "replace").decode().replace("\x00", "�")
