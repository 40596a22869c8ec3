"""The one gate in front of everything: no token, foreign host or foreign origin, no answer."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.model.access import Access
from holdfast.server.problems import Answer, Problem, answer_error, tell
from holdfast.settings import MEBIBYTE

OPEN = frozenset({"/healthz"})
ACCESS = "holdfast.access"
# Whether the token is still good, for what goes on long after it was looked at.
LOOK_AGAIN = "holdfast.look_again"
LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
_BEARER = re.compile(r"[Bb]earer +([\x21-\x7e]{1,500})")

audit = logging.getLogger("holdfast.audit")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Which hosts and origins are let in, and how much they may send."""

    hosts: frozenset[str] = LOCAL
    origins: frozenset[str] = frozenset()
    max_body: int = 16 * MEBIBYTE


class Finder(Protocol):
    """Who tells what a token may do."""

    def at_hand(self, secret: str) -> Access | None:
        """The same without waiting, where it is known."""

    async def look(self, secret: str) -> Access | None: ...

    def find(self, secret: str) -> Access | None: ...


class Gate:
    def __init__(self, app: ASGIApp, known: Finder, rules: Rules) -> None:
        self._app = app
        self._at_hand = known.at_hand
        self._look = known.look
        self._find = known.find
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._admit(scope, receive, _Sealed(scope, send))

    async def _admit(self, scope: Scope, receive: Receive, send: _Sealed) -> None:
        headers = _single(scope["headers"])
        refusal = self._refuse(headers)
        if refusal is None and scope["path"] not in OPEN:
            refusal = await self._recognise(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _Measured(receive, self._rules.max_body), send)

    def _refuse(self, headers: dict[bytes, str]) -> Answer | None:
        host = headers.get(b"host", "")
        named = _HOST.fullmatch(host)
        if named is None or named["name"].lower() not in self._rules.hosts:
            return tell(403, "foreign_host", "this server does not answer to that name")
        origin = headers.get(b"origin")
        own = {f"http://{host}", f"https://{host}"}
        if origin is not None and origin not in own | self._rules.origins:
            return tell(403, "foreign_origin", "pages of that origin may not ask this server")
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length[:20]) > self._rules.max_body:
            return tell(413, "too_large", too_large(self._rules.max_body))
        return None

    async def _recognise(self, scope: Scope, headers: dict[bytes, str]) -> Answer | None:
        given = _BEARER.fullmatch(headers.get(b"authorization", ""))
        known: Access | None = None
        try:
            if given is not None:
                known = self._at_hand(given[1])
            if given is not None and known is None:
                known = await self._look(given[1])
        except HoldfastError as error:
            return answer_error(error)
        if given is None or known is None:
            said = "a good token is needed: Authorization: Bearer …; `holdfast token` tells yours"
            return tell(401, "unauthorized", said, {"WWW-Authenticate": "Bearer"})
        scope[ACCESS] = known
        scope[LOOK_AGAIN] = partial(anyio.to_thread.run_sync, self._find, given[1])
        return None


def too_large(limit: int) -> str:
    return f"a body may have {limit} bytes at most"


def _single(headers: list[tuple[bytes, bytes]]) -> dict[bytes, str]:
    """Headers by name; one that is there twice counts as what nobody accepts."""
    found: dict[bytes, str] = {}
    for name, value in headers:
        found[name] = "\n" if name in found else value.decode("latin-1")
    return found


class _Measured:
    """A body that is cut off where it grows too long."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._got = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._got += len(message.get("body", b""))
        if self._got > self._limit:
            raise Problem(413, "too_large", too_large(self._limit))
        return message


class _Sealed:
    """An answer with the headers that keep browsers careful; of a change, a line in the audit."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
            self._tell(message["status"])
        await self._send(message)

    def _tell(self, status: int) -> None:
        scope: dict[str, Any] = dict(self._scope)
        if scope["method"] in LOOKING:
            return
        access: Access | None = scope.get(ACCESS)
        who = "nobody" if access is None else f"{access.name} ({access.role})"
        audit.info("%s %s %s %d", who, scope["method"], ascii(scope["path"])[1:-1], status)
