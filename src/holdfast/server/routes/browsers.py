"""Browsers: a link that is good once, who one is, and the way out."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import Query, Request
from starlette.responses import HTMLResponse, Response

from holdfast.errors import InvalidInput
from holdfast.server.auth.recognition import Session, write_cookie
from holdfast.server.gate import ACCESS, SESSION, TRY
from holdfast.server.html_pages import Page, ask_to_enter, front, let_in
from holdfast.server.problems import Answer, Problem
from holdfast.server.request_context import AsksAs, in_thread
from holdfast.server.route_table import ANYONE, LOOKERS, PREFIX, Table
from holdfast.server.schemas import responses
from holdfast.server.schemas.responses import PROBLEMS
from holdfast.server.server_state import Serving
from holdfast.service.admin.browser_links import ENTER_PATH, NewBrowserSession, csrf_proof
from holdfast.service.queries.views import format_time, without_nulls

table = Table(tag="browsers", prefix="")
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {"type": "object", "properties": {"code": {"type": "string"}}},
                "example": {"code": "8J1c…"},
            }
        },
    }
}
_REFUSED: dict[int | str, dict[str, Any]] = {
    each: PROBLEMS[each] for each in (401, 403, 413, 422, 429, 503)
}


@table.route("GET", ENTER_PATH, ANYONE, kind=HTMLResponse, also=_REFUSED)
async def show_link(code: Annotated[str, Query(max_length=200)]) -> Page:
    """Where a link leads: a page that asks whether to come in. It needs no token."""
    return ask_to_enter(code)


@table.route("POST", ENTER_PATH, ANYONE, kind=HTMLResponse, also=_REFUSED, extra=_FORM)
async def enter(request: Request) -> Response:
    """Use up the code of a link, and get the cookie of a browser. It needs no token."""
    (code, *_) = parse_qs((await request.body()).decode(errors="replace")).get("code", [""])
    serving: Serving = request.app.state.serving
    links = serving.service.links
    entered: NewBrowserSession | None = await request.scope[TRY](
        code, partial(in_thread, links.use_link, code)
    )
    known = None if entered is None else await in_thread(links.find_access, entered.secret)
    if entered is None or known is None:
        said = "this link was used, or is too old; `holdfast open` makes another"
        raise Problem(401, "unauthorized", said)
    request.scope[ACCESS] = known
    answer = let_in()
    seconds = links.seconds_left(entered)
    host = request.headers["host"]
    answer.headers["Set-Cookie"] = write_cookie(request.scope, host, entered, seconds)
    return answer


@table.route("GET", "/", ANYONE, kind=HTMLResponse)
async def show_front(request: Request, asks: AsksAs) -> Page:
    """A page that says who one is."""
    session: Session | None = request.scope.get(SESSION)
    proof = None if session is None else csrf_proof(session.secret)
    return front(asks.access.name, asks.access.role, proof)


@table.route("POST", f"{PREFIX}/links", LOOKERS, answers=responses.Link, status=201)
def make_link(asks: AsksAs) -> Answer:
    """Make a link that lets one browser in, once, with what this token may do."""
    return Answer(asks.service.links.create_link(asks.access.name), 201)


@table.route("GET", f"{PREFIX}/session", ANYONE, answers=responses.Session)
async def show_session(request: Request, asks: AsksAs) -> Answer:
    """Who asks; of a browser also the `csrf` that it has to send with each change."""
    session: Session | None = request.scope.get(SESSION)
    told = without_nulls(
        name=asks.access.name, role=asks.access.role.value, agents=asks.access.agents
    )
    if session is None:
        return Answer(told)
    return Answer(
        {**told, "csrf": csrf_proof(session.secret), "expires_at": format_time(session.ends_at)}
    )


@table.route("DELETE", f"{PREFIX}/session", ANYONE, answers=responses.Changed)
async def leave(request: Request, asks: AsksAs) -> Answer:
    """Leave, as a browser does: its cookie is good for nothing from now on."""
    session: Session | None = request.scope.get(SESSION)
    if session is None:
        raise InvalidInput("session", "is for browsers; a token is ended by DELETE /tokens/{name}")
    answer = Answer(await in_thread(asks.service.links.end_session, session.secret))
    answer.headers["Set-Cookie"] = write_cookie(request.scope, request.headers["host"], None)
    return answer
