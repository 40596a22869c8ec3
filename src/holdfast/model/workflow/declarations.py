"""What a step of a workflow file has its worker do; in an assignment its texts are rendered.

What a workflow file says of the whole workflow, besides its steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.budget import Budget


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpCall:
    """One request; `body` is JSON, whose texts are templates too."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StepWork:
    """At most one of `command`, `http` and `workflow`; with none of them its agent is external.

    `outputs` is the JSON Schema of what the step declares to give, `env` the variables that its
    command gets besides those of Holdfast, `input` what the run of a `workflow` is started with:
    of its `version`, or of the newest that the store knows by then.

    `later` is there in an assignment alone: the texts, by their places (`prompt`, `command.1`,
    `env.TOKEN`), in which something is left for the worker, in pieces: `finish_work` joins them.
    """

    prompt: str | None = None
    command: tuple[str, ...] | None = None
    http: HttpCall | None = None
    workflow: str | None = None
    version: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Any] | None = None
    idle_timeout: float | None = None
    input: Any = None
    later: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def external(self) -> bool:
        """Whether there is nothing that a worker of Holdfast's own could run."""
        return self.command is None and self.http is None and self.workflow is None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowDeclarations:
    """A workflow that has this was read from a file: its texts are templates.

    `input` is the JSON Schema of what a run is started with, `env` the names of the variables that
    texts may take from the worker's environment, `agents` what the file says of each.
    """

    input: Mapping[str, Any] | None = None
    budget: Budget | None = None
    agents: Mapping[str, Any] = field(default_factory=dict)
    env: tuple[str, ...] = ()
