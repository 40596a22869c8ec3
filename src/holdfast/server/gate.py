"""Gate: the checks before every route, of host, origin, token, rate and size."""

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
from holdfast.server.auth.audit_throttle import AuditThrottle
from holdfast.server.auth.auth_throttle import AuthThrottle
from holdfast.server.auth.rate_limits import Rate, RateLimiter, address_of_client
from holdfast.server.auth.recognition import SAFE_METHODS, Headers, Recognition
from holdfast.server.connection_limits import ConnectionLimits
from holdfast.server.exception_handlers import Problem, answer_problem_or_page, too_many_requests
from holdfast.server.proxies import Proxies
from holdfast.server.server_state import ServerState
from holdfast.service.admin import audit
from holdfast.service.admin.browser_links import ENTER_PATH
from holdfast.settings import MEBIBYTE

OPEN_PATHS = frozenset({"/healthz", ENTER_PATH})
ACCESS = "holdfast.access"
SESSION = "holdfast.session"
# The subject of a change, for the audit, where the path does not say it. With None only a
# refusal has an entry.
ABOUT = "holdfast.about"
# Looks up whether the token is still good, for calls that go on for long.
LOOK_AGAIN = "holdfast.look_again"
# The digest of the token or the cookie of the request.
SHOWN_DIGEST = "holdfast.shown"
# Looks up a secret, within the limit on wrong secrets from the address of the caller.
LOOK_UP_SHOWN = "holdfast.try"
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
# The tools write their own audit entries.
MCP_PATH = "/mcp"
FIRST_ERROR_STATUS = 400
# Characters of a request that are kept in the audit.
MAX_AUDIT_TEXT = 200
CSP = b"content-security-policy"
SECURITY_HEADERS = (
    (CSP, b"default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
# Far above the rate of workers: it keeps one caller from using up the server.
RATE_OF_TOKEN = Rate(per_second=5_000, burst=10_000)
# The limit on wrong tokens.
FAILURE_RATE_OF_ADDRESS = Rate(per_second=0.5, burst=30)
# Bytes that are read of a body without a token.
MAX_UNAUTHENTICATED_BODY = 10_000
_ENCODED_SLASH = re.compile(rb"%2f", re.IGNORECASE)
_NO_SLASH = (
    "a name or key with a slash in it does not fit a path, where it would name something else; "
    "GET /runs?key=… and GET /tasks?key=… tell the id to ask with"
)
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
_SHOWN_TOKEN = re.compile(r"[Bb]earer +[^ ]")
_OTHER_NAME = (
    "this server does not answer to that name; `holdfast serve --allow-host {}` has it do so"
)
_OTHER_ORIGIN = (
    "pages of that origin may not ask this server; `holdfast serve --allow-origin {}` lets them"
)
_UNAUTHENTICATED_TOOLS = (
    "a good token is needed: set Authorization to Bearer … among the headers of this server in "
    "your client; `holdfast token create NAME --role operator` makes one"
)
_UNAUTHENTICATED = (
    "a good token is needed: Authorization: Bearer …; `holdfast token` tells yours, and "
    "`holdfast open` lets a browser in"
)
_NOT_GOOD = (
    "this token is unknown, revoked or expired; at the server, `holdfast token create NAME --role "
    "worker` makes one for a worker, and `holdfast token` tells its own"
)


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """The hosts, origins and proxies that are accepted, and the limits of size and rate."""

    hosts: frozenset[str] = LOCAL_HOSTS
    origins: frozenset[str] = frozenset()
    max_body: int = 16 * MEBIBYTE
    rate: Rate | None = RATE_OF_TOKEN
    failures: Rate | None = FAILURE_RATE_OF_ADDRESS
    proxies: Proxies = field(default_factory=Proxies)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)


class Gate:
    def __init__(self, app: ASGIApp, server_state: ServerState, rules: GateRules) -> None:
        self._app = app
        self._server_state = server_state
        self._rules = rules
        self._under_way: Counter[str] = Counter()
        self._rate_of_token = RateLimiter(rules.rate, server_state.service.clock.monotonic)
        self._auth_throttle = AuthThrottle(server_state.tokens, rules.failures)
        self._recognition = Recognition(server_state.tokens, self._auth_throttle)

    @property
    def under_way(self) -> int:
        """Bytes of bodies that are held for calls under way."""
        return self._under_way.total()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            self._rules.proxies.set_client_address(scope)
            await self._admit(
                scope, receive, _SealedSend(scope, send, self._server_state.audit_throttle)
            )

    async def _admit(self, scope: Scope, receive: Receive, send: _SealedSend) -> None:
        headers = _index_headers(scope["headers"])
        scope[LOOK_UP_SHOWN] = partial(
            self._auth_throttle.look, address_of_client(scope.get("client"))
        )
        limit = MAX_UNAUTHENTICATED_BODY if scope["path"] in OPEN_PATHS else self._rules.max_body
        try:
            self._check_headers(headers, limit)
            if scope["path"] not in OPEN_PATHS:
                await self._recognise(scope, headers)
            _refuse_encoded_slash(scope)
        except (HoldfastError, Problem) as error:
            await answer_problem_or_page(scope, self._server_state, error)(scope, receive, send)
            return
        body = _MeasuredBody(scope, receive, limit, self._count_body)
        try:
            await self._app(scope, body, send)
        finally:
            self._count_body(scope, -body.got)

    def _count_body(self, scope: Scope, size: int) -> None:
        """Count the bytes that a token has under way; raises `Problem` beyond its limit."""
        access: AccessToken | None = scope.get(ACCESS)
        if access is None or not size:
            return
        most = self._rules.connections.bodies
        if size > 0 and self._under_way[access.name] + size > most:
            said = f"this token has bodies of {most} bytes under way, and may have no more at once"
            raise too_many_requests(said, 1)
        self._under_way[access.name] += size
        if not self._under_way[access.name]:
            del self._under_way[access.name]

    def _check_headers(self, headers: Headers, limit: int) -> None:
        host = headers.get(b"host", "")
        named = _HOST.fullmatch(host)
        if named is None or named["name"].lower() not in self._rules.hosts:
            name = "NAME" if named is None else named["name"].lower()
            raise Problem(403, "foreign_host", _OTHER_NAME.format(name))
        origin = headers.get(b"origin")
        own = {f"http://{host}", f"https://{host}"}
        if origin is not None and origin not in own | self._rules.origins:
            shown = ascii(origin)[1:-1][:MAX_AUDIT_TEXT]
            raise Problem(403, "foreign_origin", _OTHER_ORIGIN.format(shown))
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length[:20]) > limit:
            raise Problem(413, "too_large", too_large(limit))

    async def _recognise(self, scope: Scope, headers: Headers) -> None:
        known = await self._recognition.recognise(scope, headers)
        if known is None:
            told = _describe_missing_token(scope["path"], headers)
            raise Problem(401, "unauthorized", told, {"WWW-Authenticate": "Bearer"})
        scope[ACCESS], scope[SESSION] = known.access, known.session
        scope[LOOK_AGAIN], scope[SHOWN_DIGEST] = known.look_again, known.digest
        if not known.proves_origin(scope["method"], headers):
            said = "a page has to send what GET /api/v1/session tells as X-Holdfast-CSRF"
            raise Problem(403, "csrf", said)
        wait = self._rate_of_token.take(known.access.name)
        if wait is not None:
            raise too_many_requests("this token asks too often", wait)


def _refuse_encoded_slash(scope: Scope) -> None:
    """Refuse `/tasks/key:a%2Fcancel`: decoded, it would cancel the task with the key `a`."""
    if _ENCODED_SLASH.search(scope.get("raw_path") or b""):
        raise Problem(404, "not_found", _NO_SLASH)


def _describe_missing_token(path: str, headers: Headers) -> str:
    if _SHOWN_TOKEN.match(headers.get(b"authorization", "")):
        return _NOT_GOOD
    return _UNAUTHENTICATED_TOOLS if path == MCP_PATH else _UNAUTHENTICATED


def too_large(limit: int) -> str:
    return f"a body may have {limit} bytes at most"


def _index_headers(headers: list[tuple[bytes, bytes]]) -> Headers:
    """Headers by name; a header that is there twice gets a value that no check accepts."""
    found: Headers = {}
    for name, value in headers:
        found[name] = "\n" if name in found else value.decode("latin-1")
    return found


class _MeasuredBody:
    """A body, refused when it grows too long or its token has too much under way."""

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
        self._count_body = take_room
        self.got = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        size = len(message.get("body", b""))
        if self.got + size > self._limit:
            raise Problem(413, "too_large", too_large(self._limit))
        self._count_body(self._scope, size)
        self.got += size
        return message


class _SealedSend:
    """Sends an answer with security headers, and keeps each change in the audit."""

    def __init__(self, scope: Scope, send: Send, audit_throttle: AuditThrottle) -> None:
        self._scope = scope
        self._send = send
        self._audit_throttle = audit_throttle

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            said = {name.lower() for name, _ in own}
            message["headers"] = own + [each for each in SECURITY_HEADERS if each[0] not in said]
            self._tell(message["status"])
        await self._send(message)

    def _tell(self, status: int) -> None:
        scope: dict[str, Any] = dict(self._scope)
        told_elsewhere = scope["path"] == MCP_PATH or scope.get(ABOUT, "") is None
        if scope["method"] in SAFE_METHODS or (told_elsewhere and status < FIRST_ERROR_STATUS):
            return
        access: AccessToken | None = scope.get(ACCESS)
        did = f"{scope['method']} {ascii(scope['path'])[1:-1]}"[:MAX_AUDIT_TEXT]
        about = str(scope.get(ABOUT) or "")
        if access is None:
            self._audit_throttle.tell(address_of_client(scope.get("client")), did, str(status))
        else:
            audit.write_entry(access.name, did, str(status), role=access.role, about=about)
