"""Isolated steps: functions in processes of their own, which their attempts can really end."""

from __future__ import annotations

import codecs
import logging
import os
import socket
import sys
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from multiprocessing.spawn import get_preparation_data
from typing import Any, cast

from holdfast.errors import ShuttingDown
from holdfast.model.task import Assignment
from holdfast.tracing import write_traceparent
from holdfast.worker.attempt.attempt_lease import AttemptEnded
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import Invocation, PreparedReport, StepFailed
from holdfast.worker.attempt.function_options import FunctionCall
from holdfast.worker.steps.attempt_pipe import FunctionJob, PipeServer
from holdfast.worker.steps.attempt_watch import AttemptWatch
from holdfast.worker.steps.command import (
    IDLE,
    OVER,
    TIMEOUT,
    CannotStart,
    Command,
    CommandEnd,
    CommandLimits,
    describe_exit,
)
from holdfast.worker.steps.orphans import end_processes_of
from holdfast.worker.steps.piped_store import ASSIGNMENT_FIELDS
from holdfast.worker.steps.process import Process
from holdfast.worker.steps.step_resources import StepResources

PROGRAM = "holdfast.api.function_process"
ERROR_LINES = 20

log = logging.getLogger("holdfast.worker")


class ProcessEnded(StepFailed):
    """The process of the function ended before the function had returned or raised."""


class IsolatedStep:
    """One attempt of a function in a process of its own."""

    def __init__(
        self,
        resources: StepResources,
        assignment: Assignment,
        context: AttemptContext,
        invocation: Invocation,
    ) -> None:
        self._resources = resources
        self._assignment = assignment
        self._context = context
        self._call = cast("FunctionCall", invocation.process_call)
        self._options = invocation.options

    def run(self) -> PreparedReport:
        """Run the function until nothing of its process is left; gives its report."""
        ours, theirs = socket.socketpair()
        output = Output()
        watch = AttemptWatch(self._resources, self._assignment, self._context, output.write)
        limits = CommandLimits(
            timeout=self._assignment.timeout, idle_timeout=self._options.idle_timeout
        )
        with closing(ours), closing(theirs):
            process = Process(
                self._make_command(theirs), limits, watch, self._resources.store.clock
            )
            server = PipeServer(
                self._resources.store, self._assignment, self._context, process.note_active
            )
            threads = self._resources.store.threads
            connection = Connection(os.dup(ours.fileno()))
            serving = threads.start("holdfast-pipe", lambda: self._serve(server, connection))
            try:
                ended = process.run()
                if ended.abandoned:
                    end_processes_of(watch.record)
            except CannotStart as error:
                raise StepFailed(str(error)) from error
            finally:
                ours.shutdown(socket.SHUT_RDWR)
                serving.join()
                watch.end()
        return self._read_end(ended, server, output)

    def _make_command(self, theirs: socket.socket) -> Command:
        environment = dict(os.environ)
        environment["HOLDFAST_TASK"] = self._assignment.task_id
        environment["HOLDFAST_ATTEMPT"] = str(self._assignment.attempt)
        if (header := write_traceparent()) is not None:
            environment["TRACEPARENT"] = header
        arguments = (sys.executable, "-u", "-P", "-m", PROGRAM, str(theirs.fileno()))
        return Command(arguments=arguments, environment=environment, files=(theirs.fileno(),))

    def _serve(self, server: PipeServer, connection: Connection) -> None:
        with connection:
            try:
                # First what the process needs to find the classes that the job is made of.
                connection.send(make_preparation(self._call))
                connection.send(self._make_job())
            except OSError:
                return
            except Exception as error:  # noqa: BLE001 - it is the step's to fail with
                server.broken = f"it cannot be given to another process: {error!r}"
                return
            server.serve(connection)

    def _make_job(self) -> FunctionJob:
        store, assignment = self._resources.store, self._assignment
        return FunctionJob(
            call=self._call,
            options=self._options,
            settings=store.settings,
            store=store.store,
            file=store.file,
            assignment={name: getattr(assignment, name) for name in ASSIGNMENT_FIELDS},
            redactions=tuple(each() for each in self._context.clean.redactions),
            log_level=logging.getLogger().getEffectiveLevel(),
        )

    def _read_end(self, ended: CommandEnd, server: PipeServer, output: Output) -> PreparedReport:
        if ended.stop_reason is not None or self._context.ended:
            self._note_stop(ended)
        if ended.stop_reason == OVER or self._context.ended or server.ended:
            raise AttemptEnded("stopped, as its attempt is over")
        if ended.stop_reason == TIMEOUT:
            raise TimeoutError(f"ran longer than {self._assignment.timeout:g} s")
        if ended.stop_reason == IDLE:
            said = "it neither wrote nor remembered anything"
            raise TimeoutError(
                f"was silent for longer than {self._options.idle_timeout:g} s: {said}"
            )
        if server.report is not None:
            return server.report
        if server.broken is not None:
            raise StepFailed(server.broken, retryable=False)
        told = output.last_error
        more = f": {told}" if told else ""
        raise ProcessEnded(f"its process {describe_exit(ended.code)} before it had ended{more}")

    def _note_stop(self, ended: CommandEnd) -> None:
        """Note in the attempt's record that its processes were ended, without waiting for it."""
        task_id = self._assignment.task_id
        if ended.processes_left:
            log.error("%d processes of %s could not be ended", ended.processes_left, task_id)
        with suppress(ShuttingDown):
            self._resources.store.workers.note_stop.submit(
                task_id,
                self._assignment.token,
                ended=ended.processes_ended,
                left=ended.processes_left,
            )


class Output:
    """What the process writes, written again where the worker writes, and into the step's log."""

    def __init__(self) -> None:
        make = codecs.getincrementaldecoder("utf-8")
        self._decoders = {False: make("replace"), True: make("replace")}
        self._errors = ""

    def write(self, data: bytes, *, error: bool) -> None:
        text = self._decoders[error].decode(data)
        stream = sys.stderr if error else sys.stdout
        # A terminal that is gone is no trouble of the step.
        with suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()
        if error:
            self._errors = "\n".join((self._errors + text).splitlines()[-ERROR_LINES:])

    @property
    def last_error(self) -> str:
        """The last line that the process has written to its standard error."""
        return next((line for line in reversed(self._errors.splitlines()) if line.strip()), "")


def make_preparation(call: FunctionCall) -> dict[str, Any]:
    """What another process needs to import the same modules, as `multiprocessing` tells it."""
    data = get_preparation_data("holdfast-function")
    # It is of no use there, and is bytes that no other process of this program may have.
    del data["authkey"]
    if call.module != "__main__":
        data = {name: value for name, value in data.items() if not name.startswith("init_main")}
    return data
