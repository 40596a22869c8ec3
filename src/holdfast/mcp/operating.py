"""Tools of who steers runs, and judges what waits for a person."""

from __future__ import annotations

from typing import Any

from holdfast.mcp.toolbox import Toolbox
from holdfast.service.views import View


class Operating(Toolbox):
    def start_run(
        self,
        workflow: str,
        input: dict[str, Any] | None = None,  # noqa: A002 - the word for it everywhere
        key: str | None = None,
    ) -> View:
        """Start a run of a workflow that the store knows; the same key again is the same run."""
        return self.service.commands.start_by_name(workflow, input, key=key)

    def cancel_run(self, run_id: str) -> View:
        """End a run and every open task of it, for good."""
        return self.service.commands.cancel(self.service.addresses.run(run_id))

    def retry(self, identifier: str, step: str | None = None) -> View:
        """Try again what failed or was cancelled of a run or task; with `step`, from there on."""
        return self.service.commands.retry(self.service.addresses.find(identifier), step=step)

    def approve(self, identifier: str, note: str | None = None) -> View:
        """Let a task that waits for approval go on; of a run, the only one that waits."""
        return self.service.commands.approve(self._asked(identifier), note)

    def reject(self, identifier: str, reason: str | None = None) -> View:
        """Fail a task that waits for approval, and say why."""
        return self.service.commands.reject(self._asked(identifier), reason)

    def _asked(self, identifier: str) -> str:
        return self.service.commands.asked_of_person(self.service.addresses.find(identifier))
