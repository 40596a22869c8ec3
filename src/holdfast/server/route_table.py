"""Route tables: routes with the roles that may call them, and their installation.

A route whose roles are missing can be called by nobody.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import Response

from holdfast.errors import InvalidInput
from holdfast.model.token import AccessToken, Role
from holdfast.server.exception_handlers import (
    JsonAnswer,
    Problem,
    list_query_names,
    list_repeatable_names,
)
from holdfast.server.gate import ACCESS, OPEN_PATHS
from holdfast.server.schemas.responses import PROBLEMS

F = TypeVar("F", bound=Callable[..., Any])
PREFIX = "/api/v1"

VIEWER_ROLES = frozenset({Role.VIEWER, Role.OPERATOR, Role.ADMIN})
OPERATOR_ROLES = frozenset({Role.OPERATOR, Role.ADMIN})
# Not operators: whoever judges work may not do it as well.
WORKER_ROLES = frozenset({Role.WORKER, Role.ADMIN})
ADMIN_ROLES = frozenset({Role.ADMIN})
ALL_ROLES = frozenset(Role)


@dataclass(frozen=True, kw_only=True)
class RouteEntry:
    method: str
    path: str
    roles: frozenset[Role]
    endpoint: Callable[..., Any]
    answers: type[BaseModel] | None
    status: int
    also: dict[int | str, dict[str, Any]]
    extra: dict[str, Any] | None
    kind: type[Response]


@dataclass(kw_only=True)
class RouteTable:
    """The routes of one noun, in the order they were written."""

    tag: str
    prefix: str = PREFIX
    entries: list[RouteEntry] = field(default_factory=list)

    def route(  # noqa: PLR0913 - what a route is, who may take it, and what it answers
        self,
        method: str,
        path: str,
        roles: frozenset[Role],
        *,
        answers: type[BaseModel] | None = None,
        status: int = 200,
        also: dict[int | str, dict[str, Any]] | None = None,
        extra: dict[str, Any] | None = None,
        kind: type[Response] = JsonAnswer,
    ) -> Callable[[F], F]:
        def add(endpoint: F) -> F:
            self.entries.append(
                RouteEntry(
                    method=method,
                    path=self.prefix + path,
                    roles=roles,
                    endpoint=endpoint,
                    answers=answers,
                    status=status,
                    also=also or {},
                    extra=extra,
                    kind=kind,
                )
            )
            return endpoint

        return add


class GuardedRoute(APIRoute):
    """A route that checks the role of the caller before it reads the body."""

    roles: frozenset[Role] = frozenset()

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = frozenset(list_query_names(self.dependant))
        repeatable = list_repeatable_names(self.dependant)

        async def guarded(request: Request) -> Response:
            access: AccessToken | None = request.scope.get(ACCESS)
            if self.path not in OPEN_PATHS and (access is None or access.role not in self.roles):
                raise Problem(403, "forbidden", _describe_roles(self.roles))
            self._refuse_unknown_parameters(request, known, repeatable)
            return await handle(StrictJsonRequest(request.scope, request.receive))

        return guarded

    def _refuse_unknown_parameters(
        self, request: Request, known: frozenset[str], repeatable: frozenset[str]
    ) -> None:
        """Refuse unknown parameters: with a mistyped filter the answer would hold everything."""
        unknown = [each for each in request.query_params if each not in known]
        if unknown and self.path not in OPEN_PATHS:
            raise RequestValidationError(
                [{"type": "extra_forbidden", "loc": ("query", each)} for each in unknown]
            )
        named = [name for name, _ in request.query_params.multi_items()]
        said = Counter(name for name in named if name not in repeatable)
        if said and (most := said.most_common(1)[0])[1] > 1:
            raise InvalidInput(most[0], "is said more than once; ask once for each")


def _describe_roles(roles: frozenset[Role]) -> str:
    if not roles:
        return "this is for nobody; ask whoever serves it"
    least = next(role for role in (Role.VIEWER, Role.OPERATOR, Role.WORKER, *Role) if role in roles)
    return (
        f"this is for {', '.join(sorted(roles))}; the token is for others; "
        f"`holdfast token create NAME --role {least}` makes one that may"
    )


class StrictJsonRequest(Request):
    """A request whose body is strict JSON: no NaN, no infinite numbers, no endless nesting."""

    async def json(self) -> Any:  # noqa: ANN401 - JSON is any value
        body = await self.body()
        try:
            return json.loads(body, parse_constant=parse_finite, parse_float=parse_finite)
        except (ValueError, RecursionError) as error:
            raise Problem(400, "invalid_json", f"the body is no JSON: {error}") from error


def parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number that JSON can hold")
    return number


# Made once: making a decoder takes longer than reading most bodies.
STRICT_DECODER = json.JSONDecoder(parse_constant=parse_finite, parse_float=parse_finite)


def install_routes(app: FastAPI, *tables: RouteTable) -> None:
    app.router.route_class = GuardedRoute
    for table in tables:
        for entry in table.entries:
            _add_route(app, table.tag, entry)


def _add_route(app: FastAPI, tag: str, entry: RouteEntry) -> None:
    always = {} if entry.path in OPEN_PATHS else PROBLEMS
    said: dict[int | str, dict[str, Any]] = {**always, **entry.also}
    app.router.add_api_route(
        entry.path,
        entry.endpoint,
        methods=[entry.method],
        response_model=None,
        response_class=entry.kind,
        status_code=entry.status,
        tags=[tag],
        responses={entry.status: _describe_answer(entry), **said},
        openapi_extra={**(entry.extra or {}), **_describe_access(entry)},
        operation_id=_make_operation_id(entry),
    )
    made = app.router.routes[-1]
    assert isinstance(made, GuardedRoute)  # noqa: S101 - the class that was set above
    made.roles = entry.roles


def _describe_access(entry: RouteEntry) -> dict[str, Any]:
    """The roles that may call a route, for the document."""
    if entry.path in OPEN_PATHS:
        return {"security": []}
    return {"x-roles": sorted(role.value for role in entry.roles)}


def _describe_answer(entry: RouteEntry) -> dict[str, Any]:
    told = {"description": "How it stands"}
    return told if entry.answers is None else {**told, "model": entry.answers}


def _make_operation_id(entry: RouteEntry) -> str:
    parts = entry.path.removeprefix(PREFIX).strip("/").replace(".", "_").replace("-", "_")
    words = parts.replace("{", "").replace("}", "").split("/")
    return "_".join([entry.method.lower(), *words])
