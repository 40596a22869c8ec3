"""Routes: each says who may take it, and one that says nothing lets nobody in."""

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
from holdfast.server.gate import ACCESS, OPEN
from holdfast.server.problems import Answer, Problem, query_names
from holdfast.server.schemas.responses import PROBLEMS

F = TypeVar("F", bound=Callable[..., Any])
PREFIX = "/api/v1"

LOOKERS = frozenset({Role.VIEWER, Role.OPERATOR, Role.ADMIN})
STEERERS = frozenset({Role.OPERATOR, Role.ADMIN})
# Not operators: who judges work may not be who did it.
WORKERS = frozenset({Role.WORKER, Role.ADMIN})
ADMINS = frozenset({Role.ADMIN})
ANYONE = frozenset(Role)


@dataclass(frozen=True, kw_only=True)
class Entry:
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
class Table:
    """The routes of one noun, in the order they were written."""

    tag: str
    prefix: str = PREFIX
    entries: list[Entry] = field(default_factory=list)

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
        kind: type[Response] = Answer,
    ) -> Callable[[F], F]:
        def add(endpoint: F) -> F:
            self.entries.append(
                Entry(
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


class Guarded(APIRoute):
    """Looks at the role before anything of the body is read."""

    roles: frozenset[Role] = frozenset()

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = frozenset(query_names(self.dependant))

        async def guarded(request: Request) -> Response:
            access: AccessToken | None = request.scope.get(ACCESS)
            if self.path not in OPEN and (access is None or access.role not in self.roles):
                raise Problem(403, "forbidden", _tell_roles(self.roles))
            self._refuse_unknown(request, known)
            return await handle(Careful(request.scope, request.receive))

        return guarded

    def _refuse_unknown(self, request: Request, known: frozenset[str]) -> None:
        """Refuse what nobody reads: a filter that is mistyped would else answer everything."""
        unknown = [each for each in request.query_params if each not in known]
        if unknown and self.path not in OPEN:
            raise RequestValidationError(
                [{"type": "extra_forbidden", "loc": ("query", each)} for each in unknown]
            )
        said = Counter(name for name, _ in request.query_params.multi_items())
        if said and (most := said.most_common(1)[0])[1] > 1:
            raise InvalidInput(most[0], "is said more than once; ask once for each")


def _tell_roles(roles: frozenset[Role]) -> str:
    if not roles:
        return "this is for nobody; ask whoever serves it"
    least = next(role for role in (Role.VIEWER, Role.OPERATOR, Role.WORKER, *Role) if role in roles)
    return (
        f"this is for {', '.join(sorted(roles))}; the token is for others; "
        f"`holdfast token create NAME --role {least}` makes one that may"
    )


class Careful(Request):
    """A request whose JSON is JSON: no NaN, no numbers too big, nothing nested without end."""

    async def json(self) -> Any:  # noqa: ANN401 - JSON is any value
        body = await self.body()
        try:
            return json.loads(body, parse_constant=finite, parse_float=finite)
        except (ValueError, RecursionError) as error:
            raise Problem(400, "invalid_json", f"the body is no JSON: {error}") from error


def finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number that JSON can hold")
    return number


# Made once: to make one takes longer than to read what most calls send.
DECODER = json.JSONDecoder(parse_constant=finite, parse_float=finite)


def install(app: FastAPI, *tables: Table) -> None:
    app.router.route_class = Guarded
    for table in tables:
        for entry in table.entries:
            _add(app, table.tag, entry)


def _add(app: FastAPI, tag: str, entry: Entry) -> None:
    always = {} if entry.path in OPEN else PROBLEMS
    said: dict[int | str, dict[str, Any]] = {**always, **entry.also}
    app.router.add_api_route(
        entry.path,
        entry.endpoint,
        methods=[entry.method],
        response_model=None,
        response_class=entry.kind,
        status_code=entry.status,
        tags=[tag],
        responses={entry.status: _describe(entry), **said},
        openapi_extra={**(entry.extra or {}), **_needs(entry)},
        operation_id=_name(entry),
    )
    made = app.router.routes[-1]
    assert isinstance(made, Guarded)  # noqa: S101 - the class that was set above
    made.roles = entry.roles


def _needs(entry: Entry) -> dict[str, Any]:
    """Who may take it, for the document."""
    if entry.path in OPEN:
        return {"security": []}
    return {"x-roles": sorted(role.value for role in entry.roles)}


def _describe(entry: Entry) -> dict[str, Any]:
    told = {"description": "How it stands"}
    return told if entry.answers is None else {**told, "model": entry.answers}


def _name(entry: Entry) -> str:
    parts = entry.path.removeprefix(PREFIX).strip("/").replace(".", "_").replace("-", "_")
    words = parts.replace("{", "").replace("}", "").split("/")
    return "_".join([entry.method.lower(), *words])
