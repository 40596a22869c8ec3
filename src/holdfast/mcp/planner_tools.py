"""Planner tools: creating tasks, changing them, and planning them in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import Field

from holdfast.mcp.tools import Agent, NewLabels, Payload, TaskId, Toolbox, View
from holdfast.service.commands.task_fields import read_changes, read_new_task
from holdfast.settings import Settings

Prompt = Annotated[
    str | None,
    Field(description="What its agent is asked to do: the whole prompt, for one who knows no more"),
]
Workflow = Annotated[
    str | None,
    Field(description="Instead of a prompt: a workflow that the store knows, of which it is a run"),
]
Input = Annotated[dict[str, Any] | None, Field(description="What that workflow is started with")]
Planned = Annotated[str, Field(description="The task that is being planned")]
Title = Annotated[str, Field(description="What is to be done, in one line")]
Key = Annotated[str | None, Field(description="Makes it exist once: the same key is the same task")]
When = Annotated[str | None, Field(description="Not before: a time in ISO 8601, or `10m` from now")]
Priority = Annotated[int | None, Field(description="Higher goes first")]
Tags = Annotated[list[str] | None, Field(description="A worker has to offer all of them")]
Timeout = Annotated[
    str | float | None, Field(description="How long an attempt may take: seconds, or `30m`")
]
MaxAttempts = Annotated[int | None, Field(description="How often it may fail before it has failed")]
MaxLost = Annotated[int | None, Field(description="How many workers may vanish with it")]
Needs = Annotated[
    list[str] | None,
    Field(description="Tasks that must be done before it starts, by their ids or keys"),
]


class PlannerTools(Toolbox):
    destructive: ClassVar[frozenset[str]] = frozenset({"cancel_task", "delete_task", "reset"})

    def create_task(  # noqa: PLR0913, PLR0917 - what a task is made of
        self,
        title: Title,
        agent: Agent = None,
        prompt: Prompt = None,
        payload: Payload = None,
        workflow: Workflow = None,
        input: Input = None,  # noqa: A002 - the word for it everywhere
        needs: Needs = None,
        parent: Annotated[str | None, Field(description="The task that it is below")] = None,
        key: Key = None,
        scheduled_for: When = None,
        priority: Priority = None,
        tags: Tags = None,
        timeout: Timeout = None,
        max_attempts: MaxAttempts = None,
        max_lost: MaxLost = None,
        labels: NewLabels = None,
        enqueue: Annotated[  # noqa: FBT002 - a field of a tool
            bool, Field(description="False keeps it idle, to be planned or to wait for you")
        ] = True,
    ) -> View:
        """Create a task and answer it; it is in the queue, and some worker takes it when ready.

        To plan a task in parts: create it with `enqueue` false, then start_planning, add_child for
        each part, finalize_plan.
        """
        fields = {"title": title, "agent": agent, "payload": payload, "key": key}
        more = {"parent": parent, "scheduled_for": scheduled_for, "priority": priority}
        rest = {"tags": tags, "timeout": timeout, "max_attempts": max_attempts}
        last = {"max_lost": max_lost, "enqueue": enqueue, "needs": self._find_needs(needs)}
        called = {"prompt": prompt, "workflow": workflow, "input": input, "labels": labels}
        wanted = self._read({**fields, **more, **rest, **last, **called})
        return self.service.commands.add_task(wanted)

    def update_task(  # noqa: PLR0913, PLR0917 - what can be changed of a task
        self,
        task_id: TaskId,
        title: Annotated[str | None, Field(description="What is to be done, in one line")] = None,
        agent: Annotated[str | None, Field(description="The role that works on it")] = None,
        prompt: Annotated[
            str | None, Field(description="A new prompt, in a new payload: give `payload` besides")
        ] = None,
        payload: Payload = None,
        scheduled_for: When = None,
        priority: Priority = None,
        position: Annotated[int | None, Field(description="Its place among its equals")] = None,
        tags: Tags = None,
        timeout: Timeout = None,
        max_attempts: MaxAttempts = None,
        max_lost: MaxLost = None,
        version: Annotated[
            int | None, Field(description="The `version` you saw: refused if it has changed since")
        ] = None,
    ) -> View:
        """Change a task that is idle or queued, between two attempts too."""
        fields = {"title": title, "agent": agent, "payload": payload, "position": position}
        more = {"scheduled_for": scheduled_for, "priority": priority, "tags": tags}
        rest = {"timeout": timeout, "max_attempts": max_attempts, "max_lost": max_lost}
        asked = {**fields, **more, **rest, "prompt": prompt}
        changes = {name: value for name, value in asked.items() if value is not None}
        return self.service.commands.edit(self.task(task_id), read_changes(changes), version)

    def block_task(
        self,
        task_id: TaskId,
        needs: Annotated[
            list[str], Field(description="The tasks that must be done before it: ids or keys")
        ],
    ) -> View:
        """Have a task that has not begun wait for others too; what would be a circle is refused."""
        return self.service.commands.block(self.task(task_id), self.tasks("needs", needs))

    def unblock_task(
        self,
        task_id: TaskId,
        needs: Annotated[
            list[str] | None,
            Field(description="The tasks that it is not to wait for: ids or keys; else all"),
        ] = None,
    ) -> View:
        """Take away links made by hand; what its workflow or plan has a task wait for stays.

        That is passed by its own end alone: an approval by the word of a person.
        """
        chosen = None if needs is None else self.tasks("needs", needs)
        return self.service.commands.unblock(self.task(task_id), chosen)

    def cancel_task(self, task_id: TaskId) -> View:
        """End a task and all below it, for good; whoever works on it is told to stop."""
        return self.service.commands.cancel(self.task(task_id))

    def delete_task(self, task_id: TaskId) -> View:
        """Remove a task that nothing needs, with its history: a part of a plan too.

        A task of a run is not deleted, and one that runs is cancelled first.
        """
        return self.service.commands.delete(self.task(task_id))

    def enqueue(self, task_id: TaskId) -> View:
        """Put an idle task in the queue. The parts of a plan are queued by finalize_plan."""
        return self.service.commands.enqueue(self.task(task_id))

    def run_now(self, task_id: TaskId) -> View:
        """Put a task first in line, past order, its time and a pause."""
        return self.service.commands.run_now(self.task(task_id))

    def reset(self, task_id: TaskId) -> View:
        """Take a task back to idle, as if it had never run; a plan, to planning with all its parts.

        Then change it, and enqueue it or finalize_plan again.
        """
        return self.service.commands.reset(self.task(task_id))

    def start_planning(self, task_id: TaskId) -> View:
        """Begin to plan an idle task; then add_child for each part, and finalize_plan.

        Nothing of the plan starts before finalize_plan, so add, change and reorder at leisure.
        """
        return self.service.commands.start_planning(self.task(task_id))

    def add_child(  # noqa: PLR0913, PLR0917 - what a part is made of
        self,
        task_id: Planned,
        title: Title,
        agent: Annotated[
            str | None, Field(description="The role that works on it; else that of the plan")
        ] = None,
        prompt: Prompt = None,
        payload: Payload = None,
        workflow: Workflow = None,
        input: Input = None,  # noqa: A002 - the word for it everywhere
        needs: Annotated[
            list[str] | None,
            Field(description="The parts that must be done before it: ids or keys; else the last"),
        ] = None,
        key: Key = None,
    ) -> View:
        """Add one part to a plan that is not finalized, behind those that it has, and answer it.

        Write the prompt so that somebody who knows nothing else can do the part: a worker gives it
        to the command of the agent, if `holdfast.yaml` has one, or to whoever claims it. Give a
        `key` so that a call made again adds no second one, and so that `needs` can name it. A part
        without `needs` on other parts waits for the part before it.
        """
        fields = {"title": title, "agent": agent, "prompt": prompt, "payload": payload, "key": key}
        more = {"parent": self.task(task_id), "enqueue": False, "needs": self._find_needs(needs)}
        more |= {"workflow": workflow, "input": input}
        wanted = replace(self._read({**fields, **more}), part=True)
        return self.service.commands.add_task(wanted)

    def reorder(
        self,
        task_id: Planned,
        order: Annotated[
            list[str], Field(description="All its parts, first to last, by their ids or keys")
        ],
    ) -> View:
        """Put the parts of a plan in this order; name all of them."""
        wanted = self.tasks("order", order)
        return self.service.commands.reorder_plan(self.task(task_id), wanted)

    def finalize_plan(
        self,
        task_id: Planned,
        graph: Annotated[
            dict[str, list[str]] | None,
            Field(
                description="What each part needs, by id or key: {'c': ['a', 'b']}; else a chain"
            ),
        ] = None,
    ) -> View:
        """Let a plan go: its parts are queued one after another, or by `graph`.

        Without a `graph`, a part that was added with `needs` on other parts waits for these alone.

        The first part may start at once, each other when what it needs is done, and the planned
        task is done when all are; nobody has to wake anything. Watch it with get_task.
        """
        plan = self.task(task_id)
        if graph is None:
            return self.service.commands.finalize_plan(plan, None)
        needs: dict[str, list[str]] = {}
        for part, needed in zip(self.tasks("graph", list(graph)), graph.values(), strict=True):
            needs.setdefault(part, []).extend(self.tasks("graph", needed))
        return self.service.commands.finalize_plan(plan, needs)

    def _find_needs(self, needs: Sequence[str] | None) -> list[str] | None:
        return None if needs is None else self.tasks("needs", needs)

    def _read(self, fields: dict[str, Any]) -> Any:  # noqa: ANN401 - a task to be made
        return read_new_task(fields, Settings(url=self.service.location.url))
