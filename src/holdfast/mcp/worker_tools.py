"""Worker tools: claiming tasks, keeping leases, asking before side effects, and reporting."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.to_thread import run_sync
from pydantic import Field

from holdfast.mcp.tools import Held, Lease, Token, Toolbox, View
from holdfast.model.task import Assignment, Renewal
from holdfast.service.commands.request_errors import rename_fields
from holdfast.service.commands.task_fields import read_moment
from holdfast.service.protocol.long_polls import ClaimOptions
from holdfast.service.protocol.protocol import ClaimTerms, make_request_key, view_assignment

DEFAULT_LEASE = 600.0
Progress = Annotated[Any, Field(description="How far you are, for people to see")]
Output = Annotated[
    Any, Field(description="What came of it, as JSON: what the task declares, if it does")
]
Usage = Annotated[Any, Field(description="What this attempt has used so far, as {'usd': 0.2}")]


class WorkerTools(Toolbox):
    unaudited: ClassVar[frozenset[str]] = frozenset({"renew", "guard"})

    async def claim(  # noqa: PLR0913, PLR0917 - what HTTP takes
        self,
        agents: Annotated[
            list[str] | None, Field(description="The roles you work as; else `default`")
        ] = None,
        tags: Annotated[
            list[str] | None, Field(description="What you offer: tasks may want a tag")
        ] = None,
        max: Annotated[int, Field(ge=1, le=1_000, description="How many tasks at most")] = 1,  # noqa: A002 - the word for it over HTTP
        task_id: Annotated[str | None, Field(description="This task, and no other")] = None,
        worker: Annotated[str | None, Field(description="What you are called, if you say")] = None,
        lease_seconds: Lease = DEFAULT_LEASE,
        wait_seconds: Annotated[
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
        is ready: ask again, with `wait_seconds`. What is to be done is in the task's `title` and
        `payload`: `prompt`, `input`, `item`, in `steps` the outputs of steps it needed, and
        `feedback` where earlier work was rejected or a question answered. Keep the token: every
        report about this attempt needs it. Call renew before the lease runs out, guard before each
        side effect, and end with complete, fail, release or ask. Where the lease runs out another
        worker gets the task, and your reports are refused. Where the answer is lost, a call with
        the same `request_id` gives the same; without one, another task.
        """
        caller = self.find_caller()
        offer = ClaimTerms(
            worker=worker or caller.worker,
            agents=caller.service.token_scope.choose_agents(agents),
            tags=tags or (),
            lease=lease_seconds,
        )
        known = None
        if request_id is not None:
            known = make_request_key(caller.service.actor, offer.worker, request_id)
        ask = ClaimOptions(most=max, request=known)
        found = await run_sync(self._take, offer, ask, task_id)
        if not found and task_id is None and wait_seconds:
            found = await caller.wait(offer, ask, wait_seconds)
        if found and await self._is_gone(found, kept=known is not None):
            found = []
        return {"assignments": [view_assignment(each) for each in found]}

    def _take(self, offer: ClaimTerms, ask: ClaimOptions, task_id: str | None) -> list[Assignment]:
        named = None if task_id is None else self.task(task_id)
        protocol = self.service.protocol
        with rename_fields(lease="lease_seconds"):
            return protocol.claim_assignments(
                offer, most=ask.most, task_id=named, request=ask.request
            )

    async def _is_gone(self, found: list[Assignment], *, kept: bool) -> bool:
        """Whether the caller has hung up; the assignments were given back then."""
        caller = self.find_caller()
        try:
            # A cancelled call ends here, before it costs a thread or an operation of the writer.
            await checkpoint_if_cancelled()
            gone = not kept and caller.is_gone is not None and await caller.is_gone()
        except get_cancelled_exc_class():
            caller.service.protocol.release_unheard(found)
            raise
        if gone:
            caller.service.protocol.release_unheard(found)
        return gone

    def renew(
        self,
        task_id: Held,
        token: Token,
        progress: Progress = None,
        usage: Usage = None,
        lease_seconds: Lease = DEFAULT_LEASE,
    ) -> View:
        """Keep the lease of a task, and say how far you are. When it is refused, stop working."""
        renewal = Renewal(task_id=task_id, token=token, progress=progress, usage=usage)
        with rename_fields(lease="lease_seconds"):
            return self.service.protocol.renew(renewal, lease_seconds)

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
        usage: Usage = None,
    ) -> View:
        """Report that the task is done, with its output; what needed it may start.

        The same report again counts once, so repeat it when an answer was lost. If the task is to
        verify work, its output is `{"verdict": "accept"}`, or `{"verdict": "reject", "feedback":
        what is to be done otherwise}`.
        """
        return self.service.protocol.complete(task_id, token, output, usage)

    def fail(
        self,
        task_id: Held,
        token: Token,
        error: Annotated[str, Field(description="What went wrong, for who tries next")],
        retryable: Annotated[  # noqa: FBT002 - a field of a tool
            bool, Field(description="False where to try again would be of no use")
        ] = True,
        usage: Usage = None,
    ) -> View:
        """Report that it went wrong; it is tried again, later, while its budget lasts."""
        return self.service.protocol.fail(task_id, token, error, retryable=retryable, usage=usage)

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
