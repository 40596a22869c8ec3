"""Browser routes: a link that is good once, the session of a browser, and its end."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import Query, Request
from starlette.responses import HTMLResponse, Response

from holdfast.errors import InvalidInput
from holdfast.server.auth.recognition import CallerSession, write_cookie
from holdfast.server.exception_handlers import JsonAnswer, Problem
from holdfast.server.gate import ACCESS, LOOK_UP_SHOWN, SESSION
from holdfast.server.html_pages import (
    HtmlPage,
    render_entered_page,
    render_entry_page,
)
from holdfast.server.request_context import Context, in_thread
from holdfast.server.route_table import ALL_ROLES, PREFIX, VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.server.schemas.responses import PROBLEMS
from holdfast.server.server_state import ServerState
from holdfast.service.admin.browser_links import ENTER_PATH, NewBrowserSession, csrf_proof
from holdfast.service.queries.views import format_time, without_nulls

table = RouteTable(tag="browsers", prefix="")
_ENTRY_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "to": {"type": "string"}},
                },
                "example": {"code": "8J1c…", "to": "/runs"},
            }
        },
    }
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    each: PROBLEMS[each] for each in (401, 403, 413, 422, 429, 503)
}


@table.route("GET", ENTER_PATH, ALL_ROLES, kind=HTMLResponse, also=_PROBLEMS)
async def show_link(
    code: Annotated[str, Query(max_length=200)],
    to: Annotated[str, Query(max_length=200, description="The page that it opens")] = "/",
) -> HtmlPage:
    """Where a link leads: a page that asks whether to come in. It needs no token."""
    return render_entry_page(code, to)


@table.route("POST", ENTER_PATH, ALL_ROLES, kind=HTMLResponse, also=_PROBLEMS, extra=_ENTRY_FORM)
async def enter(request: Request) -> Response:
    """Use up the code of a link, and get the cookie of a browser. It needs no token."""
    form = parse_qs((await request.body()).decode(errors="replace"))
    code, goal = (form.get(name, [""])[0] for name in ("code", "to"))
    server_state: ServerState = request.app.state.server_state
    links = server_state.service.links
    entered: NewBrowserSession | None = await request.scope[LOOK_UP_SHOWN](
        code, partial(in_thread, links.use_link, code)
    )
    known = None if entered is None else await in_thread(links.find_access, entered.secret)
    if entered is None or known is None:
        said = "this link was used, or is too old; `holdfast open` makes another"
        raise Problem(401, "unauthorized", said)
    request.scope[ACCESS] = known
    answer = render_entered_page(goal)
    seconds = links.seconds_left(entered)
    host = request.headers["host"]
    answer.headers["Set-Cookie"] = write_cookie(request.scope, host, entered, seconds)
    return answer


@table.route("POST", f"{PREFIX}/links", VIEWER_ROLES, answers=responses.LinkResponse, status=201)
def make_link(context: Context) -> JsonAnswer:
    """Make a link that lets one browser in, once, with what this token may do."""
    return JsonAnswer(context.service.links.create_link(context.access.name), 201)


@table.route("GET", f"{PREFIX}/session", ALL_ROLES, answers=responses.SessionResponse)
async def show_session(request: Request, context: Context) -> JsonAnswer:
    """Who asks; of a browser also the `csrf` that it has to send with each change."""
    session: CallerSession | None = request.scope.get(SESSION)
    told = without_nulls(
        name=context.access.name, role=context.access.role.value, agents=context.access.agents
    )
    if session is None:
        return JsonAnswer(told)
    return JsonAnswer(
        {**told, "csrf": csrf_proof(session.secret), "expires_at": format_time(session.ends_at)}
    )


@table.route("DELETE", f"{PREFIX}/session", ALL_ROLES, answers=responses.ChangeResponse)
async def leave(request: Request, context: Context) -> JsonAnswer:
    """Leave, as a browser does: its cookie is good for nothing from now on."""
    session: CallerSession | None = request.scope.get(SESSION)
    if session is None:
        raise InvalidInput("session", "is for browsers; a token is ended by DELETE /tokens/{name}")
    answer = JsonAnswer(await in_thread(context.service.links.end_session, session.secret))
    answer.headers["Set-Cookie"] = write_cookie(request.scope, request.headers["host"], None)
    return answer
