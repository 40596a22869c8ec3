"""Worker: claims the tasks that it has room for, runs them, and keeps their leases."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from math import inf
from typing import Self

from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import MOST_AT_ONCE
from holdfast.errors import HoldfastError, InvalidInput, ShuttingDown, StoreError, StoreGone
from holdfast.model.task import Assignment
from holdfast.model.units import parse_grace
from holdfast.model.worker import DRAIN
from holdfast.stop_signals import stop_between_transactions
from holdfast.store.deadlocks import is_writer_thread, refuse_deadlock
from holdfast.threads import is_program_ending, shorten_switch_interval
from holdfast.worker.attempt.execution import (
    Execution,
    Functions,
    Invocation,
    UnfitArguments,
    UnknownFunction,
)
from holdfast.worker.attempt.step_output import step_output
from holdfast.worker.pool.claims_ahead import LONGEST_WAIT, ClaimsAhead
from holdfast.worker.pool.disk import find_worker_disk
from holdfast.worker.pool.lease_renewal import Heartbeat
from holdfast.worker.pool.lifecycle import Worker
from holdfast.worker.pool.presence import Presence
from holdfast.worker.pool.pull import Puller, RunNowClaims
from holdfast.worker.pool.runner import Arrival, BoundStep, Runner
from holdfast.worker.pool.shutdown import (
    describe_end_of_grace,
    describe_unstoppable,
    describe_waiting,
    end_process_by_signal,
    evict_executions,
    give_back_executions,
    record_signals,
)
from holdfast.worker.pool.version_holds import VersionHolds
from holdfast.worker.pool.worker_attempts import LOOK_EVERY, WorkerAttempts
from holdfast.worker.pool.worker_options import WorkerOptions, claimed_at_once
from holdfast.worker.secrets.secret_rules import Cleaner
from holdfast.worker.store_port import StorePort

SIGNAL_CHECK_EVERY = 0.2

log = logging.getLogger("holdfast.worker")


class StoreWorker(Worker):
    """The worker of a store, which is an engine here or a server elsewhere."""

    def __init__(
        self,
        store: StorePort,
        functions: Functions,
        options: WorkerOptions,
        clean: Cleaner | None = None,
    ) -> None:
        self._store = store
        self._clean = clean
        self._functions = functions
        self._options = options
        self._signals: Sequence[int] = ()
        self._told_to_go: str | StoreGone | None = None
        self._stopping = store.threads.event()
        self._stopped = store.threads.event()
        self._wake = store.threads.event()
        self._lock = store.threads.lock()
        self._held = WorkerAttempts(store)
        self._arrived: list[Arrival] = []
        self._busy = 0
        self._ahead = ClaimsAhead(store.clock) if options.claims_ahead else None
        self._claim_sent_at = store.clock.monotonic()
        self._started = self._has_left = False
        self._waits_for_steps = True
        # Whether the worker's own thread sleeps for longer than it may while steps wait.
        self._sleeps_long = False
        self._puller = Puller(
            store, may_pull=self._may_pull, pull_again=self._wake.set, on_shutdown=self.drain
        )
        # Bound once, instead of for each step.
        self._on_vacated, self._on_finished = self._free_capacity, self._forget_execution
        self._runner = Runner(
            store.threads,
            self._make_steps,
            self._return_without_thread,
            limit=options.limit,
            on_steps_waiting=self._wake_from_long_sleep,
        )
        self._heartbeat = Heartbeat(store, self._held.list, self._runner.look_at_loop)
        self._on_begun = self._heartbeat.note_begun
        self._version_holds = VersionHolds(store, functions, options)
        self._equipped = functions.list_equipped(options.agents)
        self._presence = Presence(store, options, self._equipped)
        self._run_now = RunNowClaims(store, options, equipped=self._equipped)
        self._disk = find_worker_disk(store, options)

    def start(self) -> Self:
        """Begin to take and run tasks in the background; `stop` ends it."""
        with self._lock:
            if self._started or self._stopping.is_set():
                raise InvalidInput("worker", "starts only once; make another with hf.worker()")
            self._started = True
        try:
            self._disk.check()
            self._options = self._presence.begin()
            self._run_now.use_options(self._options)
            self._version_holds.begin(self._options)
        except BaseException:
            self._presence.leave()
            self._stopped.set()
            raise
        # Logged before the first step can log anything.
        log.info("%s has started", self)
        threads = self._store.threads
        self._standing_claim = self._store.work.standing_claim(
            self._options.named,
            agents=self._options.agents,
            tags=self._options.offered_tags,
            room=self._room,
            passing=self._version_holds.list_tasks_left,
            deliver=self._deliver,
        )
        self._standing_claim.bare, self._standing_claim.equipped = False, self._equipped
        self._unsubscribe: Sequence[Callable[[], None]] = (
            self._store.work.add_standing_claim(self._standing_claim),
            self._store.on_hint(self._on_hint, served=False),
            self._store.on_attempts_ended(self._held.end),
            self._store.on_gone(self._stop_as_told),
        )
        shorten_switch_interval()
        step_output.begin()
        self._heartbeat.start()
        self._runner.start()
        threads.start("holdfast-worker", self._run_loop)
        return self

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self, *, grace: float | str | timedelta | None = None) -> None:
        limit = None if grace is None else parse_grace("grace", grace)
        waits = self._started and not self._runner.is_inside() and not is_writer_thread()
        waits = waits and self._waits_for_steps
        if waits and not self._stopped.is_set():
            refuse_deadlock("stop(…)", self._store.file)
        self.drain()
        if waits and limit is not None:
            if begun := self._held.list_begun():
                log.warning("%s", describe_waiting(begun, limit))
            self._wait_for_steps(limit)
        elif waits:
            try:
                self._stopped.wait()
            except KeyboardInterrupt:
                self._wait_after_interrupt()
                raise

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        # Ctrl-C cancels the main coroutine of a program.
        if kind is not None and issubclass(kind, KeyboardInterrupt | asyncio.CancelledError):
            self._wait_after_interrupt()
        else:
            self.stop()

    def _wait_after_interrupt(self) -> None:
        """Let running steps finish in the time that they have, and say so."""
        self.drain()
        self._warn_of_interrupt()
        self._wait_for_steps(self._options.grace_seconds)

    def _wait_for_steps(self, grace: float | None) -> None:
        """Let running steps finish in the time that is left to them; Ctrl-C ends that."""
        # What cannot be stopped is waited for no longer, also when the store is closed.
        self._waits_for_steps = False
        try:
            if self._stopped.wait(grace) or self._stop_what_runs(grace or 0):
                return
        except KeyboardInterrupt:
            self.give_back()
            self._presence.leave()
            raise
        # The program ends now, mostly, in the middle of what cannot be stopped.
        self._presence.leave()

    def run(self) -> None:
        with stop_between_transactions(), record_signals() as heard:
            self._signals = heard
            self.start()
            while not (heard or self._stopping.wait(SIGNAL_CHECK_EVERY)):
                pass
            if heard:
                self._warn_of_interrupt()
            self.drain()
            ends_at = self._find_end_of_grace() if heard else inf
            while not self._stopped.wait(SIGNAL_CHECK_EVERY):
                if len(heard) > 1:
                    self.give_back()
                    self._end_process(heard[-1])
                elif self._store.clock.monotonic() >= ends_at:
                    ends_at = inf
                    if not self._stop_what_runs(self._options.grace_seconds or 0):
                        self._end_process(heard[-1])
        if isinstance(self._told_to_go, StoreGone):
            raise self._told_to_go

    def _end_process(self, number: int) -> None:
        """End this process in the middle of its functions; the worker is listed no longer."""
        self._presence.leave()
        end_process_by_signal(number)

    def _find_end_of_grace(self) -> float:
        grace = self._options.grace_seconds
        return inf if grace is None else self._store.clock.monotonic() + grace

    def _warn_of_interrupt(self) -> None:
        told = describe_waiting(self._held.list_begun(), self._options.grace_seconds)
        log.warning("interrupted; %s", told)

    def _stop_what_runs(self, grace: float) -> bool:
        """Stop what still runs after the time that it had; gives whether all could be stopped."""
        log.warning("%s", describe_end_of_grace(grace, self._held.list_begun()))
        self.give_back()
        left = self._held.list_begun()
        if left:
            log.warning("%s", describe_unstoppable(left))
        return not left

    def give_back(self) -> None:
        self.drain()
        give_back_executions(self._held.list, self._store.clock, self._stopped.wait)

    def drain(self) -> None:
        self._stopping.set()
        self._wake.set()

    def _stop_as_told(self, told: str | StoreGone | None) -> None:
        """Stop as told by an operator; evicted or without a store, the worker keeps no leases."""
        if told is None:
            return
        if not self._stopping.is_set():
            log.warning("%s was told to go: %s", self, told)
        self._told_to_go = told
        self.drain()
        if told != DRAIN:
            self._return_waiting(lambda _: True)
            evict_executions(self._held.list())

    def __str__(self) -> str:
        return str(self._options)

    def _room(self) -> int:
        """How many more tasks the worker takes; called by the writer right before its claim."""
        # Leases count from before the request, on a clock that counts suspend.
        self._claim_sent_at = self._store.clock.monotonic()
        # After a signal no step may be claimed, also before `run` has reacted to the signal.
        if self._signals or self._stopping.is_set() or is_program_ending() or self._disk.low:
            return 0
        most = self._most_claimed()
        self._standing_claim.most = min(MOST_AT_ONCE, claimed_at_once(most))
        return most - self._busy

    def _most_claimed(self) -> int:
        """How many tasks the worker has at most, those included that wait for their turn."""
        if self._ahead is None:
            return self._options.limit
        with self._lock:
            return self._options.limit + self._ahead.count()

    def _deliver(self, claimed: Claimed) -> None:
        if not claimed:
            return
        arrival = Arrival(claimed, self._claim_sent_at)
        self._held.note_claim()
        with self._lock:
            self._busy += len(claimed)
        # There may be more work; a worker without room gets it with the report that makes room.
        self._puller.hinted |= self._standing_claim.may_have_more and self._standing_claim.free > 0
        # An idle step thread begins at once; waking the worker's own thread would take longer.
        taken = self._runner.try_begin(arrival)
        if not taken:
            with self._lock:
                self._arrived.append(arrival)
        if not taken or self._puller.hinted:
            self._wake.set()

    def _on_hint(self) -> None:
        """React to a hint that there may be work which this process did not make ready."""
        self._puller.hinted = True
        self._held.note_hint()
        # This thread sends the pull; waking the worker's own thread would take longer.
        asked = False
        with suppress(HoldfastError):
            asked = self._puller.pull(self._standing_claim)
        # The hint may also be about a task that runs here.
        if not asked or self._held:
            self._wake.set()

    def _free_capacity(self, execution: Execution) -> None:
        with self._lock:
            self._busy -= 1
            if self._ahead is not None and execution.began_at is not None:
                self._ahead.note_end(execution.began_at)

    def _run_loop(self) -> None:
        try:
            while True:
                self._wake.clear()
                if is_program_ending():
                    self._stopping.set()
                if self._stopping.is_set():
                    self._return_waiting(lambda _: True)
                    if self._leave() and not self._held:
                        return
                self._run_once()
        finally:
            self._close()

    def _leave(self) -> bool:
        """End the standing claim; gives whether no claimed task is on its way here any longer."""
        if not self._has_left:
            self._has_left = True
            self._unsubscribe[0]()
            try:
                # This pull is served after all hand-overs that were on their way before.
                self._store.work.pull(self._standing_claim)
            except HoldfastError as error:
                log.warning("%s: what may be on its way to it waits for its lease: %s", self, error)
        return not self._busy

    def _run_once(self) -> None:
        pause = self._store.settings.poll
        try:
            self._begin_arrived()
            self._stop_as_told(self._presence.step(self._disk.check(), self._held.overruns))
            self._begin_run_now()
            if not self._stopping.is_set():
                full = self._standing_claim.may_have_more or not self._may_pull()
                self._puller.pull(
                    self._standing_claim, hinted=self._version_holds.lift_holds(full=full)
                )
            self._return_stuck()
            # Set before the runner is asked: steps that come to wait after that see it and wake.
            self._sleeps_long = True
            pause = self._held.end_over_and_choose_pause(waiting=self._runner.has_steps_waiting)
            self._sleeps_long = pause > LOOK_EVERY
        except ShuttingDown:
            self._stopping.set()
        except Exception:
            log.exception("could not look for work; trying again in %s s", pause)
        self._wake.wait(pause)
        self._sleeps_long = False

    def _wake_from_long_sleep(self) -> None:
        if self._sleeps_long:
            self._wake.set()

    def _may_pull(self) -> bool:
        room = self._busy < self._most_claimed()
        return room and not self._disk.low and not self._stopping.is_set()

    def _close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._heartbeat.close()
        self._runner.close()
        step_output.end()
        self._presence.leave()
        self._stopped.set()

    def _return_stuck(self) -> None:
        """Give back what was claimed ahead and cannot begin, because all that runs takes long."""
        if self._ahead is None or not self._runner.has_steps_waiting:
            return
        claimed_before = self._store.clock.monotonic() - LONGEST_WAIT
        self._return_waiting(lambda each: each.claimed_at < claimed_before)

    def _return_waiting(self, chosen: Callable[[Execution], bool]) -> None:
        """Give back the chosen ones of the steps that wait for their turn."""
        for execution, _ in self._runner.take_unbegun(lambda step: chosen(step[0])):
            self._release_unbegun(execution)

    def _begin_arrived(self) -> None:
        with self._lock:
            arrived, self._arrived = self._arrived, []
        for arrival in arrived:
            self._runner.run(self._make_steps(arrival))

    def _make_steps(self, arrival: Arrival) -> list[BoundStep]:
        claimed, asked = arrival
        return self._make_claimed_steps(claimed.read, asked, counted=len(claimed))

    def _make_claimed_steps(
        self, read: Callable[[], Sequence[Assignment]], asked: float, *, counted: int
    ) -> list[BoundStep]:
        """The steps of one claim, for which so many tasks are counted."""
        executions: list[Execution] = []
        try:
            executions = [self._make_execution(each, asked) for each in read()]
        except Exception:
            log.exception("%d tasks cannot be read; their leases will run out", counted)
        with self._lock:
            self._busy -= counted - len(executions)
        return self._begin_executions(executions)

    def _begin_run_now(self) -> None:
        """Claim a task that is to run now although the worker has no room: one at a time."""
        full = self._busy >= self._most_claimed() and not self._stopping.is_set()
        if full and self._disk.low is None:
            self._claim_run_now()
        for read, asked in self._run_now.take_claimed():
            for step in self._make_claimed_steps(read, asked, counted=1):
                self._runner.run_first(step)

    def _claim_run_now(self) -> None:
        # Before the claim is sent, because its task may end elsewhere right after the commit.
        self._held.note_claim()
        claims = False
        try:
            claims = self._run_now.claim_next(self._held)
        finally:
            if not claims:
                self._held.add([])
        with self._lock:
            self._busy += claims

    def _make_execution(self, given: Assignment, asked: float) -> Execution:
        assignment = self._functions.equip(given)
        self._version_holds.draw_task_ids.pop(assignment.task_id, None)
        work, timeout = assignment.work, assignment.timeout
        if work is not None and work.runs_program:
            # A command step watches its own timeout, and ends its processes before it reports.
            timeout = None
            if self._ahead is not None:
                self._ahead.note_command()
        execution = Execution(
            self._store,
            assignment,
            deadline=asked + self._store.settings.lease,
            claimed_at=asked,
            timeout=timeout,
            on_begun=self._on_begun,
            on_vacated=self._on_vacated,
            on_finished=self._on_finished,
        )
        if self._clean is not None:
            execution.context.clean = self._clean
        execution.context.on_progress = partial(self._heartbeat.note_progress, execution)
        return execution

    def _begin_executions(self, executions: Sequence[Execution]) -> list[BoundStep]:
        """Keep the leases of the executions of one claim from now on; gives the steps to run."""
        self._held.add(executions)
        self._heartbeat.note_claimed()
        steps: list[BoundStep] = []
        stopping = self._stopping.is_set() or is_program_ending()
        for each in executions:
            if stopping:
                # The task was on its way when the worker was stopped.
                self._release_unbegun(each)
            elif (invocation := self._bind(each)) is not None:
                steps.append((each, invocation))
        return steps

    def _bind(self, execution: Execution) -> Invocation | None:
        try:
            invocation = self._functions.bind(execution.assignment, execution.context)
        except Exception as error:  # noqa: BLE001 - it is the task's, not the worker's
            self._return_unbegun(execution, self._report_unbound, execution, error)
            return None
        if invocation.process_call is not None:
            # As a command step: it watches its own limits, and ends its processes first.
            execution.timeout = None
            if self._ahead is not None:
                self._ahead.note_command()
        elif invocation.options.idle_timeout is not None:
            execution.limit_silence(invocation.options.idle_timeout)
        return invocation

    def _release_unbegun(self, execution: Execution) -> None:
        """Release a task whose attempt never began, unless the attempt is over."""
        if execution.ended.is_set():
            execution.begin()
        else:
            self._return_unbegun(execution, execution.release)

    def _return_unbegun(
        self, execution: Execution, report: Callable[..., bool], *said: object
    ) -> None:
        """Report on an attempt that never began."""
        try:
            execution.finish_with(report, *said)
        except Exception:
            log.exception("%s could not be given back; its lease will run out", execution)

    def _return_without_thread(self, execution: Execution, error: Exception) -> None:
        """Stop the worker, and give a step back, because no thread can be started for it."""
        self._stopping.set()
        log.error("%s cannot begin, so that this worker stops: %s", execution, error)
        self._return_unbegun(execution, execution.release)

    def _report_unbound(self, execution: Execution, error: Exception) -> bool:
        """Report on a task that could not be bound to a function.

        A task without a function is put on hold; a task with arguments that do not fit has failed.
        """
        if isinstance(error, UnknownFunction):
            log.warning("%s is given back: %s", execution, error)
            detail = error.detail if isinstance(error, UnfitArguments) else None
            self._version_holds.hold(execution.assignment, detail)
            return execution.release()
        if isinstance(error, StoreError):
            # Something that the step needs could not be read, which is no failure of the step.
            log.warning("%s cannot begin: %s", execution, error)
            return execution.release()
        if isinstance(error, InvalidInput):
            # It names the parameter, and code of the step has not run.
            error.__cause__ = None
            return execution.fail(error.with_traceback(None), retryable=False)
        return execution.fail(error)

    def _forget_execution(self, execution: Execution) -> None:
        self._held.forget(execution)
        # A written report has brought the next task with it; without one, the worker has to ask.
        if execution.unreported:
            self._on_hint()
        elif self._stopping.is_set() or self._version_holds.has_more:
            self._wake.set()
