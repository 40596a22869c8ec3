"""Declarations of a workflow file: the work of a step, and the settings of the whole workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.budget import Budget


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpCall:
    """One HTTP request; `body` is JSON, whose texts are templates too."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StepWork:
    """The work of a step: a command, an HTTP call, a called workflow, or an external task.

    At most one of `command`, `http` and `workflow` is set; with none of them its agent is external.
    `outputs` is the JSON Schema of the output that the step declares, `env` the variables that its
    command gets besides those of Holdfast, `cwd` the folder that the command runs in, `input` the
    input of the run of the called `workflow`, which has this `version`, or the newest version that
    the store knows at that time.

    Only an assignment has `later`: the texts, by their fields (`prompt`, `command.1`, `env.TOKEN`),
    in which a part is left for the worker. They are kept in pieces, which `finish_work` joins.
    """

    prompt: str | None = None
    command: tuple[str, ...] | None = None
    http: HttpCall | None = None
    workflow: str | None = None
    version: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    outputs: Mapping[str, Any] | None = None
    idle_timeout: float | None = None
    input: Any = None
    later: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def external(self) -> bool:
        """Whether there is no work that a worker of Holdfast itself could run."""
        return self.command is None and self.http is None and self.workflow is None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowDeclarations:
    """The declarations of a workflow that was read from a file, whose texts are templates.

    `input` is the JSON Schema of the input of a run, `env` the names of the variables that texts
    may take from the worker's environment, `agents` the settings of each agent.
    """

    input: Mapping[str, Any] | None = None
    budget: Budget | None = None
    agents: Mapping[str, Any] = field(default_factory=dict)
    env: tuple[str, ...] = ()
