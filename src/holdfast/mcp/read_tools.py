"""Read tools: reading tasks, runs, explanations and logs."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from holdfast.mcp.tool_words import TOOL_WORDS
from holdfast.mcp.tools import (
    After,
    ErrorText,
    Limit,
    OnlyLabels,
    RunId,
    Since,
    TaskId,
    ThisRun,
    ThisTask,
    Toolbox,
    View,
)
from holdfast.service.commands.task_fields import read_moment

MAX_LOG = 20_000

TaskStatus = Annotated[
    str | None, Field(description="idle, queued, running, done, failed or cancelled")
]
ThisKey = Annotated[str | None, Field(description="Only the one with this key")]
RunStatus = Annotated[str | None, Field(description="running, completed, failed or cancelled")]


class ReadTools(Toolbox):
    looks: ClassVar[bool] = True

    def list_tasks(  # noqa: PLR0913, PLR0917 - the filters of a list
        self,
        status: TaskStatus = None,
        agent: Annotated[str | None, Field(description="Only those for this agent")] = None,
        run: Annotated[str | None, Field(description="Only those of this run: r_…")] = None,
        parent: Annotated[str | None, Field(description="Only the parts of this plan")] = None,
        step: Annotated[
            str | None, Field(description="Only those of this step or function")
        ] = None,
        key: ThisKey = None,
        labels: OnlyLabels = None,
        since: Since = None,
        error: ErrorText = None,
        limit: Limit = 20,
        after: After = None,
    ) -> View:
        """List tasks, newest first, as `{items, next}`; filter them by their fields.

        Of each, `status` is where it is in its life, and `state` what a person sees: `ready`,
        `blocked` (by `blocked_by`), `held` (by `holds`), `scheduled`, `in progress 2/5`. For the
        reason that one does not move, use why.
        """
        return self.service.queries.tasks(
            limit=limit,
            after=after,
            status=status,
            agent=agent,
            run=None if run is None else self.run(run),
            parent=None if parent is None else self.task(parent),
            step=step,
            key=key,
            labels=labels,
            since=read_moment(since),
            error=error,
        )

    def get_task(self, task_id: TaskId) -> View:
        """Show one task: its state, payload, output, error, attempts and children."""
        return self.service.queries.task_with_attempts(self.task(task_id))

    def why(self, task_id: ThisTask = None, run_id: ThisRun = None) -> View:
        """Explain why a task or run does not go on, clause by clause, and what would change that.

        Use it before you retry, cancel or wait: it names the need that is not done, the hold and
        who can lift it, the time, the key that is full, or the agent that no worker serves. What
        would help is in `fixes`, as calls of tools.
        """
        return self.service.why(self.find(task_id, run_id), words=TOOL_WORDS)

    def logs(
        self,
        task_id: TaskId,
        attempt: Annotated[int | None, Field(description="Which one; else the latest")] = None,
    ) -> View:
        """Give the end of what an attempt of a task wrote, as `{attempt, text}`."""
        found = self.task(task_id)
        number, text = self.service.read_attempt_log(found, attempt)
        return {"attempt": number, "text": text[-MAX_LOG:].decode(errors="replace")}

    def list_workers(self) -> View:
        """List the workers that live, as `{items}`, with the agents that each of them serves.

        A task whose agent nobody serves waits until a person starts a worker for it.
        """
        return self.service.queries.workers()


class RunTools(Toolbox):
    looks: ClassVar[bool] = True

    def list_runs(  # noqa: PLR0913, PLR0917 - the filters of a list
        self,
        status: RunStatus = None,
        workflow: Annotated[str | None, Field(description="Only those of this workflow")] = None,
        key: ThisKey = None,
        labels: OnlyLabels = None,
        since: Since = None,
        error: ErrorText = None,
        limit: Limit = 20,
        after: After = None,
    ) -> View:
        """List runs of workflows, newest first, as `{items, next}`."""
        return self.service.queries.runs(
            limit=limit,
            after=after,
            status=status,
            workflow=workflow,
            key=key,
            labels=labels,
            since=read_moment(since),
            error=error,
        )

    def get_run(self, run_id: RunId) -> View:
        """Show one run with all its tasks: what is done, what runs, what failed and with what."""
        return self.service.queries.run(self.run(run_id))
