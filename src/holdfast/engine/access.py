"""Tokens of the server: granted under a name, and revoked by it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.access_operations import AccessOperation, GrantAccess
from holdfast.engine.group import Group
from holdfast.store.database import Row


def carry_out(group: Group, operations: Sequence[AccessOperation]) -> list[Row | None]:
    """In the order of their names, whatever order they were asked for in."""
    # Who remembers a token, here or elsewhere, is to look again.
    group.tells = True
    group.granted += [each.name for each in operations]
    places = sorted(range(len(operations)), key=lambda place: operations[place].name)
    given = {place: _carry_out(group, operations[place]) for place in places}
    return [given[place] for place in range(len(operations))]


def _carry_out(group: Group, operation: AccessOperation) -> Row | None:
    if isinstance(operation, GrantAccess):
        rows = group.tx.write(
            "grant_access",
            name=operation.name,
            digest=operation.digest,
            role=operation.role,
            agents=operation.agents,
            ttl=operation.ttl,
        )
    else:
        rows = group.tx.write("revoke_access", name=operation.name)
    return rows[0] if rows else None
