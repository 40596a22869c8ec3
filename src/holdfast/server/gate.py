"""The one gate in front of everything: no token, foreign host or foreign origin, no answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.model.token import AccessToken
from holdfast.server.auth.audit_throttle import Strangers
from holdfast.server.auth.auth_throttle import Tries
from holdfast.server.auth.rate_limits import Limiter, Rate, address_of
from holdfast.server.auth.recognition import LOOKING, Headers, Recognition
from holdfast.server.connection_limits import ConnectionLimits
from holdfast.server.problems import Problem, show_problem, too_many
from holdfast.server.proxies import Proxies
from holdfast.server.server_state import Serving
from holdfast.service.admin import audit
from holdfast.service.admin.browser_links import ENTER_PATH
from holdfast.settings import MEBIBYTE

OPEN = frozenset({"/healthz", ENTER_PATH})
ACCESS = "holdfast.access"
SESSION = "holdfast.session"
# What a change was about, for the audit: the route may say what its path does not.
ABOUT = "holdfast.about"
# Whether the token is still good, for what goes on long after it was looked at.
LOOK_AGAIN = "holdfast.look_again"
# The digest of the token, or of the cookie, that was shown.
SHOWN = "holdfast.shown"
# Looks up what a stranger shows, unless too much from there was not good.
TRY = "holdfast.try"
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
# What agents change there is told by the tools themselves.
TOOLS = "/mcp"
REFUSED = 400
# How much of what was asked for is kept in the audit.
LONGEST = 200
CSP = b"content-security-policy"
HEADERS = (
    (CSP, b"default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
# Far above what workers do: it keeps one caller from taking all there is.
OF_TOKEN = Rate(often=5_000, burst=10_000)
# With what is not good.
OF_ADDRESS = Rate(often=0.5, burst=30)
# How much is read of who has shown nothing.
OF_STRANGER = 10_000
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
_SHOWN = re.compile(r"[Bb]earer +[^ ]")
_OTHER_NAME = (
    "this server does not answer to that name; `holdfast serve --allow-host {}` has it do so"
)
_OTHER_ORIGIN = (
    "pages of that origin may not ask this server; `holdfast serve --allow-origin {}` lets them"
)
_NEEDED_BY_TOOLS = (
    "a good token is needed: set Authorization to Bearer … among the headers of this server in "
    "your client; `holdfast token create NAME --role operator` makes one"
)
_NEEDED = (
    "a good token is needed: Authorization: Bearer …; `holdfast token` tells yours, and "
    "`holdfast open` lets a browser in"
)
_NOT_TAKEN = (
    "this token is unknown, revoked or expired; at the server, `holdfast token create NAME --role "
    "worker` makes one for a worker, and `holdfast token` tells its own"
)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Which hosts, origins and proxies are believed, how much may be sent, and how often."""

    hosts: frozenset[str] = LOCAL
    origins: frozenset[str] = frozenset()
    max_body: int = 16 * MEBIBYTE
    rate: Rate | None = OF_TOKEN
    failures: Rate | None = OF_ADDRESS
    proxies: Proxies = field(default_factory=Proxies)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)


class Gate:
    def __init__(self, app: ASGIApp, serving: Serving, rules: Rules) -> None:
        self._app = app
        self._serving = serving
        self._rules = rules
        self._under_way: Counter[str] = Counter()
        self._asked = Limiter(rules.rate, serving.service.clock.monotonic)
        self._tries = Tries(serving.tokens, rules.failures)
        self._recognition = Recognition(serving.tokens, self._tries)

    @property
    def under_way(self) -> int:
        """How many bytes of bodies are held for calls that have not ended."""
        return self._under_way.total()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            self._rules.proxies.place(scope)
            await self._admit(scope, receive, _Sealed(scope, send, self._serving.strangers))

    async def _admit(self, scope: Scope, receive: Receive, send: _Sealed) -> None:
        headers = _single(scope["headers"])
        scope[TRY] = partial(self._tries.look, address_of(scope.get("client")))
        limit = OF_STRANGER if scope["path"] in OPEN else self._rules.max_body
        try:
            self._look_at(headers, limit)
            if scope["path"] not in OPEN:
                await self._recognise(scope, headers)
        except (HoldfastError, Problem) as error:
            await show_problem(scope, self._serving, error)(scope, receive, send)
            return
        body = _Measured(scope, receive, limit, self._take_room)
        try:
            await self._app(scope, body, send)
        finally:
            self._take_room(scope, -body.got)

    def _take_room(self, scope: Scope, size: int) -> None:
        """Count what a token has under way; raises `Problem` where that is too much."""
        access: AccessToken | None = scope.get(ACCESS)
        if access is None or not size:
            return
        most = self._rules.connections.bodies
        if size > 0 and self._under_way[access.name] + size > most:
            said = f"this token has bodies of {most} bytes under way, and may have no more at once"
            raise too_many(said, 1)
        self._under_way[access.name] += size
        if not self._under_way[access.name]:
            del self._under_way[access.name]

    def _look_at(self, headers: Headers, limit: int) -> None:
        host = headers.get(b"host", "")
        named = _HOST.fullmatch(host)
        if named is None or named["name"].lower() not in self._rules.hosts:
            name = "NAME" if named is None else named["name"].lower()
            raise Problem(403, "foreign_host", _OTHER_NAME.format(name))
        origin = headers.get(b"origin")
        own = {f"http://{host}", f"https://{host}"}
        if origin is not None and origin not in own | self._rules.origins:
            shown = ascii(origin)[1:-1][:LONGEST]
            raise Problem(403, "foreign_origin", _OTHER_ORIGIN.format(shown))
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length[:20]) > limit:
            raise Problem(413, "too_large", too_large(limit))

    async def _recognise(self, scope: Scope, headers: Headers) -> None:
        known = await self._recognition.recognise(scope, headers)
        if known is None:
            told = _tell_needed(scope["path"], headers)
            raise Problem(401, "unauthorized", told, {"WWW-Authenticate": "Bearer"})
        scope[ACCESS], scope[SESSION] = known.access, known.session
        scope[LOOK_AGAIN], scope[SHOWN] = known.look_again, known.digest
        if not known.proves(scope["method"], headers):
            said = "a page has to send what GET /api/v1/session tells as X-Holdfast-CSRF"
            raise Problem(403, "csrf", said)
        wait = self._asked.take(known.access.name)
        if wait is not None:
            raise too_many("this token asks too often", wait)


def _tell_needed(path: str, headers: Headers) -> str:
    if _SHOWN.match(headers.get(b"authorization", "")):
        return _NOT_TAKEN
    return _NEEDED_BY_TOOLS if path == TOOLS else _NEEDED


def too_large(limit: int) -> str:
    return f"a body may have {limit} bytes at most"


def _single(headers: list[tuple[bytes, bytes]]) -> Headers:
    """Headers by name; one that is there twice counts as what nobody accepts."""
    found: Headers = {}
    for name, value in headers:
        found[name] = "\n" if name in found else value.decode("latin-1")
    return found


class _Measured:
    """A body that is cut off where it grows too long, or its token has too much under way."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        limit: int,
        take_room: Callable[[Scope, int], None],
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._limit = limit
        self._take_room = take_room
        self.got = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        size = len(message.get("body", b""))
        if self.got + size > self._limit:
            raise Problem(413, "too_large", too_large(self._limit))
        self._take_room(self._scope, size)
        self.got += size
        return message


class _Sealed:
    """An answer with the headers that keep browsers careful; of a change, a line in the audit."""

    def __init__(self, scope: Scope, send: Send, strangers: Strangers) -> None:
        self._scope = scope
        self._send = send
        self._strangers = strangers

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            said = {name.lower() for name, _ in own}
            message["headers"] = own + [each for each in HEADERS if each[0] not in said]
            self._tell(message["status"])
        await self._send(message)

    def _tell(self, status: int) -> None:
        scope: dict[str, Any] = dict(self._scope)
        told_elsewhere = scope["path"] == TOOLS or scope.get(ABOUT, "") is None
        if scope["method"] in LOOKING or (told_elsewhere and status < REFUSED):
            return
        access: AccessToken | None = scope.get(ACCESS)
        did = f"{scope['method']} {ascii(scope['path'])[1:-1]}"[:LONGEST]
        about = str(scope.get(ABOUT) or "")
        if access is None:
            self._strangers.tell(address_of(scope.get("client")), did, str(status))
        else:
            audit.write_entry(access.name, did, str(status), role=access.role, about=about)
