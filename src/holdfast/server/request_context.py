"""Request context: the service in the name of the caller, and the parameters that routes share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import anyio.to_thread
from fastapi import Depends, Path, Query, Request
from starlette.types import Scope

from holdfast.errors import InvalidInput, NotFound
from holdfast.model.text import parse_run_id, parse_task_id
from holdfast.model.token import AccessToken, Role
from holdfast.server.gate import ABOUT, ACCESS
from holdfast.server.server_state import ServerState
from holdfast.service.async_service import AsyncService
from holdfast.service.queries.addresses import is_key_address
from holdfast.service.queries.views import View


class RequestContext:
    """One request: its caller, and the service, which records each change in the caller's name."""

    def __init__(self, server_state: ServerState, access: AccessToken, scope: Scope) -> None:
        self._scope = scope
        self.server_state = server_state
        self.access = access
        self.service = server_state.service.acting_as(access)

    @property
    def async_service(self) -> AsyncService:
        return AsyncService(self.service, self.server_state.shared_reads)

    def note(self, *about: object) -> None:
        """Set the subject for the audit, where the path does not name it."""
        self._scope[ABOUT] = ascii(" ".join(map(str, about)))[1:-1][:200]

    def find_run(self, text: str) -> str:
        """The id of the run with a key, for a text that is `key:…`; any other text as it is."""
        return self.service.addresses.run(text) if self._may_follow(text) else text

    def find_task(self, text: str) -> str:
        """The id of the task with a key, for a text that is `key:…`; any other text as it is."""
        return self.service.addresses.task(text) if self._may_follow(text) else text

    def _may_follow(self, text: str) -> bool:
        # A worker knows the ids of its tasks, and is not told which keys there are.
        return is_key_address(text) and self.access.role is not Role.WORKER

    def steer(
        self, verb: str, identifier: str, *given: object, dry_run: bool, **options: object
    ) -> View:
        """The answer to a command that controls a run or task, or its preview in a dry run."""
        if not dry_run:
            answer: View = getattr(self.service.commands, verb)(identifier, *given, **options)
            return answer
        self.note("dry run")
        preview = self.service.previews.preview(verb, identifier, *given, **options)
        self.leave_out_of_audit()
        return preview.view(id=identifier)

    def leave_out_of_audit(self) -> None:
        """Keep no audit entry unless the request is refused: a renewal changes no task."""
        self._scope[ABOUT] = None


async def _open_context(request: Request) -> RequestContext:
    return RequestContext(request.app.state.server_state, request.scope[ACCESS], request.scope)


def require_run_id(text: str) -> str:
    """The id of a run; raises `NotFound` for text that is no id."""
    return _require_id(parse_run_id, text, "run")


async def _run_id(
    run_id: Annotated[str, Path(description="The id of a run: `r_…`, or `key:…`")],
    context: Annotated[RequestContext, Depends(_open_context)],
) -> str:
    return require_run_id(await _in_thread_if_key(context.find_run, run_id))


async def _task_id(
    task_id: Annotated[str, Path(description="The id of a task: `t_…`, or `key:…`")],
    context: Annotated[RequestContext, Depends(_open_context)],
) -> str:
    found = await _in_thread_if_key(context.find_task, task_id)
    return _require_id(parse_task_id, found, "task")


async def _in_thread_if_key(find: Callable[[str], str], text: str) -> str:
    """The id that a text means; only that of a key is read from the store."""
    return await in_thread(find, text) if is_key_address(text) else text


def _require_id(parse: Any, text: str, kind: str) -> str:  # noqa: ANN401 - either of two functions
    """An id; raises `NotFound` for text that is no id."""
    try:
        return str(parse(text))
    except InvalidInput:
        raise NotFound(ascii(text)[1:-1][:60], kind) from None


Context = Annotated[RequestContext, Depends(_open_context)]
RunId = Annotated[str, Depends(_run_id)]
TaskId = Annotated[str, Depends(_task_id)]
Key = Annotated[str | None, Query(description="The one with this key")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many at most")]
After = Annotated[str | None, Query(description="The `next` of the page before")]
Label = Annotated[
    list[str] | None, Query(description="With this label, NAME=VALUE; of several, with each")
]
Since = Annotated[str | None, Query(description="Made since: ISO 8601, or `24h` ago")]
Until = Annotated[str | None, Query(description="Made before: ISO 8601, or `24h` ago")]
DryRun = Annotated[bool, Query(description="Change nothing, and answer what would change")]

in_thread = anyio.to_thread.run_sync
