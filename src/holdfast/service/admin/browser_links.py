"""The way into a browser: a link that is good once, and what the browser shows from then on."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.clock import MICROSECONDS
from holdfast.errors import NotFound
from holdfast.model.token import AccessToken
from holdfast.service.queries.views import View, format_time

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine
    from holdfast.engine.surroundings.browser_sessions import Browser

ENTER_PATH = "/enter"
_SECRET_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class NewBrowserSession:
    """What a browser is to show, and until when that is good, in microseconds."""

    secret: str = field(repr=False)
    ends_at: int


class BrowserLinks:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create_link(self, name: str) -> View:
        """A path that lets one browser in, once, with what the token of a name may do."""
        code = self._make_secret()
        ends_at = self._engine.browsers.link(name, code)
        if ends_at is None:
            raise NotFound(name, "token that is good")
        return {"path": f"{ENTER_PATH}?code={code}", "expires_at": format_time(ends_at)}

    def use_link(self, code: str) -> NewBrowserSession | None:
        """Use up a code; None when it was used before, or is no code, or too old."""
        secret = self._make_secret()
        ends_at = self._engine.browsers.enter(code, secret)
        return None if ends_at is None else NewBrowserSession(secret=secret, ends_at=ends_at)

    def find_access(self, secret: str) -> AccessToken | None:
        """What a browser may do that shows this."""
        found = self.find_session(secret)
        return None if found is None else found.access

    def find_session(self, secret: str) -> Browser | None:
        """The session of a browser that shows this; None if it is not good, or not any more."""
        return self._engine.browsers.find(secret)

    def seconds_left(self, entered: NewBrowserSession) -> int:
        """For how many seconds what a browser is to show stays good."""
        return (entered.ends_at - self._engine.clock.now()) // MICROSECONDS

    def end_session(self, secret: str) -> View:
        """Have what a browser shows be good for nothing from now on."""
        return {"ok": True, "repeated": not self._engine.browsers.leave(secret)}

    def _make_secret(self) -> str:
        raw = self._engine.randomness.token_bytes(_SECRET_BYTES)
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def csrf_proof(secret: str) -> str:
    """What a page of ours sends with each change: no other page can know it."""
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def is_csrf_proof(secret: str, given: str) -> bool:
    return hmac.compare_digest(csrf_proof(secret).encode(), given.encode(errors="replace"))
