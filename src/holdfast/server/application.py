"""Application: all routes behind the gate, and the OpenAPI document.

A request whose caller sends a trace becomes a span of that trace, if spans are exported.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.server import exception_handlers, route_table
from holdfast.server.dashboard import Dashboard
from holdfast.server.fast_router import FastRouter
from holdfast.server.gate import Gate, GateRules
from holdfast.server.routes import (
    admin,
    artifacts,
    browsers,
    bulk,
    changes,
    claims,
    events,
    health,
    mcp,
    runs,
    schedules,
    tasks,
    workflows,
)
from holdfast.server.schemas.responses import ProblemResponse
from holdfast.server.server_state import ServerState
from holdfast.service.admin.health import read_own_version
from holdfast.service.service import Service
from holdfast.tracing import Span, find_tracer, read_traceparent


class TracingMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        known = find_tracer()
        given = None if known is None or scope["type"] != "http" else _read_traceparent(scope)
        identity = None if given is None else read_traceparent(given)
        if known is None or identity is None:
            await self._app(scope, receive, send)
            return
        span = Span(name=f"{scope['method']} {scope['path']}", identity=identity)
        with known.within(span):
            await self._app(scope, receive, send)


def _read_traceparent(scope: Scope) -> str | None:
    found = [value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"]
    return found[0] if len(found) == 1 else None


TABLES = (
    workflows.table,
    bulk.table,
    runs.table,
    tasks.table,
    tasks.plan_table,
    artifacts.table,
    changes.table,
    claims.table,
    events.table,
    admin.table,
    schedules.table,
    admin.bus_table,
    mcp.table,
    browsers.table,
    health.table,
)


class Application:
    """The ASGI application: requests come in through `gate`, and `app` has the routes."""

    def __init__(self, service: Service, rules: GateRules | None = None) -> None:
        chosen = rules or GateRules()
        self.limits = chosen.connections
        self.is_proxy = chosen.proxies.is_proxy
        self.server_state = ServerState(
            service=service,
            max_body=chosen.max_body,
            max_streams=chosen.connections.streams,
        )
        self.app = FastAPI(
            title="Holdfast", version=read_own_version(), openapi_url=None, docs_url=None
        )
        self.app.state.server_state = self.server_state
        exception_handlers.install_error_handlers(self.app)
        route_table.install_routes(self.app, *TABLES)
        vars(self.app)["openapi"] = self._describe
        self._document: dict[str, Any] | None = None
        quick = FastRouter(self.app, self.server_state, (tasks.table, claims.table))
        self.gate = Gate(TracingMiddleware(Dashboard(quick)), self.server_state, chosen)

    def _describe(self) -> dict[str, Any]:
        if self._document is None:
            self._document = make_document(self.app)
        return self._document


def make_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the calls of an application."""
    made = get_openapi(
        title="Holdfast",
        version=app.version,
        description="Runs, tasks and the worker's protocol; every change has its actor.",
        routes=app.routes,
    )
    parts = made.setdefault("components", {})
    parts.setdefault("schemas", {})["ProblemResponse"] = ProblemResponse.model_json_schema()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"token": []}]
    return made
