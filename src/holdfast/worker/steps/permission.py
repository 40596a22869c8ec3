"""Permission: what a worker lets the steps of workflow files run, call, set and read.

The worker fills in the texts of a step from its environment, its secrets and the prompt, and checks
the result.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, final

from holdfast.errors import InvalidInput
from holdfast.model.workflow.declarations import HttpCall, Merge, StepWork, Workspace
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step_template import finish_work
from holdfast.settings import AgentUse
from holdfast.worker.attempt.execution import StepFailed, UnknownFunction
from holdfast.worker.secrets.secrets import Secrets

_PROMPT = "prompt"
_SEAL = object()


class VariableCheck(Protocol):
    """The check of the worker's variables that a text names."""

    def check_variable(self, name: str) -> None: ...


def fill_work(
    work: StepWork, readable: VariableCheck, secrets: Secrets, prompt: str = ""
) -> StepWork:
    """The work with all texts filled in; fails the step for good if this worker lacks a value."""

    def look_up(root: str, name: str) -> str:
        if root == _PROMPT:
            # Whoever writes prompts chooses no options of the command.
            return f"\n{prompt}" if prompt.startswith("-") else prompt
        if root == "secret" and secrets.is_in_file(name):
            return secrets.get(name)
        readable.check_variable(name)
        return secrets.get(name) if root == "secret" else _read_variable(name)

    try:
        return finish_work(work, look_up)
    except (InvalidInput, Unresolved) as error:
        raise StepFailed(str(error), retryable=False) from error


def takes_prompt(work: StepWork) -> bool:
    """Whether an argument of the command holds the prompt, so that its input does not."""
    return any(
        _PROMPT in segments[1::2]
        for field, segments in work.later.items()
        if field.startswith("command.")
    )


def _read_variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        reason = "is not in the environment of this worker; set it there, and retry the step"
        raise InvalidInput(f"env {name}", reason)
    return value


class NotAllowed(UnknownFunction):
    """The step may not be run by this worker, though maybe by another one."""


class Permission:
    """The permission of a worker on its own store: everything that its workflow files declare."""

    def check_variable(self, name: str) -> None:
        """Raise `NotAllowed` if a text may not name this variable of the worker."""

    def secrets(self, names: frozenset[str]) -> frozenset[str]:
        """Those of a workflow's secret names that its commands do not inherit."""
        return names

    def check(self, work: StepWork) -> StepWork:
        """The work as it may be executed; raises `NotAllowed`."""
        return work


@final
class PermittedWork:
    """The work of one run with every text filled in and checked; only `permit_work` makes it.

    Nothing else is executed, so that nothing can change between the check and the execution.
    """

    __slots__ = (
        "command",
        "cwd",
        "env",
        "http",
        "idle_timeout",
        "merge",
        "outputs",
        "prompt",
        "use",
        "workspace",
    )

    command: tuple[str, ...]
    cwd: str | None
    env: Mapping[str, str]
    http: HttpCall | None
    idle_timeout: float | None
    merge: Merge | None
    outputs: Mapping[str, Any] | None
    prompt: str | None
    use: AgentUse | None
    workspace: Workspace | None

    def __init__(self, work: StepWork, seal: object) -> None:
        if seal is not _SEAL:
            message = "work is permitted by `permit` alone, which checks it"
            raise TypeError(message)
        values = {
            "command": work.command or (),
            "cwd": work.cwd,
            "env": MappingProxyType(dict(work.env)),
            "http": work.http,
            "idle_timeout": work.idle_timeout,
            "merge": work.merge,
            "outputs": work.outputs,
            "prompt": work.prompt,
            "use": work.use,
            "workspace": work.workspace,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        message = f"{name} was checked as it is, and does not change"
        raise AttributeError(message)


def permit_work(
    work: StepWork, permission: Permission, secrets: Secrets, prompt: str = ""
) -> PermittedWork:
    """Fill in every text, check the result, and freeze it; raises `NotAllowed`."""
    return PermittedWork(permission.check(fill_work(work, permission, secrets, prompt)), _SEAL)
