"""Operator tools: steering runs, and judging what waits for a person."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from holdfast.errors import InvalidInput
from holdfast.mcp.tools import NewLabels, RunId, TaskId, ThisRun, ThisTask, Toolbox, View
from holdfast.service.commands.task_fields import read_moment

WaitingTask = Annotated[
    str, Field(description="The task that waits (t_…), or a run (r_…) where only one waits")
]


DryRun = Annotated[
    bool, Field(description="Change nothing, and answer which tasks would change, and how")
]
Message = Annotated[Any, Field(description="What is to be done now; the `feedback` of who does it")]
Answer = Annotated[Any, Field(description="The answer: text, or any JSON")]
SignalPayload = Annotated[Any, Field(description="What comes with it: any JSON")]


class OperatorTools(Toolbox):
    destructive: ClassVar[frozenset[str]] = frozenset({"cancel_run", "reject"})

    def start_run(  # noqa: PLR0913, PLR0917 - what a run is started with
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
        labels: NewLabels = None,
    ) -> View:
        """Start a run of a workflow; give a `key` so that a call made again starts no second one.

        Answers the run with its id and tasks. Follow it with get_run, and ask why where it stands.
        """
        return self.service.commands.start_by_name(
            workflow,
            input,
            key=key,
            priority=priority,
            scheduled_for=read_moment(scheduled_for),
            labels=labels or {},
        )

    def cancel_run(
        self,
        run_id: RunId,
        dry_run: DryRun = False,  # noqa: FBT002 - a field of a tool
    ) -> View:
        """End a run and every open task of it, for good; who works on one is told to stop."""
        return self._steer("cancel", self.run(run_id), dry_run=dry_run)

    def _steer(self, verb: str, found: str, *, dry_run: bool, **options: object) -> View:
        """The answer to a command, or its preview in a dry run."""
        if dry_run:
            return self.service.previews.preview(verb, found, **options).view(id=found)
        answer: View = getattr(self.service.commands, verb)(found, **options)
        return answer

    def retry(
        self,
        task_id: ThisTask = None,
        run_id: ThisRun = None,
        step: Annotated[
            str | None, Field(description="Of a run: do this step again, and all that needs it")
        ] = None,
        dry_run: DryRun = False,  # noqa: FBT002 - a field of a tool
    ) -> View:
        """Try again what failed or was cancelled of a run or task; what is done stays done.

        With `step`, that step of a run and everything that needs it are done again instead.
        """
        return self._steer("retry", self.find(task_id, run_id), dry_run=dry_run, step=step)

    def reopen(self, task_id: TaskId) -> View:
        """Do an ended task again, even if it is done, and after it everything that needs it."""
        return self.service.commands.reopen(self.task(task_id))

    def continue_(
        self,
        task_id: TaskId,
        message: Message,
    ) -> View:
        """Do an ended task again with a message to who did it, and all that needs it."""
        return self.service.commands.follow_up(self.task(task_id), message)

    def pause(
        self,
        task_id: ThisTask = None,
        run_id: ThisRun = None,
        dry_run: DryRun = False,  # noqa: FBT002 - a field of a tool
    ) -> View:
        """Let the attempts of a run or task that run finish, and start no other until resume."""
        return self._steer("pause", self.find(task_id, run_id), dry_run=dry_run)

    def resume(  # noqa: PLR0913, PLR0917 - what can be resumed
        self,
        task_id: ThisTask = None,
        run_id: ThisRun = None,
        agent: Annotated[
            str | None, Field(description="Instead of both: this agent, at its usage limit")
        ] = None,
        add_usd: Annotated[
            float | None, Field(description="Of a run: adds dollars to its budget")
        ] = None,
        add_attempts: Annotated[
            int | None, Field(description="Of a run: adds attempts to its budget")
        ] = None,
        dry_run: DryRun = False,  # noqa: FBT002 - a field of a tool
    ) -> View:
        """Let a run or task go on that is paused, out of budget, or at a usage limit.

        Add to a budget only as a person says.
        """
        if agent is None:
            found = self.find(task_id, run_id)
            added = {"add_usd": add_usd, "add_attempts": add_attempts}
            return self._steer("resume", found, dry_run=dry_run, **added)
        if any(each is not None for each in (task_id, run_id, add_usd, add_attempts)):
            raise InvalidInput("agent", "is for all of that agent, and takes nothing else")
        if dry_run:
            return self.service.previews.lift_limit(agent).view(agent=agent)
        return self.service.commands.lift_limit(agent)

    def answer(
        self,
        task_id: WaitingTask,
        answer: Answer,
    ) -> View:
        """Answer the question that a task waits with; it goes on with the answer as `feedback`.

        Do this only where a person has told you the answer.
        """
        return self.service.commands.answer(self.find_asked(task_id), answer)

    def signal(
        self,
        name: Annotated[str, Field(description="The name of the signal that is waited for")],
        task_id: ThisTask = None,
        run_id: ThisRun = None,
        payload: SignalPayload = None,
        key: Annotated[
            str | None, Field(description="Makes it count once: the same key is the same signal")
        ] = None,
    ) -> View:
        """Send a signal to a run, or to a task without one; it is kept until something takes it.

        Answers in `waited_for` whether something waited for it, and in `awaited` for which.
        """
        return self.service.commands.signal(self.find(task_id, run_id), name, payload, key)

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
        comments: Annotated[
            list[dict[str, Any]] | None,
            Field(description="On files: `{file, line, text}`, for who does it again"),
        ] = None,
    ) -> View:
        """Fail a task that waits for approval, and say why; or send it back, as its step says."""
        asked = self.find_asked(task_id)
        return self.service.commands.reject(asked, reason, comments or ())
