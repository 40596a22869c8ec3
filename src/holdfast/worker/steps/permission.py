"""Permission: what a worker lets the steps of workflow files run, call, set and read.

What is left to the worker in the texts of a step: its environment, its secrets, its prompt.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, final

from holdfast.errors import InvalidInput
from holdfast.model.workflow.declarations import HttpCall, StepWork
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step_template import finish_work
from holdfast.worker.attempt.execution import StepFailed, UnknownFunction
from holdfast.worker.secrets.secrets import Secrets

_PROMPT = "prompt"
_SEAL = object()


class VariableCheck(Protocol):
    """Which variables of the worker a text may name."""

    def check_variable(self, name: str) -> None: ...


def fill_work(
    work: StepWork, readable: VariableCheck, secrets: Secrets, prompt: str = ""
) -> StepWork:
    """The work with nothing left out; fails its step for good where this worker lacks something."""

    def look_up(root: str, name: str) -> str:
        if root == _PROMPT:
            return prompt
        if root == "secret" and secrets.is_in_file(name):
            return secrets.get(name)
        readable.check_variable(name)
        return secrets.get(name) if root == "secret" else _read_variable(name)

    try:
        return finish_work(work, look_up)
    except (InvalidInput, Unresolved) as error:
        raise StepFailed(str(error), retryable=False) from error


def takes_prompt(work: StepWork) -> bool:
    """Whether the prompt stands in the command itself, and so need not be read."""
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
    """Not for this worker to do; another may."""


class Permission:
    """That of a worker on its own store: whatever the workflow files of the store declare."""

    def check_variable(self, name: str) -> None:
        """Raise `NotAllowed` where a text may not name a variable of the worker."""

    def secrets(self, names: frozenset[str]) -> frozenset[str]:
        """Of the names that a workflow has for secrets, those that its commands do not inherit."""
        return names

    def check(self, work: StepWork) -> StepWork:
        """The work as it may be executed; raises `NotAllowed`."""
        return work


@final
class PermittedWork:
    """The work of one turn with every text filled in, as it was checked; `permit` alone makes it.

    Nothing else is executed, so that nothing can change between the check and the execution.
    """

    __slots__ = ("command", "env", "http", "idle_timeout", "outputs", "prompt")

    command: tuple[str, ...]
    env: Mapping[str, str]
    http: HttpCall | None
    idle_timeout: float | None
    outputs: Mapping[str, Any] | None
    prompt: str | None

    def __init__(self, work: StepWork, seal: object) -> None:
        if seal is not _SEAL:
            message = "work is permitted by `permit` alone, which checks it"
            raise TypeError(message)
        values = {
            "command": work.command or (),
            "env": MappingProxyType(dict(work.env)),
            "http": work.http,
            "idle_timeout": work.idle_timeout,
            "outputs": work.outputs,
            "prompt": work.prompt,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        message = f"{name} was checked as it is, and does not change"
        raise AttributeError(message)


def permit_work(
    work: StepWork, permission: Permission, secrets: Secrets, prompt: str = ""
) -> PermittedWork:
    """Fill in every text, freeze what comes of it, and check just that; raises `NotAllowed`."""
    return PermittedWork(permission.check(fill_work(work, permission, secrets, prompt)), _SEAL)
