"""Who uses the tools: a process of their own, or whoever asks a server at the moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.model.task import Assignment
from holdfast.model.token import Access, Role
from holdfast.service.admin import audit
from holdfast.service.protocol.long_polls import Ask
from holdfast.service.protocol.protocol import Offer
from holdfast.service.service import Service

LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The service in somebody's name, what they are called as a worker, and their token if any.

    With `wait` they are given what becomes ready within some seconds; `is_gone` tells who has hung
    up, unless they cannot.
    """

    service: Service
    worker: str
    wait: Callable[[Offer, Ask, float], Awaitable[list[Assignment]]]
    access: Access | None = None
    is_gone: Callable[[], Awaitable[bool]] | None = None

    @property
    def looks(self) -> bool:
        """Whether they may look at tasks that they have not claimed."""
        return self.access is None or self.access.role is not Role.WORKER

    def note(self, tool: str, told: str, about: str = "") -> None:
        """Keep in the audit what they changed, or tried to: of long names, the beginning."""
        role = None if self.access is None else self.access.role
        did = f"MCP {_shown(tool)}"
        audit.tell(self.service.actor, did, told, role=role, about=_shown(about))


def _shown(text: str) -> str:
    return ascii(text)[1:-1][:LONGEST]


Asking = Callable[[], Caller]
