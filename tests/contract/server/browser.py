"""A browser, as far as the server can tell: it keeps cookies and follows links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.contract.server.local_server import PLAIN, Served


@contextmanager
def follow(server: Served, role: str = "operator") -> Iterator[httpx.Client]:
    """A browser that has come in by a link."""
    link = server(role).post("/links")
    assert link.status_code == 201, link.text
    with httpx.Client(base_url=server.url, timeout=30, verify=PLAIN) as browser:
        page = browser.get(link.json()["path"])
        assert page.status_code == 200
        (code,) = re.findall('name="code" value="([^"]+)"', page.text)
        assert browser.post("/enter", data={"code": code}).status_code == 200
        yield browser
