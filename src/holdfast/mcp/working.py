"""Tools of who works: claim, keep, ask before side effects, report."""

from __future__ import annotations

from typing import Any

from holdfast.mcp.toolbox import Toolbox
from holdfast.model.task import Renewal
from holdfast.service.intake import read_moment
from holdfast.service.protocol import Offer
from holdfast.service.service import Service
from holdfast.service.views import View


class Working(Toolbox):
    def __init__(self, service: Service, worker: str) -> None:
        super().__init__(service)
        self._worker = worker

    def claim(
        self, agents: list[str] | None = None, task_id: str | None = None, lease: float = 600.0
    ) -> View:
        """Take the first ready task for these agents (`default` unless said), or the one named.

        Answers `{assignments: [{task, attempt, token, lease_expires_at}]}`, empty when nothing is
        ready. Keep the token: every report about this attempt needs it. Renew before the lease of
        so many seconds runs out, or another worker gets the task and your reports are refused.
        """
        offer = Offer(worker=self._worker, agents=agents or (), lease=lease)
        found = None if task_id is None else self.service.addresses.task(task_id)
        return self.service.protocol.claim(offer, task_id=found)

    def renew(
        self,
        task_id: str,
        token: str,
        progress: Any = None,  # noqa: ANN401 - JSON is any value
        lease: float = 600.0,
    ) -> View:
        """Keep the lease of a task, and say how far you are. When it is refused, stop working."""
        renewal = Renewal(task_id=task_id, token=token, progress=progress)
        return self.service.protocol.renew(renewal, lease)

    def guard(self, task_id: str, token: str) -> View:
        """Ask before any side effect (a push, a mail, a payment) whether you may still act.

        An error says that you may not: stop, and change nothing more.
        """
        return self.service.protocol.guard(task_id, token)

    def complete(
        self,
        task_id: str,
        token: str,
        output: Any = None,  # noqa: ANN401 - JSON is any value
    ) -> View:
        """Report that the task is done, with its output. The same report again counts once."""
        return self.service.protocol.complete(task_id, token, output)

    def fail(
        self,
        task_id: str,
        token: str,
        error: str,
        retryable: bool = True,  # noqa: FBT001, FBT002 - a field of a tool
    ) -> View:
        """Report that it went wrong; it is tried again while its budget lasts, if retryable."""
        return self.service.protocol.fail(task_id, token, error, retryable=retryable)

    def release(self, task_id: str, token: str, until: str | None = None) -> View:
        """Give the task back unfinished, now or until a time (`10m`); it costs no attempt."""
        return self.service.protocol.release(task_id, token, read_moment(until))

    def ask(self, task_id: str, token: str, question: str) -> View:
        """Give the task back with a question to a person; it is ready again once answered."""
        return self.service.protocol.ask(task_id, token, question)
