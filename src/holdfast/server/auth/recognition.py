"""Recognition: the caller of a request, by the token in a header or by the cookie of a browser.

The cookie belongs to one server: servers on one machine have cookies of different names.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from anyio.to_thread import run_sync
from starlette.types import Scope

from holdfast.model.token import AccessToken, digest_secret
from holdfast.server.auth.auth_throttle import AuthThrottle
from holdfast.server.auth.known_tokens import KnownTokens
from holdfast.server.auth.rate_limits import address_of_client
from holdfast.service.admin.browser_links import NewBrowserSession, is_csrf_proof

_PORT = re.compile(r":(\d{1,5})$")
_VALUE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def cookie_name(scope: Scope, host: str) -> str:
    """The name has the port, since browsers tell cookies apart by host, and `__Host-` over TLS."""
    found = _PORT.search(host)
    own = "holdfast" if found is None else f"holdfast_{found[1]}"
    return f"__Host-{own}" if scope["scheme"] == "https" else own


def read_cookie(scope: Scope, headers: dict[bytes, str]) -> str | None:
    """The secret in the cookie of a browser; a cookie that is there twice counts as none."""
    name = cookie_name(scope, headers.get(b"host", ""))
    parts = [each.strip().partition("=") for each in headers.get(b"cookie", "").split(";")]
    found = [value for key, _, value in parts if key == name]
    return found[0] if len(found) == 1 and _VALUE.fullmatch(found[0]) else None


def write_cookie(
    scope: Scope, host: str, entered: NewBrowserSession | None, seconds: int = 0
) -> str:
    """The header that has the browser keep its secret, or forget it."""
    secure = "; Secure" if scope["scheme"] == "https" else ""
    value = "" if entered is None else entered.secret
    rules = f"Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
    return f"{cookie_name(scope, host)}={value}; {rules}"


# Methods that change nothing, which need no proof of the origin.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_HEADER = b"x-holdfast-csrf"
_BEARER = re.compile(r"[Bb]earer +([\x21-\x7e]{1,500})")

Headers = dict[bytes, str]


@dataclass(frozen=True, kw_only=True)
class CallerSession:
    """The secret that a browser shows, and the end of its session."""

    secret: str = field(repr=False)
    ends_at: int


@dataclass(frozen=True, kw_only=True)
class RecognisedCaller:
    """A caller, the digest of its secret, and a way to look up later whether that is still good."""

    access: AccessToken
    digest: str
    look_again: Callable[[], Awaitable[object | None]]
    session: CallerSession | None = None

    def proves_origin(self, method: str, headers: Headers) -> bool:
        """Whether the request cannot come from a foreign page that uses the cookie of a browser."""
        if self.session is None or method in SAFE_METHODS:
            return True
        return is_csrf_proof(self.session.secret, headers.get(CSRF_HEADER, ""))


class Recognition:
    def __init__(self, tokens: KnownTokens, tries: AuthThrottle) -> None:
        self._tokens = tokens
        self._auth_throttle = tries

    async def recognise(self, scope: Scope, headers: Headers) -> RecognisedCaller | None:
        """The caller, if known; raises `Problem` after too many wrong secrets from its address."""
        address = address_of_client(scope.get("client"))
        shown = headers.get(b"authorization")
        if shown is None:
            return await self._by_cookie(address, read_cookie(scope, headers))
        given = _BEARER.fullmatch(shown)
        if given is None:
            self._auth_throttle.count_failure(address)
            return None
        if self._tokens.find_cached(given[1]) is not None:
            access = await self._tokens.find_and_refresh(given[1])
        else:
            look = partial(self._tokens.look, given[1])
            access = await self._auth_throttle.look(address, given[1], look)
        again = partial(self._tokens.find_unchanged, given[1])
        if access is None:
            return None
        return RecognisedCaller(access=access, digest=digest_secret(given[1]), look_again=again)

    async def _by_cookie(self, address: str, secret: str | None) -> RecognisedCaller | None:
        if secret is None:
            return None
        look = partial(run_sync, self._tokens.service.links.find_session, secret)
        found = await self._auth_throttle.look(address, secret, look)
        if found is None:
            return None
        session = CallerSession(secret=secret, ends_at=found.ends_at)
        digest = digest_secret(secret)
        return RecognisedCaller(
            access=found.access, digest=digest, look_again=look, session=session
        )
