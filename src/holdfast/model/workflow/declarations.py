"""Declarations of a workflow file: the work of a step, and the settings of the whole workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.model.budget import Budget
from holdfast.settings import AgentUse

Access = Literal["edit", "read"]
Strategy = Literal["merge", "squash", "rebase", "leave"]
# The parts that Holdfast adds to the output of a step in a workspace.
RECORDED = ("commit", "no_changes")
MAX_COMMITTED_FILE = 10_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpCall:
    """One HTTP request; `body` is JSON, whose texts are templates too."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Workspace:
    """The git worktrees of a run: of the repository `git`, a path or a URL.

    The run's line of commits begins at `start`, a branch or a commit, or at the HEAD of the
    repository; its visible branch is `branch`, or named after the run. A new worktree gets the
    files that `copy` names and runs `setup`. It is kept for `keep` seconds after the end of its
    run. Files above `max_file` bytes are never committed; `filters` lets the filters of the user's
    own git configuration run.
    """

    git: str
    start: str | None = None
    branch: str | None = None
    setup: tuple[str, ...] = ()
    copy: tuple[str, ...] = ()
    keep: float | None = None
    filters: bool = False
    max_file: int = MAX_COMMITTED_FILE


@dataclass(frozen=True, kw_only=True, slots=True)
class Merge:
    """The merge of a run's line into the branch `into`; with `leave` the branch is left alone."""

    into: str | None = None
    strategy: Strategy = "merge"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepWork:
    """The work of a step: a program, an HTTP call, a called workflow, a merge, or external work.

    At most one of `command`, `use`, `http`, `workflow` and `merge` is set; with none of them, and
    where the step is no `landing`, its agent is external. `use` is the preset that the step uses.
    `outputs` is the JSON Schema of the output that the step declares, `env` the variables that its
    command gets besides those of Holdfast, `cwd` the folder that the command runs in, `input` the
    input of the run of the called `workflow`, which has this `version`, or the newest version that
    the store knows at that time.

    A step with an `access` runs in a worktree of the run's repository: what it leaves there is
    committed (`edit`) or dropped (`read`). A `merge` merges the line of the run into a branch; a
    `landing` merges the line of an item into the line around the loop.

    Only an assignment has `later`: the texts, by their fields (`prompt`, `command.1`, `env.TOKEN`),
    in which a part is left for the worker. They are kept in pieces, which `finish_work` joins.
    Only an assignment has a `workspace`, and a `line`: the step of the loop whose items have lines
    of their own, or None for the run's line.
    """

    prompt: str | None = None
    command: tuple[str, ...] | None = None
    use: AgentUse | None = None
    http: HttpCall | None = None
    workflow: str | None = None
    version: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    outputs: Mapping[str, Any] | None = None
    idle_timeout: float | None = None
    input: Any = None
    access: Access | None = None
    merge: Merge | None = None
    landing: bool = False
    workspace: Workspace | None = None
    line: str | None = None
    later: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def in_workspace(self) -> bool:
        """Whether the step works in a worktree of the run, or on the commits of its line."""
        return self.access is not None or self.merge is not None or self.landing

    @property
    def external(self) -> bool:
        """Whether there is no work that a worker of Holdfast itself could run."""
        own = (self.command, self.use, self.http, self.workflow, self.merge)
        return not self.landing and all(each is None for each in own)

    @property
    def runs_program(self) -> bool:
        """Whether a worker runs a program for it: a command, or the client of a preset."""
        return self.command is not None or self.use is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowDeclarations:
    """The declarations of a workflow that was read from a file, whose texts are templates.

    `input` is the JSON Schema of the input of a run, `env` the names of the variables that texts
    may take from the worker's environment, `agents` the settings of each agent, `workspace` the
    worktrees of its steps, `labels` the labels of its runs.
    """

    input: Mapping[str, Any] | None = None
    budget: Budget | None = None
    agents: Mapping[str, Any] = field(default_factory=dict)
    env: tuple[str, ...] = ()
    workspace: Workspace | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
