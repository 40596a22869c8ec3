"""HTML pages: the few pages for people, where a link leads and where a browser is told its name."""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape

from starlette.responses import HTMLResponse

_CODE = re.compile("`([^`]+)`")
_PLAIN = re.compile(r"[0-9A-Za-z_/.-]*")
_ID = re.compile(r"[rt]_[0-9a-z]{1,40}")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem;"
    "color-scheme:light dark}button{font:inherit;padding:.4rem 1rem}"
)
# The first parts of the paths that the dashboard shows pages for.
_DASHBOARD = frozenset({"plan", "queue", "runs", "tasks", "workflows"})
# `/runs/ID/events`: no page is deeper.
_MAX_PARTS = 2


def _hash_for_csp(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_CSP = "; ".join(
    [
        "default-src 'none'",
        f"style-src {_hash_for_csp(_STYLE)}",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)


class HtmlPage(HTMLResponse):
    def __init__(self, main: str, status: int = 200, *, head: str = "") -> None:
        text = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title>{head}'
            f"<style>{_STYLE}</style><main><h1>Holdfast</h1>{main}</main>"
        )
        super().__init__(text, status, headers={"Content-Security-Policy": _CSP})


def render_entry_page(code: str, goal: str) -> HtmlPage:
    """A page with a button, so that a program that only opens links uses up none."""
    page = HtmlPage(
        '<form method="post" action="/enter">'
        f'<input type="hidden" name="code" value="{escape(code)}">'
        f'<input type="hidden" name="to" value="{escape(goal)}">'
        "<p>This link lets one browser in, once.</p><button>Open Holdfast</button></form>"
    )
    # With `no-referrer`, a browser sends a form from the origin `null`, which is refused.
    page.headers["Referrer-Policy"] = "same-origin"
    return page


def render_entered_page(goal: str) -> HtmlPage:
    """The page that leads on to a page of the dashboard, or else to its first."""
    path = goal if is_dashboard_page(goal) and _PLAIN.fullmatch(goal) else "/"
    # Not a redirect: after a redirect the browser counts the page with the link as the origin, and
    # sends no cookie that is for our own pages alone.
    return HtmlPage(
        f'<p><a href="{path}">Go on</a></p>',
        head=f'<meta http-equiv="refresh" content="0;url={path}">',
    )


def is_dashboard_page(path: str) -> bool:
    """Whether the dashboard shows a page at a path: a list, or one of its things."""
    first, *more = path.removeprefix("/").split("/")
    return path == "/" or (first in _DASHBOARD and len(more) <= _MAX_PARTS)


def render_refusal_page(status: int, detail: str, path: str) -> HtmlPage:
    """The reason of a refusal, and how to get a link."""
    said = _CODE.sub(r"<code>\1</code>", escape(detail))
    first, _, thing = path.removeprefix("/").partition("/")
    named = f" {escape(thing)}" if first in {"runs", "tasks"} and _ID.fullmatch(thing) else ""
    how = (
        f"<code>holdfast open{named}</code>, typed where the server runs, lets a browser in by a "
        "new link."
    )
    # A browser that comes from another site shows its cookie only when it asks once more.
    again = f'<p><a href="{escape(path)}">Try again</a></p>' if is_dashboard_page(path) else ""
    return HtmlPage(f"<p>You are not let in: {said}.</p><p>{how}</p>{again}", status)


def render_unbuilt_page(name: str, role: str) -> HtmlPage:
    """The page of a clone whose dashboard was not built: how to build it."""
    return HtmlPage(
        f"<p>You are in as <b>{escape(name)}</b> ({escape(role)}).</p>"
        "<p>The dashboard of this clone was not built. <code>make up</code> builds it first, and "
        "so does <code>.venv/bin/python -m tools.dashboard</code>; then open this page again. "
        "An installed package has it built.</p>"
        '<p>The API is here all the same: <a href="/api/v1/runs">runs</a>, '
        '<a href="/api/v1/tasks">tasks</a>, <a href="/api/v1/workers">workers</a>, '
        '<a href="/openapi.json">what can be asked</a>.</p>'
    )
