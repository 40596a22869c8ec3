"""Executors: the choice between a command, an HTTP call and a function for each task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType

from holdfast.errors import InvalidInput
from holdfast.model.task import Assignment
from holdfast.settings import AgentCommands
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import Functions, Invocation, StepFailed, UnknownFunction
from holdfast.worker.attempt_server.attempt_addresses import AttemptAddresses
from holdfast.worker.attempt_server.attempt_requests import CallForwarder
from holdfast.worker.files.state_directory import StateDirectory, find_state_directory
from holdfast.worker.secrets.secret_rules import Cleaner
from holdfast.worker.secrets.secrets import Secrets, WorkflowSecrets
from holdfast.worker.steps.agent_commands import (
    equip_assignment,
    list_equipped_agents,
    list_own_presets,
)
from holdfast.worker.steps.permission import Permission
from holdfast.worker.steps.step_resources import StepResources
from holdfast.worker.store_port import StorePort


class Executors:
    """The functions of a program, and the commands and HTTP calls of workflow files."""

    def __init__(  # noqa: PLR0913 - the parts that a worker here and one elsewhere have their own of
        self,
        store: StorePort,
        functions: Functions,
        make_forwarder: Callable[[StateDirectory], CallForwarder],
        *,
        state: StateDirectory | None = None,
        secrets: Secrets | None = None,
        permission: Permission | None = None,
        commands: AgentCommands = MappingProxyType({}),
    ) -> None:
        url = store.settings.url
        kept, known = state or find_state_directory(url), secrets or Secrets(url)
        self._functions = functions
        self._commands = commands
        self._resources = StepResources(
            store=store,
            state=kept,
            secrets=known,
            workflow_secrets=WorkflowSecrets(store),
            permission=permission or Permission(),
            addresses=AttemptAddresses(store.threads, partial(make_forwarder, kept), known),
            own_presets=list_own_presets(commands),
        )
        self.clean = Cleaner(lambda: known.redaction)

    def begin(self) -> None:
        """End the processes that killed workers have left, and remove the files of their steps."""
        state = self._resources.state
        if state.processes.list_names():
            from holdfast.worker.steps.orphans import end_orphans  # noqa: PLC0415

            for gone in end_orphans(state.processes):
                with suppress(InvalidInput):
                    state.files(gone.task, gone.attempt).remove_folder()
        if (state.root / "workspaces").is_dir():
            from holdfast.worker.steps.workspace_steps import begin_workspaces  # noqa: PLC0415

            begin_workspaces(self._resources)

    def has_function(self, workflow: str | None, step: str | None) -> bool:
        return self._functions.has_function(workflow, step)

    def list_equipped(self, agents: Sequence[str]) -> tuple[str, ...]:
        return list_equipped_agents(self._commands, agents)

    def equip(self, assignment: Assignment) -> Assignment:
        return equip_assignment(self._commands, assignment)

    def bind(self, assignment: Assignment, context: AttemptContext) -> Invocation:
        work = assignment.work
        if work is None:
            return self._isolate(self._functions.bind(assignment, context), assignment, context)
        # Before a step begins, because its input may hold secrets of other workflows too.
        self._resources.secrets.expect_secrets(self._resources.workflow_secrets.names_of_all())
        # Imported where they are needed, because most programs have neither commands nor calls.
        if work.merge is not None or work.landing:
            from holdfast.worker.steps.workspace_steps import MergingStep  # noqa: PLC0415

            merging = MergingStep(self._resources, assignment, context, work)
            return _make_invocation(merging.run, asynchronous=False)
        if work.runs_program:
            from holdfast.worker.steps.command_step import CommandStep  # noqa: PLC0415

            step = CommandStep(self._resources, assignment, context, work)
            return _make_invocation(step.run, asynchronous=False)
        if work.http is not None:
            from holdfast.worker.steps.http_step import HttpStep  # noqa: PLC0415

            call = HttpStep(self._resources, assignment, context, work)
            return _make_invocation(call.run, asynchronous=True)
        if work.workflow is not None:
            message = f"a worker cannot start the workflow {work.workflow} as a step yet"
            raise StepFailed(message, retryable=False)
        raise UnknownFunction("its workflow file gives it no program; whoever claims it does it")

    def _isolate(
        self, invocation: Invocation, assignment: Assignment, context: AttemptContext
    ) -> Invocation:
        """Give a function that asks for it a process of its own, except where time is moved."""
        call = invocation.process_call
        if call is None or self._resources.store.clock.manual:
            return invocation._replace(process_call=None)
        from holdfast.worker.steps.isolated_step import IsolatedStep  # noqa: PLC0415

        step = IsolatedStep(self._resources, assignment, context, invocation)
        made = _make_invocation(step.run, asynchronous=False)
        return made._replace(options=invocation.options, process_call=call)


def _make_invocation(function: Callable[[], object], *, asynchronous: bool) -> Invocation:
    return Invocation(function=function, arguments={}, encode=_unchanged, asynchronous=asynchronous)


def _unchanged(result: object) -> object:
    return result
