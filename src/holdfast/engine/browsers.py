"""Browsers that were let in: by a link, once, until they leave or it is over."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.browser_operations import BrowserOperation, EnterByLink, MakeLink
from holdfast.engine.group import Group
from holdfast.store.database import Row


def carry_out(group: Group, operations: Sequence[BrowserOperation]) -> list[Row | None]:
    """In the order of their digests, whatever order they were asked for in."""
    places = sorted(range(len(operations)), key=lambda place: operations[place].digest)
    given = {place: _carry_out(group, operations[place]) for place in places}
    return [given[place] for place in range(len(operations))]


def _carry_out(group: Group, operation: BrowserOperation) -> Row | None:
    tx, digest = group.tx, operation.digest
    if isinstance(operation, MakeLink):
        tx.run("forget_browsers")
        rows = tx.write("make_link", digest=digest, name=operation.name, ttl=operation.ttl)
    elif isinstance(operation, EnterByLink):
        session, ttl = operation.session, operation.ttl
        rows = tx.write("enter_by_link", digest=digest, session=session, ttl=ttl)
    else:
        rows = tx.write("leave_browser", digest=digest)
    return rows[0] if rows else None
