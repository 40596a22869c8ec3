"""Exception handlers: errors answered as RFC 9457 problems, each with a stable code."""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol, get_args, get_origin

from fastapi import FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import Scope

from holdfast.errors import HoldfastError, StoreError
from holdfast.server.html_pages import is_dashboard_page, render_refusal_page
from holdfast.service.admin.browser_links import ENTER_PATH
from holdfast.service.commands.http_problems import describe_error, describe_mistakes
from holdfast.service.commands.request_errors import Refused, translate_errors
from holdfast.service.commands.token_scope import Forbidden
from holdfast.worker.problem import HttpReply, problem

MEDIA = "application/problem+json"
JSON = "application/json"
# The codes of refusals by the framework, by status.
FRAMEWORK_CODES = {404: "not_found", 405: "method_not_allowed", 400: "invalid_json"}

log = logging.getLogger("holdfast.server")


class Problem(HTTPException):
    """A refusal by the server itself: a status, a code, and what to do about it."""

    def __init__(
        self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.code = code


class JsonAnswer(JSONResponse):
    """A JSON answer, in ASCII if it holds text that UTF-8 cannot encode.

    NaN and infinity become null.
    """

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - JSON is any value
        try:
            return to_json(content, inf_nan_mode="null")
        except PydanticSerializationError:
            plain = json.loads(json.dumps(content), parse_constant=lambda _: None)
            return json.dumps(plain, separators=(",", ":")).encode()


def make_problem_answer(
    status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JsonAnswer:
    reply = problem(status, code, detail, **more)
    return JsonAnswer(reply.body, status, headers=dict(headers or {}), media_type=MEDIA)


def too_many_requests(said: str, wait: float) -> Problem:
    seconds = math.ceil(wait)
    detail = f"{said}; ask again in {seconds} s"
    return Problem(429, "too_many_requests", detail, {"Retry-After": str(seconds)})


def answer_error(error: HoldfastError) -> JsonAnswer:
    """The answer to an error of Holdfast."""
    if isinstance(error, StoreError):
        log.warning("the store does not do what it is asked: %s", error)
    return _answer_reply(describe_error(error))


def _answer_reply(reply: HttpReply) -> JsonAnswer:
    away = reply.status == HTTPStatus.SERVICE_UNAVAILABLE
    headers = {"Retry-After": "1"} if away else {}
    return JsonAnswer(reply.body, reply.status, headers=headers, media_type=MEDIA)


def show_page_to_browser(scope: Scope, answer: JsonAnswer) -> Response:
    """An answer, or an HTML page with its text for a browser that opens a page."""
    accepts = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    path: str = scope["path"]
    is_page = path == ENTER_PATH or is_dashboard_page(path)
    if not is_page or b"text/html" not in accepts.lower():
        return answer
    page = render_refusal_page(answer.status_code, json.loads(bytes(answer.body))["detail"], path)
    kept = ("retry-after", "www-authenticate")
    page.headers.update({name: answer.headers[name] for name in kept if name in answer.headers})
    return page


class RefusalCounter(Protocol):
    """Counts refusals by their code."""

    refused: Counter[str]


def answer_problem_or_page(
    scope: Scope, kept: RefusalCounter, error: HoldfastError | HTTPException
) -> Response:
    """The answer to an error, as an HTML page for a browser that opens a page."""
    return show_page_to_browser(scope, answer_problem(kept, error))


def answer_problem(kept: RefusalCounter, error: HoldfastError | HTTPException) -> JsonAnswer:
    """The answer to an error; the refusal is counted."""
    if isinstance(error, HoldfastError):
        if isinstance(error, Refused):
            kept.refused[str(error.reason)] += 1
        elif isinstance(error, Forbidden):
            kept.refused["forbidden"] += 1
        return answer_error(error)
    code = (
        error.code
        if isinstance(error, Problem)
        else FRAMEWORK_CODES.get(error.status_code, "refused")
    )
    kept.refused[code] += 1
    return make_problem_answer(error.status_code, code, str(error.detail), error.headers)


def _add_alternatives(request: Request, error: HTTPException) -> HTTPException:
    """A refusal by the framework, with the methods or paths that there are."""
    if error.status_code == HTTPStatus.NOT_FOUND:
        return Problem(
            404, "not_found", "there is no such path; /openapi.json tells which there are"
        )
    if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return error
    found = [each for each in request.app.routes if each.matches(request.scope)[0] != Match.NONE]
    takes = ", ".join(sorted({method for each in found for method in each.methods}))
    detail = f"this path takes {takes}; /openapi.json tells what each does"
    return Problem(405, FRAMEWORK_CODES[405], detail, {"Allow": takes})


async def _on_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and not isinstance(error, Problem):
        error = _add_alternatives(request, error)
    if isinstance(error, HoldfastError | HTTPException):
        return answer_problem_or_page(request.scope, request.app.state.server_state, error)
    return make_problem_answer(
        500, "internal_error", "something went wrong here; the server's log tells more"
    )


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the same
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return make_problem_answer(400, "invalid_json", "the body is no JSON")
    if any(each["loc"] == ("body",) for each in found) and not _is_json(request):
        return refuse_content_type(request, JSON)
    mistakes = translate_errors(found, _list_fields(request, found[0]["loc"][0]))
    return show_page_to_browser(request.scope, _answer_reply(describe_mistakes(mistakes)))


def refuse_content_type(request: Request, *wanted: str) -> JsonAnswer:
    """The answer to a Content-Type that a route does not read."""
    given = ascii(request.headers.get("content-type", ""))[1:-1][:60]
    told = f"it is {given}" if given else "there is none"
    detail = f"send the header Content-Type: {' or '.join(wanted)}; {told}"
    return make_problem_answer(415, "unsupported_media_type", detail)


def _is_json(request: Request) -> bool:
    return "json" in request.headers.get("content-type", "").lower()


def list_query_names(dependant: Dependant) -> list[str]:
    """The parameters that a route reads from the query."""
    below = [name for each in dependant.dependencies for name in list_query_names(each)]
    return [*(each.alias for each in dependant.query_params), *below]


def list_repeatable_names(dependant: Dependant) -> frozenset[str]:
    """Those of them that are lists, and may be said more than once."""
    below = [name for each in dependant.dependencies for name in list_repeatable_names(each)]
    kinds = {each.alias: each.field_info.annotation for each in dependant.query_params}
    own = [
        name
        for name, kind in kinds.items()
        if any(get_origin(each) is list for each in (kind, *get_args(kind)))
    ]
    return frozenset([*own, *below])


def _list_fields(request: Request, place: str) -> list[str]:
    """The names that a route takes in its query or its body."""
    route = request.scope.get("route")
    if place == "query" and isinstance(route, APIRoute):
        return sorted(list_query_names(route.dependant))
    body = route.body_field if isinstance(route, APIRoute) else None
    if body is None:
        return []
    kinds = get_args(body.field_info.annotation) or (body.field_info.annotation,)
    found = [each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)]
    return sorted({name for each in found for name in each.model_fields})


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(HoldfastError, _on_error)
    app.add_exception_handler(HTTPException, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(Exception, _on_error)
