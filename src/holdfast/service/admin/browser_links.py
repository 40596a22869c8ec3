"""Browser links: paths that let one browser in, once, and the session that follows."""

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
    from holdfast.engine.surroundings.browser_sessions import BrowserSession

ENTER_PATH = "/enter"
_SECRET_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class NewBrowserSession:
    """The secret of a browser's session, and when that ends, in microseconds."""

    secret: str = field(repr=False)
    ends_at: int


class BrowserLinks:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create_link(self, name: str) -> View:
        """Create a path that lets one browser in, once, with the rights of a named token."""
        code = self._make_secret()
        ends_at = self._engine.browsers.link(name, code)
        if ends_at is None:
            raise NotFound(name, "token that is good")
        return {"path": f"{ENTER_PATH}?code={code}", "expires_at": format_time(ends_at)}

    def use_link(self, code: str) -> NewBrowserSession | None:
        """Use up the code of a link; None when the code is unknown, too old or was used before."""
        secret = self._make_secret()
        ends_at = self._engine.browsers.enter(code, secret)
        return None if ends_at is None else NewBrowserSession(secret=secret, ends_at=ends_at)

    def find_access(self, secret: str) -> AccessToken | None:
        """The token whose rights a browser has that shows this secret; None if it is not valid."""
        found = self.find_session(secret)
        return None if found is None else found.access

    def find_session(self, secret: str) -> BrowserSession | None:
        """The session of a browser that shows this secret; None if the secret is not valid."""
        return self._engine.browsers.find(secret)

    def seconds_left(self, entered: NewBrowserSession) -> int:
        """How many seconds the session of a browser lasts from now on."""
        return (entered.ends_at - self._engine.clock.now()) // MICROSECONDS

    def end_session(self, secret: str) -> View:
        """End the session of a browser: its secret is not valid from now on."""
        return {"ok": True, "repeated": not self._engine.browsers.leave(secret)}

    def _make_secret(self) -> str:
        raw = self._engine.randomness.token_bytes(_SECRET_BYTES)
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def csrf_proof(secret: str) -> str:
    """The proof that a page of the dashboard sends with each change; no other page can know it."""
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def is_csrf_proof(secret: str, given: str) -> bool:
    return hmac.compare_digest(csrf_proof(secret).encode(), given.encode(errors="replace"))
