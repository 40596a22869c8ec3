"""What is left to the worker in the texts of a step: its environment, its secrets, its prompt."""

from __future__ import annotations

import os
from typing import Protocol

from holdfast.errors import InvalidInput
from holdfast.model.workflow.declarations import Work
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step_template import finish_work
from holdfast.worker.execution import StepFailed
from holdfast.worker.secrets import Secrets

_PROMPT = "prompt"


class Readable(Protocol):
    """Which variables of the worker a text may name."""

    def check_variable(self, name: str) -> None: ...


def fill(work: Work, readable: Readable, secrets: Secrets, prompt: str = "") -> Work:
    """The work with nothing left out; fails its step for good where this worker lacks something."""

    def look_up(root: str, name: str) -> str:
        if root == _PROMPT:
            return prompt
        if root == "secret" and secrets.keeps(name):
            return secrets.get(name)
        readable.check_variable(name)
        return secrets.get(name) if root == "secret" else _variable(name)

    try:
        return finish_work(work, look_up)
    except (InvalidInput, Unresolved) as error:
        raise StepFailed(str(error), retryable=False) from error


def takes_prompt(work: Work) -> bool:
    """Whether the prompt stands in the command itself, and so need not be read."""
    return any(
        _PROMPT in segments[1::2]
        for place, segments in work.later.items()
        if place.startswith("command.")
    )


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        reason = "is not in the environment of this worker; set it there, and retry the step"
        raise InvalidInput(f"env {name}", reason)
    return value
