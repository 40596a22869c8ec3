"""Token scope: the agents whose tasks a token may work on, and which children it may make."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.task import NewTask
from holdfast.model.text import parse_task_id
from holdfast.model.token import AccessToken, Role

_NO_FUNCTION_TEXT = (
    "step: a child that a worker's token makes names no function; leave step out, or have an "
    "operator make the task with POST /tasks"
)


class Forbidden(HoldfastError):
    """A token is valid, but does not allow the call."""


class TokenScope:
    """The scope of a token, for every front end; without a token everything is in scope."""

    def __init__(self, access: AccessToken | None, engine: Engine) -> None:
        self._access = access
        self._engine = engine

    @property
    def is_narrow(self) -> bool:
        """Whether the token is for some agents alone."""
        return self._access is not None and self._access.agents is not None

    def check_all_agents(self) -> None:
        """Raise `Forbidden` where the token is for some agents alone."""
        if self.is_narrow:
            raise Forbidden("this token is for some agents alone, and this is about all of them")

    def choose_agents(self, asked: Sequence[str] | None) -> Sequence[str] | None:
        """The agents that a caller names; where it names none, those of the token."""
        if self._access is None:
            return asked
        self._refuse_other_agents(asked or ())
        return self._access.agents if asked is None else asked

    def check_tasks(self, ids: Sequence[str]) -> None:
        """Raise `Forbidden` where one of the tasks is for an agent that the token is not for."""
        if not self.is_narrow:
            return
        known = list[str]()
        for each in ids:
            # The operation that follows refuses an id that is malformed.
            with suppress(InvalidInput):
                known.append(parse_task_id(each))
        rows = self._engine.database.view(lambda tx: tx.read("tasks_by_id", ids=known))
        self._refuse_other_agents([row["agent"] for row in rows])

    def check_children(self, wanted: Sequence[NewTask]) -> None:
        """Raise `Forbidden` where a child would be for another agent, or run a function."""
        if self._access is None:
            return
        self._refuse_other_agents([each.agent for each in wanted])
        if self._access.role is Role.WORKER and any(each.step is not None for each in wanted):
            raise Forbidden(_NO_FUNCTION_TEXT)

    def _refuse_other_agents(self, agents: Sequence[str]) -> None:
        if self._access is not None and (refusal := self._access.refusal(agents)):
            raise Forbidden(refusal)
