"""Tools of who works: claim, keep, ask before side effects, report."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.to_thread import run_sync
from pydantic import Field

from holdfast.mcp.fields import Held, Lease, Token, View
from holdfast.mcp.toolbox import Toolbox
from holdfast.model.task import Assignment, Renewal
from holdfast.service.assignments import view_assignment
from holdfast.service.intake import read_moment
from holdfast.service.protocol import Offer, request_key
from holdfast.service.waiting import Ask

LEASE = 600.0
Progress = Annotated[Any, Field(description="How far you are, for people to see")]
Output = Annotated[
    Any, Field(description="What came of it, as JSON: what the task declares, if it does")
]


class Working(Toolbox):
    keeps: ClassVar[frozenset[str]] = frozenset({"renew", "guard"})

    async def claim(
        self,
        agents: Annotated[
            list[str] | None, Field(description="The roles you work as; else `default`")
        ] = None,
        task_id: Annotated[str | None, Field(description="This task, and no other")] = None,
        lease: Lease = LEASE,
        wait: Annotated[
            float,
            Field(ge=0, le=30, description="For how many seconds to wait where none is ready"),
        ] = 0.0,
        request_id: Annotated[
            str | None,
            Field(description="A name of your own for this call: the same again gives the same"),
        ] = None,
    ) -> View:
        """Take the first ready task for these agents, or the one named.

        Answers `{assignments: [{task, attempt, token, lease_expires_at}]}`, with none when nothing
        is ready: ask again, with `wait`. What is to be done is in the task's `title` and `payload`:
        `prompt`, `input`, `item`, in `steps` the outputs of steps it needed, and `feedback` where
        earlier work was rejected or a question answered. Keep the token: every report about this
        attempt needs it. Call renew before the lease runs out, guard before each side effect, and
        end with complete, fail, release or ask. Where the lease runs out another worker gets the
        task, and your reports are refused. Where the answer is lost, a call with the same
        `request_id` gives the same; without one, another task.
        """
        caller = self.asking()
        offer = Offer(worker=caller.worker, agents=caller.scope(agents), lease=lease)
        known = None
        if request_id is not None:
            known = request_key(caller.service.actor, caller.worker, request_id)
        found = await run_sync(self._take, offer, task_id, known)
        if not found and task_id is None and wait:
            found = await caller.wait(offer, Ask(request=known), wait)
        if found and await self._is_gone(found, kept=known is not None):
            found = []
        return {"assignments": [view_assignment(each) for each in found]}

    def _take(self, offer: Offer, task_id: str | None, known: str | None) -> list[Assignment]:
        named = None if task_id is None else self.task(task_id)
        return self.service.protocol.take(offer, task_id=named, request=known)

    async def _is_gone(self, found: list[Assignment], *, kept: bool) -> bool:
        """Whether nobody waits for the answer any more, so that what was found was given back."""
        caller = self.asking()
        try:
            # Neither a thread nor the writer is disturbed where the call is cancelled.
            await checkpoint_if_cancelled()
            gone = not kept and caller.is_gone is not None and await caller.is_gone()
        except get_cancelled_exc_class():
            caller.service.protocol.give_back(found)
            raise
        if gone:
            caller.service.protocol.give_back(found)
        return gone

    def renew(
        self,
        task_id: Held,
        token: Token,
        progress: Progress = None,
        lease: Lease = LEASE,
    ) -> View:
        """Keep the lease of a task, and say how far you are. When it is refused, stop working."""
        renewal = Renewal(task_id=task_id, token=token, progress=progress)
        return self.service.protocol.renew(renewal, lease)

    def guard(self, task_id: Held, token: Token) -> View:
        """Ask before any side effect (a push, a mail, a payment) whether you may still act.

        An error says that you may not: the task was cancelled, or is another's by now. Stop, and
        change nothing more.
        """
        return self.service.protocol.guard(task_id, token)

    def complete(
        self,
        task_id: Held,
        token: Token,
        output: Output = None,
    ) -> View:
        """Report that the task is done, with its output; what needed it may start.

        The same report again counts once, so repeat it when an answer was lost. If the task is to
        verify work, its output is `{"verdict": "accept"}`, or `{"verdict": "reject", "feedback":
        what is to be done otherwise}`.
        """
        return self.service.protocol.complete(task_id, token, output)

    def fail(
        self,
        task_id: Held,
        token: Token,
        error: Annotated[str, Field(description="What went wrong, for who tries next")],
        retryable: Annotated[  # noqa: FBT002 - a field of a tool
            bool, Field(description="False where to try again would be of no use")
        ] = True,
    ) -> View:
        """Report that it went wrong; it is tried again, later, while its budget lasts."""
        return self.service.protocol.fail(task_id, token, error, retryable=retryable)

    def release(
        self,
        task_id: Held,
        token: Token,
        until: Annotated[
            str | None, Field(description="Not before: a time in ISO 8601, or `10m` from now")
        ] = None,
    ) -> View:
        """Give the task back unfinished, for anybody to take; it costs no attempt."""
        return self.service.protocol.release(task_id, token, read_moment(until))

    def ask(
        self,
        task_id: Held,
        token: Token,
        question: Annotated[str, Field(description="What you have to know to go on")],
    ) -> View:
        """Give the task back with a question to a person; once answered, it can be claimed again.

        The answer is then the `feedback` in its payload.
        """
        return self.service.protocol.ask(task_id, token, question)
