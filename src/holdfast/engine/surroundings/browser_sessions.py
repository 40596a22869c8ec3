"""Browser sessions: a link lets one browser in, once, with what a token may do.

A session ends when the browser leaves it, when its time is over, or with its token.
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

# A link can be followed for the first time, and its session then lasts for the second.
LINK_LIFETIME = 10 * 60 * MICROSECONDS
SESSION_LIFETIME = 12 * 60 * 60 * MICROSECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserOperation(Operation):
    digest: str

    @property
    def keys(self) -> Keys:
        return (f"browser:{self.digest}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class MakeLink(BrowserOperation):
    """A link to what the token of `name` may do; `digest` is that of the code in the link."""

    name: str
    ttl: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EnterByLink(BrowserOperation):
    """The use of a link; from then on the browser shows the secret of the digest `session`."""

    session: str
    ttl: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaveBrowser(BrowserOperation):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserSession:
    """A session of a browser: the token that it acts with, and when it ends."""

    access: AccessToken
    ends_at: int


def carry_out_browser_operations(
    work: UnitOfWork, operations: Sequence[BrowserOperation]
) -> list[Row | None]:
    """Carry the operations out in the order of their digests, in whatever order they came."""
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


class BrowserSessions:
    """Sessions of browsers; of links and sessions, too, the store keeps only digests."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def link(self, name: str, code: str) -> Future[int | None]:
        """Have a code let one browser in; when the code ends, or None without a valid token."""
        asked = MakeLink(
            digest=digest_secret(code), name=clean_name("name", name), ttl=LINK_LIFETIME
        )
        return self._context.submit(asked, read=_read_expiry)

    @operation
    def enter(self, code: str, secret: str) -> Future[int | None]:
        """Use a code up and begin the session of a secret; when it ends, or None for a bad code."""
        session = digest_secret(secret)
        asked = EnterByLink(digest=digest_secret(code), session=session, ttl=SESSION_LIFETIME)
        return self._context.submit(asked, read=_read_expiry)

    @operation
    def leave(self, secret: str) -> Future[bool]:
        """End the session of a secret; whether there was one."""
        asked = LeaveBrowser(digest=digest_secret(secret))
        return self._context.submit(asked, read=lambda row: row is not None)

    @reading
    def find(self, secret: str) -> BrowserSession | None:
        """The session of a secret; None unless the session and its token are valid."""
        digest = digest_secret(secret)
        rows = self._context.view(lambda tx: tx.read("browser_by_digest", digest=digest))
        if not rows:
            return None
        return BrowserSession(access=read_access(rows[0]), ends_at=rows[0]["ends_at"])


def _read_expiry(row: Row | None) -> int | None:
    return None if row is None else int(row["expires_at"])
