"""Which executor carries out a task: a command, an HTTP call, or a function of the program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from holdfast.errors import InvalidInput
from holdfast.model.task import Assignment
from holdfast.worker.attempt.context import Context
from holdfast.worker.attempt.execution import Functions, Invocation, StepFailed, UnknownFunction
from holdfast.worker.attempt_server.attempt_addresses import AttemptAddresses
from holdfast.worker.attempt_server.attempt_requests import Carrier
from holdfast.worker.files.state_directory import State, state_of
from holdfast.worker.secrets.secret_rules import cleaner
from holdfast.worker.secrets.secrets import Asked, Secrets
from holdfast.worker.steps.permission import Permission
from holdfast.worker.steps.step_resources import Post
from holdfast.worker.store_port import Office


class Executors:
    """The functions of a program, and besides them whatever a workflow file can ask for."""

    def __init__(  # noqa: PLR0913 - the parts that a worker here and one elsewhere have their own of
        self,
        engine: Office,
        functions: Functions,
        carrier: Callable[[State], Carrier],
        *,
        state: State | None = None,
        secrets: Secrets | None = None,
        permission: Permission | None = None,
    ) -> None:
        url = engine.settings.url
        kept, known = state or state_of(url), secrets or Secrets(url)
        self._functions = functions
        self._post = Post(
            engine=engine,
            state=kept,
            secrets=known,
            asked=Asked(engine),
            permission=permission or Permission(),
            addresses=AttemptAddresses(engine.threads, partial(carrier, kept), known),
        )
        self.clean = cleaner(lambda: known.redaction)

    def begin(self) -> None:
        """End what workers that were killed have left running, and take away its files."""
        state = self._post.state
        if not state.processes.listed():
            return
        from holdfast.worker.steps.orphans import end_orphans  # noqa: PLC0415

        for gone in end_orphans(state.processes):
            with suppress(InvalidInput):
                state.files(gone.task, gone.attempt).remove_folder()

    def knows(self, workflow: str | None, step: str | None) -> bool:
        return self._functions.knows(workflow, step)

    def bind(self, assignment: Assignment, context: Context) -> Invocation:
        work = assignment.work
        if work is None:
            return self._functions.bind(assignment, context)
        # Before any step begins: what it is given or finds may hold those of other workflows too.
        self._post.secrets.expect(self._post.asked.by_any())
        # Imported where they are wanted: most programs have neither commands nor calls.
        if work.command is not None:
            from holdfast.worker.steps.command_step import CommandStep  # noqa: PLC0415

            step = CommandStep(self._post, assignment, context, work)
            return _invoke(step.run, asynchronous=False)
        if work.http is not None:
            from holdfast.worker.steps.http_step import HttpStep  # noqa: PLC0415

            call = HttpStep(self._post, assignment, context, work)
            return _invoke(call.run, asynchronous=True)
        if work.workflow is not None:
            message = f"a worker cannot start the workflow {work.workflow} as a step yet"
            raise StepFailed(message, retryable=False)
        raise UnknownFunction("its workflow file gives it no program; whoever claims it does it")


def _invoke(function: Callable[[], object], *, asynchronous: bool) -> Invocation:
    return Invocation(function=function, arguments={}, encode=_as_it_is, asynchronous=asynchronous)


def _as_it_is(result: object) -> object:
    return result
