"""Operator tools: steering runs, and judging what waits for a person."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from holdfast.mcp.tools import RunId, ThisRun, ThisTask, Toolbox, View
from holdfast.service.commands.task_fields import read_moment

WaitingTask = Annotated[
    str, Field(description="The task that waits (t_…), or a run (r_…) where only one waits")
]


class OperatorTools(Toolbox):
    destructive: ClassVar[frozenset[str]] = frozenset({"cancel_run", "reject"})

    def start_run(
        self,
        workflow: Annotated[str, Field(description="The name of a workflow that the store knows")],
        input: Annotated[  # noqa: A002 - the word for it everywhere
            dict[str, Any] | None, Field(description="What the workflow declares as its input")
        ] = None,
        key: Annotated[
            str | None, Field(description="Makes it exist once: the same key is the same run")
        ] = None,
        priority: Annotated[int, Field(description="Higher goes first")] = 0,
        scheduled_for: Annotated[
            str | None,
            Field(description="Nothing starts before: a time in ISO 8601, or `10m` from now"),
        ] = None,
    ) -> View:
        """Start a run of a workflow; give a `key` so that a call made again starts no second one.

        Answers the run with its id and tasks. Follow it with get_run, and ask why where it stands.
        """
        return self.service.commands.start_by_name(
            workflow, input, key=key, priority=priority, scheduled_for=read_moment(scheduled_for)
        )

    def cancel_run(self, run_id: RunId) -> View:
        """End a run and every open task of it, for good; who works on one is told to stop."""
        return self.service.commands.cancel(self.run(run_id))

    def retry(
        self,
        task_id: ThisTask = None,
        run_id: ThisRun = None,
        step: Annotated[
            str | None, Field(description="Of a run: do this step again, and all that needs it")
        ] = None,
    ) -> View:
        """Try again what failed or was cancelled of a run or task; what is done stays done.

        With `step`, that step of a run and everything that needs it are done again instead.
        """
        return self.service.commands.retry(self.find(task_id, run_id), step=step)

    def approve(
        self,
        task_id: WaitingTask,
        note: Annotated[str | None, Field(description="Kept with the decision")] = None,
    ) -> View:
        """Let a task that waits for approval go on. Do this only where a person told you to."""
        return self.service.commands.approve(self.find_asked(task_id), note)

    def reject(
        self,
        task_id: WaitingTask,
        reason: Annotated[str | None, Field(description="What is wrong with it")] = None,
    ) -> View:
        """Fail a task that waits for approval, and say why."""
        return self.service.commands.reject(self.find_asked(task_id), reason)
