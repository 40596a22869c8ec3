"""Who asks: by the token in a header, or without one by the cookie of a browser."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from anyio.to_thread import run_sync
from starlette.types import Scope

from holdfast.model.token import Access, digest_secret
from holdfast.server.cookies import read_cookie
from holdfast.server.known_tokens import KnownTokens
from holdfast.server.limits import address_of
from holdfast.server.tries import Tries
from holdfast.service.admin.browser_links import is_proof

# What changes nothing, and so may be asked by a page that proves nothing.
LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})
PROOF = b"x-holdfast-csrf"
_BEARER = re.compile(r"[Bb]earer +([\x21-\x7e]{1,500})")

Headers = dict[bytes, str]


@dataclass(frozen=True, kw_only=True)
class Session:
    """What a browser shows, and until when it is good."""

    secret: str = field(repr=False)
    ends_at: int


@dataclass(frozen=True, kw_only=True)
class Known:
    """Somebody by the digest of what they showed, and a way to see later whether they still may."""

    access: Access
    digest: str
    look_again: Callable[[], Awaitable[object | None]]
    session: Session | None = None

    def proves(self, method: str, headers: Headers) -> bool:
        """Whether it is no page of somebody else that has a browser ask this."""
        if self.session is None or method in LOOKING:
            return True
        return is_proof(self.session.secret, headers.get(PROOF, ""))


class Recognition:
    def __init__(self, tokens: KnownTokens, tries: Tries) -> None:
        self._tokens = tokens
        self._tries = tries

    async def recognise(self, scope: Scope, headers: Headers) -> Known | None:
        """Who asks, if that is known; raises `Problem` where too much from there was not good."""
        address = address_of(scope.get("client"))
        shown = headers.get(b"authorization")
        if shown is None:
            return await self._by_cookie(address, read_cookie(scope, headers))
        given = _BEARER.fullmatch(shown)
        if given is None:
            self._tries.fail(address)
            return None
        if self._tokens.at_hand(given[1]) is not None:
            access = await self._tokens.recall(given[1])
        else:
            look = partial(self._tokens.look, given[1])
            access = await self._tries.look(address, given[1], look)
        again = partial(self._tokens.see, given[1])
        if access is None:
            return None
        return Known(access=access, digest=digest_secret(given[1]), look_again=again)

    async def _by_cookie(self, address: str, secret: str | None) -> Known | None:
        if secret is None:
            return None
        look = partial(run_sync, self._tokens.engine.browsers.find, secret)
        found = await self._tries.look(address, secret, look)
        if found is None:
            return None
        session = Session(secret=secret, ends_at=found.ends_at)
        digest = digest_secret(secret)
        return Known(access=found.access, digest=digest, look_again=look, session=session)
