"""Effects in pages: what a task remembers, by name, with the cursor behind it."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.service.views import View, present


def page_of_effects(engine: Engine, task_id: str, after: str | None, limit: int) -> View:
    """`{effects, next}`: so many of them, oldest first, behind what `next` said."""
    effects = engine.work.effects_page(task_id, _read(after), limit)
    more = urlsafe_b64encode(next(reversed(effects)).encode()) if len(effects) == limit else b""
    return present(effects=effects, next=more.decode() or None)


def _read(cursor: str | None) -> str | None:
    """The name that a cursor stands for."""
    if cursor is None:
        return None
    try:
        return urlsafe_b64decode(cursor).decode()
    except ValueError:
        reason = "is no cursor; pass what `next` said, as it was"
        raise InvalidInput("after", reason) from None
