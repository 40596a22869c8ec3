"""Browsers that were let in: by a link, once, until they leave or it is over.

What is asked about browsers: a link that lets one in, that one comes in by it, or leaves.

Browsers of the server: let one in by a link, see what it may do, and let it go.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.clock import MICROSECONDS
from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Keys, Operation
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.surroundings.access import read_access
from holdfast.model.text import clean_name
from holdfast.model.token import AccessToken, digest_secret
from holdfast.store.database import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserOperation(Operation):
    digest: str

    @property
    def keys(self) -> Keys:
        return (f"browser:{self.digest}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class MakeLink(BrowserOperation):
    """For what the token of a `name` may do."""

    name: str
    ttl: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EnterByLink(BrowserOperation):
    """From then on `session` is the digest of what the browser shows."""

    session: str
    ttl: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaveBrowser(BrowserOperation):
    pass


def carry_out_browser_operations(
    work: UnitOfWork, operations: Sequence[BrowserOperation]
) -> list[Row | None]:
    """In the order of their digests, whatever order they were asked for in."""
    places = sorted(range(len(operations)), key=lambda place: operations[place].digest)
    replies = {place: _link_enter_or_leave(work, operations[place]) for place in places}
    return [replies[place] for place in range(len(operations))]


def _link_enter_or_leave(work: UnitOfWork, operation: BrowserOperation) -> Row | None:
    tx, digest = work.tx, operation.digest
    if isinstance(operation, MakeLink):
        tx.run("forget_browsers")
        rows = tx.write("make_link", digest=digest, name=operation.name, ttl=operation.ttl)
    elif isinstance(operation, EnterByLink):
        session, ttl = operation.session, operation.ttl
        rows = tx.write("enter_by_link", digest=digest, session=session, ttl=ttl)
    else:
        rows = tx.write("leave_browser", digest=digest)
    return rows[0] if rows else None


# How long a link waits for somebody to follow it, and how long they are in then.
LINK_LIFETIME = 10 * 60 * MICROSECONDS
SESSION_LIFETIME = 12 * 60 * 60 * MICROSECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserSession:
    """Somebody in a browser: what their token may do, until when."""

    access: AccessToken
    ends_at: int


class BrowserSessions:
    """Of links and sessions too the store keeps digests alone."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def link(self, name: str, code: str) -> Future[int | None]:
        """Have a code let one browser in with what a token may do; until when, if that is good."""
        asked = MakeLink(
            digest=digest_secret(code), name=clean_name("name", name), ttl=LINK_LIFETIME
        )
        return self._context.submit(asked, read=_read_expiry)

    @operation
    def enter(self, code: str, secret: str) -> Future[int | None]:
        """Use up a code: from now on the secret is what the browser shows, until when."""
        session = digest_secret(secret)
        asked = EnterByLink(digest=digest_secret(code), session=session, ttl=SESSION_LIFETIME)
        return self._context.submit(asked, read=_read_expiry)

    @operation
    def leave(self, secret: str) -> Future[bool]:
        """Have what a browser shows be good for nothing from now on; whether it was."""
        asked = LeaveBrowser(digest=digest_secret(secret))
        return self._context.submit(asked, read=lambda row: row is not None)

    @reading
    def find(self, secret: str) -> BrowserSession | None:
        """Who shows this; None when it is not good, or not any more, or its token is not."""
        digest = digest_secret(secret)
        rows = self._context.view(lambda tx: tx.read("browser_by_digest", digest=digest))
        if not rows:
            return None
        return BrowserSession(access=read_access(rows[0]), ends_at=rows[0]["ends_at"])


def _read_expiry(row: Row | None) -> int | None:
    return None if row is None else int(row["expires_at"])
