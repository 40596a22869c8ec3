"""Tools of who splits work into tasks."""

from __future__ import annotations

from typing import Any

from holdfast.mcp.toolbox import Toolbox
from holdfast.service.intake import read_changes, read_new_task
from holdfast.service.views import View
from holdfast.settings import Settings


class Planning(Toolbox):
    def create_task(  # noqa: PLR0913, PLR0917 - what a task is made of
        self,
        title: str,
        agent: str | None = None,
        payload: Any = None,  # noqa: ANN401 - JSON is any value
        needs: list[str] | None = None,
        key: str | None = None,
        scheduled_for: str | None = None,
        priority: int | None = None,
        enqueue: bool = True,  # noqa: FBT001, FBT002 - a field of a tool
    ) -> View:
        """Create a task, in the queue unless `enqueue` is false.

        `agent` is the role that works on it, `needs` the ids of tasks that must be done before,
        `key` makes it exist once, `scheduled_for` is a time in ISO 8601 or `10m` from now. To plan
        a task in parts, create it with `enqueue` false, then start_planning.
        """
        fields = {"title": title, "agent": agent, "payload": payload, "needs": needs, "key": key}
        more = {"scheduled_for": scheduled_for, "priority": priority, "enqueue": enqueue}
        return self.service.commands.add_task(self._read({**fields, **more}))

    def update_task(
        self, task_id: str, changes: dict[str, Any], version: int | None = None
    ) -> View:
        """Change a task that has not started: title, agent, payload, priority, position, tags.

        With `version`, only if it is still at that version.
        """
        found = self.service.addresses.task(task_id)
        return self.service.commands.edit(found, read_changes(changes), version)

    def cancel_task(self, task_id: str) -> View:
        """End a task and all below it, for good; whoever works on it is told to stop."""
        return self.service.commands.cancel(self.service.addresses.task(task_id))

    def start_planning(self, task_id: str) -> View:
        """Begin to plan an idle task; then add_child for each part, and finalize_plan."""
        return self.service.commands.start_planning(self.service.addresses.task(task_id))

    def add_child(
        self,
        parent_id: str,
        title: str,
        agent: str | None = None,
        payload: Any = None,  # noqa: ANN401 - JSON is any value
    ) -> View:
        """Add one part to a plan that is not finalized; without an agent it gets the plan's."""
        fields = {"title": title, "agent": agent, "payload": payload, "enqueue": False}
        parent = self.service.addresses.task(parent_id)
        return self.service.commands.add_task(self._read({**fields, "parent": parent}))

    def reorder(self, parent_id: str, order: list[str]) -> View:
        """Put the parts of a plan in this order; name all of them by their ids."""
        return self.service.commands.reorder_plan(self.service.addresses.task(parent_id), order)

    def finalize_plan(self, parent_id: str, graph: dict[str, list[str]] | None = None) -> View:
        """Queue the parts of a plan: one after another, or by `graph`, what each part needs.

        The first part may start at once; nobody has to wake anything.
        """
        return self.service.commands.finalize_plan(self.service.addresses.task(parent_id), graph)

    def _read(self, fields: dict[str, Any]) -> Any:  # noqa: ANN401 - a task to be made
        return read_new_task(fields, Settings(url=self.service.place.url))
