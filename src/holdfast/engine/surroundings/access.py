"""Access tokens of the server: granted under a name, revoked by it, listed and looked up."""

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

MIN_SECRET_LENGTH = 32


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
    """Carry the operations out in the order of their names, in whatever order they came."""
    # Every process that remembers tokens is told to read them again.
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


class AccessTokens:
    """Access tokens; the store keeps only their digests, so reading the store reveals no token."""

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
        """Grant a role to a secret for as long as `expires`; None while the name has a valid token.

        With `agents` the worker may serve only these agents.
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
                agents=None if agents is None else json.dumps(validation.named_agents(agents)),
                ttl=None if seconds is None else positive_microseconds("expires", seconds),
            ),
            read=_read_access_if_granted,
        )

    @operation
    def revoke(self, name: str) -> Future[AccessToken]:
        """Revoke the token of a name; to revoke it again is a success too."""
        chosen = clean_name("name", name)

        def read(row: Row | None) -> AccessToken:
            return self.get(chosen) if row is None else read_access(row)

        return self._context.submit(RevokeAccess(name=chosen), read=read)

    @reading
    def get(self, name: str) -> AccessToken:
        """The token that was granted under a name."""
        rows = self._context.view(lambda tx: tx.read("access_by_name", name=name))
        if not rows:
            raise NotFound(name, "token")
        return read_access(rows[0])

    @reading
    def find(self, secret: str) -> AccessToken | None:
        """The valid token of a secret, with what it may do; None when there is no such token."""
        digest = digest_secret(secret)
        rows = self._context.view(lambda tx: tx.read("access_by_digest", digest=digest))
        return read_access(rows[0]) if rows else None

    @reading
    def good_digests(self) -> frozenset[str]:
        """The digests of all valid tokens, and of the valid sessions and links of browsers."""
        rows = self._context.view(lambda tx: tx.read("good_digests"))
        return frozenset(str(row["digest"]) for row in rows)

    @reading
    def good_among(self, digests: Sequence[str]) -> frozenset[str]:
        """Those of some digests that belong to valid tokens and sessions of browsers."""
        rows = self._context.view(lambda tx: tx.read("good_among", digests=digests))
        return frozenset(str(row["digest"]) for row in rows)

    @reading
    def list(self) -> Page[AccessToken]:
        """Every token that was granted, valid or not, in the order of the names."""
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
