"""HTML pages: the few pages for people, where a link leads and where a browser is told its name."""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape

from starlette.responses import HTMLResponse

_CODE = re.compile("`([^`]+)`")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem;"
    "color-scheme:light dark}button{font:inherit;padding:.4rem 1rem}"
)
_SCRIPT = (
    'const b=document.querySelector("button");b.onclick=async()=>{b.disabled=true;'
    'await fetch("/api/v1/session",{method:"DELETE",headers:{"X-Holdfast-CSRF":b.value}});'
    'document.querySelector("main").textContent="You are out. `holdfast open` lets you in again."}'
)


def _hash_for_csp(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_CSP = "; ".join(
    [
        "default-src 'none'",
        f"style-src {_hash_for_csp(_STYLE)}",
        f"script-src {_hash_for_csp(_SCRIPT)}",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)


class HtmlPage(HTMLResponse):
    def __init__(self, main: str, status: int = 200, *, head: str = "", script: str = "") -> None:
        text = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title>{head}'
            f"<style>{_STYLE}</style><main><h1>Holdfast</h1>{main}</main>"
            + (f"<script>{script}</script>" if script else "")
        )
        super().__init__(text, status, headers={"Content-Security-Policy": _CSP})


def render_entry_page(code: str) -> HtmlPage:
    """A page with a button, so that a program that only opens links uses up none."""
    return HtmlPage(
        '<form method="post" action="/enter">'
        f'<input type="hidden" name="code" value="{escape(code)}">'
        "<p>This link lets one browser in, once.</p><button>Open Holdfast</button></form>"
    )


def render_entered_page() -> HtmlPage:
    # Not a redirect: after a redirect the browser counts the page with the link as the origin, and
    # sends no cookie that is for our own pages alone.
    return HtmlPage(
        '<p><a href="/">Go on</a></p>', head='<meta http-equiv="refresh" content="0;url=/">'
    )


def render_refusal_page(status: int, detail: str) -> HtmlPage:
    """The reason of a refusal, and how to get a link."""
    said = _CODE.sub(r"<code>\1</code>", escape(detail))
    how = (
        "<code>holdfast open</code>, typed where the server runs, lets a browser in by a new link."
    )
    return HtmlPage(f"<p>You are not let in: {said}.</p><p>{how}</p>", status)


def render_front_page(name: str, role: str, proof: str | None) -> HtmlPage:
    """The name and role of the caller, and links to the API."""
    out = "" if proof is None else f'<p><button value="{escape(proof)}">Leave</button></p>'
    return HtmlPage(
        f"<p>You are in as <b>{escape(name)}</b> ({escape(role)}).</p>"
        '<p>What there is to look at is in the API: <a href="/api/v1/runs">runs</a>, '
        '<a href="/api/v1/tasks">tasks</a>, <a href="/api/v1/workers">workers</a>, '
        f'<a href="/openapi.json">what can be asked</a>.</p>{out}',
        script="" if proof is None else _SCRIPT,
    )
