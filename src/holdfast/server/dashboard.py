"""Dashboard: the built page and its files, sent from the package to callers that are known.

A path of a page is answered with the page itself, which shows what the path names.
"""

from __future__ import annotations

import gzip
import mimetypes
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.server.auth.recognition import SAFE_METHODS
from holdfast.server.gate import ACCESS
from holdfast.server.html_pages import is_dashboard_page, render_unbuilt_page

FILES = Path(__file__).parent / "dashboard_files"
PAGE = "index.html"
# The build puts the digest of a file into its name, so it never changes.
ASSETS = "/assets/"
FOR_EVER = "private, max-age=31536000, immutable"
NONCE_PLACE = b"%%NONCE%%"
# Below this, a compressed file is hardly shorter.
MIN_COMPRESSED = 1_000
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{}'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DashboardFile:
    content: bytes
    compressed: bytes | None
    media: str


def read_files(folder: Path) -> Mapping[str, DashboardFile]:
    """The built files by their path; none, if the dashboard was not built."""
    if not (folder / PAGE).is_file():
        return {}
    return {
        f"/{path.relative_to(folder).as_posix()}": _read_file(path)
        for path in folder.rglob("*")
        if path.suffix in {".css", ".html", ".js", ".svg"}
    }


def _read_file(path: Path) -> DashboardFile:
    content = path.read_bytes()
    media, _ = mimetypes.guess_type(path.name)
    short = len(content) < MIN_COMPRESSED or path.name == PAGE
    return DashboardFile(
        content=content,
        compressed=None if short else gzip.compress(content, mtime=0),
        media=media or "application/octet-stream",
    )


class Dashboard:
    """Answers the paths of the dashboard, and leaves all others to the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._files: Mapping[str, DashboardFile] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        if not self._files:
            self._files = await run_sync(partial(read_files, FILES))
        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        path: str = scope["path"]
        if is_dashboard_page(path):
            page = self._files.get(f"/{PAGE}")
            access = scope[ACCESS]
            return render_unbuilt_page(access.name, access.role) if page is None else _send(page)
        found = self._files.get(path)
        return None if found is None or path == f"/{PAGE}" else _send_file(scope, path, found)


def _send(page: DashboardFile) -> Response:
    nonce = secrets.token_urlsafe(16)
    text = page.content.replace(NONCE_PLACE, nonce.encode())
    return Response(
        text,
        media_type="text/html",
        headers={"Content-Security-Policy": _CSP.format(nonce)},
    )


def _send_file(scope: Scope, path: str, found: DashboardFile) -> Response:
    headers = {"Vary": "Accept-Encoding"}
    if path.startswith(ASSETS):
        headers["Cache-Control"] = FOR_EVER
    accepts = Request(scope).headers.get("accept-encoding", "")
    if found.compressed is None or "gzip" not in accepts:
        return Response(found.content, media_type=found.media, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(found.compressed, media_type=found.media, headers=headers)
