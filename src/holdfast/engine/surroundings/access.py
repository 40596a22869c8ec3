"""Tokens of the server: granted under a name, and revoked by it.

What is asked about tokens of the server: that one is good, or no longer.

Tokens of the server: grant one, revoke one, see which there are, and what one may do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Keys, Operation
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.engine.read.pages import Page
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.retry import positive_microseconds
from holdfast.model.text import clean_name, clean_text
from holdfast.model.token import AccessToken, Role, digest_secret
from holdfast.model.units import parse_duration
from holdfast.store.database import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessOperation(Operation):
    name: str

    @property
    def keys(self) -> Keys:
        return (f"access:{self.name}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class GrantAccess(AccessOperation):
    digest: str
    role: str
    agents: str | None
    ttl: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RevokeAccess(AccessOperation):
    pass


def carry_out_access_operations(
    work: UnitOfWork, operations: Sequence[AccessOperation]
) -> list[Row | None]:
    """In the order of their names, whatever order they were asked for in."""
    # Who remembers a token, here or elsewhere, is to look again.
    work.notify = True
    work.granted += [each.name for each in operations]
    places = sorted(range(len(operations)), key=lambda place: operations[place].name)
    replies = {place: _grant_or_revoke(work, operations[place]) for place in places}
    return [replies[place] for place in range(len(operations))]


def _grant_or_revoke(work: UnitOfWork, operation: AccessOperation) -> Row | None:
    if isinstance(operation, GrantAccess):
        rows = work.tx.write(
            "grant_access",
            name=operation.name,
            digest=operation.digest,
            role=operation.role,
            agents=operation.agents,
            ttl=operation.ttl,
        )
    else:
        rows = work.tx.write("revoke_access", name=operation.name)
    return rows[0] if rows else None


MIN_SECRET_LENGTH = 32


class AccessTokens:
    """Of a token the store keeps its digest alone: whoever reads the store learns none."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def grant(
        self,
        name: str,
        secret: str,
        *,
        role: str,
        agents: Sequence[str] | None = None,
        expires: float | str | None = None,
    ) -> Future[AccessToken | None]:
        """Make a secret good for a role, for as long as said; None while the name has a good one.

        With `agents` a worker may serve these alone.
        """
        if len(clean_text("secret", secret)) < MIN_SECRET_LENGTH:
            raise InvalidInput("secret", f"must have {MIN_SECRET_LENGTH} characters or more")
        chosen = _check_role(role)
        if agents is not None and chosen is not Role.WORKER:
            raise InvalidInput("agents", f"are for workers; a token for {chosen} has none")
        seconds = None if expires is None else parse_duration("expires", expires)
        return self._context.submit(
            GrantAccess(
                name=validation.actor(name, "name"),
                digest=digest_secret(secret),
                role=chosen.value,
                agents=None if agents is None else json.dumps(validation.agents(agents)),
                ttl=None if seconds is None else positive_microseconds("expires", seconds),
            ),
            read=_read_access_if_granted,
        )

    @operation
    def revoke(self, name: str) -> Future[AccessToken]:
        """Have the token of a name be good for nothing from now on; again is a success too."""
        chosen = clean_name("name", name)

        def read(row: Row | None) -> AccessToken:
            return self.get(chosen) if row is None else read_access(row)

        return self._context.submit(RevokeAccess(name=chosen), read=read)

    @reading
    def get(self, name: str) -> AccessToken:
        """What was granted under a name."""
        rows = self._context.view(lambda tx: tx.read("access_by_name", name=name))
        if not rows:
            raise NotFound(name, "token")
        return read_access(rows[0])

    @reading
    def find(self, secret: str) -> AccessToken | None:
        """What a token may do; None when it is not good, or not any more."""
        digest = digest_secret(secret)
        rows = self._context.view(lambda tx: tx.read("access_by_digest", digest=digest))
        return read_access(rows[0]) if rows else None

    @reading
    def good_digests(self) -> frozenset[str]:
        """The digests of all that is good: tokens, and the sessions and links of browsers."""
        rows = self._context.view(lambda tx: tx.read("good_digests"))
        return frozenset(str(row["digest"]) for row in rows)

    @reading
    def good_among(self, digests: Sequence[str]) -> frozenset[str]:
        """Which of some digests are of tokens, and of sessions of browsers, that are good."""
        rows = self._context.view(lambda tx: tx.read("good_among", digests=digests))
        return frozenset(str(row["digest"]) for row in rows)

    @reading
    def list(self) -> Page[AccessToken]:
        """Every token that was granted, good or not, by its name."""
        return [read_access(row) for row in self._context.view(lambda tx: tx.read("list_access"))]


def _check_role(value: object) -> Role:
    known = [each.value for each in Role]
    if not isinstance(value, str) or value not in known:
        raise InvalidInput("role", f"{value!r} is not one of {', '.join(known)}")
    return Role(value)


def _read_access_if_granted(row: Row | None) -> AccessToken | None:
    return None if row is None else read_access(row)


def read_access(row: Row) -> AccessToken:
    agents = row["agents"]
    return AccessToken(
        name=row["name"],
        role=Role(row["role"]),
        agents=None if agents is None else tuple(json.loads(agents)),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )
