"""Permission: what a worker lets the steps of workflow files run, call, set and read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, final

from holdfast.model.workflow.declarations import HttpCall, Work
from holdfast.worker.execution import UnknownFunction
from holdfast.worker.filling import fill
from holdfast.worker.secrets import Secrets

_SEAL = object()


class NotAllowed(UnknownFunction):
    """Not for this worker to do; another may."""


class Permission:
    """That of a worker on its own store: whatever the workflow files of the store declare."""

    def check_variable(self, name: str) -> None:
        """Raise `NotAllowed` where a text may not name a variable of the worker."""

    def secrets(self, names: frozenset[str]) -> frozenset[str]:
        """Of the names that a workflow has for secrets, those that its commands do not inherit."""
        return names

    def check(self, work: Work) -> Work:
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

    def __init__(self, work: Work, seal: object) -> None:
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


def permit(work: Work, permission: Permission, secrets: Secrets, prompt: str = "") -> PermittedWork:
    """Fill in every text, freeze what comes of it, and check just that; raises `NotAllowed`."""
    return PermittedWork(permission.check(fill(work, permission, secrets, prompt)), _SEAL)
