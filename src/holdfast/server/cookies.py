"""The cookie of a browser that was let in; every server of a machine has one of its own."""

from __future__ import annotations

import re

from starlette.types import Scope

from holdfast.service.admin.browser_links import Entered

_PORT = re.compile(r":(\d{1,5})$")
_VALUE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def cookie_name(scope: Scope, host: str) -> str:
    """Browsers tell cookies apart by host and not by port; over TLS nobody else can set it."""
    found = _PORT.search(host)
    own = "holdfast" if found is None else f"holdfast_{found[1]}"
    return f"__Host-{own}" if scope["scheme"] == "https" else own


def read_cookie(scope: Scope, headers: dict[bytes, str]) -> str | None:
    """What a browser shows; one that is there twice is none."""
    name = cookie_name(scope, headers.get(b"host", ""))
    parts = [each.strip().partition("=") for each in headers.get(b"cookie", "").split(";")]
    found = [value for key, _, value in parts if key == name]
    return found[0] if len(found) == 1 and _VALUE.fullmatch(found[0]) else None


def write_cookie(scope: Scope, host: str, entered: Entered | None, seconds: int = 0) -> str:
    """A header that has the browser keep it, or forget it."""
    secure = "; Secure" if scope["scheme"] == "https" else ""
    value = "" if entered is None else entered.secret
    rules = f"Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
    return f"{cookie_name(scope, host)}={value}; {rules}"
