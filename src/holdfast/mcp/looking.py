"""Tools that only look."""

from __future__ import annotations

from typing import Any

from holdfast.mcp.toolbox import Toolbox
from holdfast.service.logs import log_path, read_log

View = dict[str, Any]
MOST_LOG = 20_000


class Looking(Toolbox):
    def list_tasks(
        self,
        status: str | None = None,
        agent: str | None = None,
        run: str | None = None,
        parent: str | None = None,
        limit: int = 20,
    ) -> View:
        """List tasks, newest first, as `{items, next}`.

        Filter by status (idle, queued, running, done, failed, cancelled), by agent, by the id of a
        run, or by the id of a parent for the children of a plan.
        """
        return self.service.queries.tasks(
            limit=limit, status=status, agent=agent, run=run, parent=parent
        )

    def get_task(self, task_id: str) -> View:
        """Show one task: its state, payload, output, error, attempts and children."""
        return self.service.queries.task_whole(self.service.addresses.task(task_id))

    def why(self, identifier: str) -> View:
        """Explain why a task (t_…) or run (r_…) does not go on, and what would change that."""
        return self.service.why(self.service.addresses.find(identifier))

    def logs(self, task_id: str, attempt: int | None = None) -> View:
        """Give the end of what an attempt of a task wrote; the latest attempt unless said."""
        found = self.service.addresses.task(task_id)
        number = self.service.queries.task(found)["attempt"] if attempt is None else attempt
        text = read_log(log_path(self.service.place, found, number))
        return {"attempt": number, "text": text[-MOST_LOG:].decode(errors="replace")}


class Runs(Toolbox):
    def list_runs(
        self, status: str | None = None, workflow: str | None = None, limit: int = 20
    ) -> View:
        """List runs, newest first; status is running, completed, failed or cancelled."""
        return self.service.queries.runs(limit=limit, status=status, workflow=workflow)

    def get_run(self, run_id: str) -> View:
        """Show one run with all its tasks; `@last` is the newest."""
        return self.service.queries.run(self.service.addresses.run(run_id))
