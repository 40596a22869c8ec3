"""The application: routes behind the gate, on one store."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from holdfast.engine.engine import Engine
from holdfast.server import problems, routing
from holdfast.server.answers import Problem
from holdfast.server.direct import Direct
from holdfast.server.examples import illustrate
from holdfast.server.gate import Gate, Rules
from holdfast.server.routes import (
    agents,
    browsers,
    bus,
    claims,
    events,
    health,
    plans,
    runs,
    standing,
    tasks,
    workflows,
)
from holdfast.server.serving import Serving
from holdfast.server.traced import Traced
from holdfast.service.admin.health import own_version
from holdfast.service.project.project import Place

TABLES = tuple(
    each.table
    for each in (
        workflows,
        runs,
        tasks,
        plans,
        claims,
        events,
        standing,
        bus,
        agents,
        browsers,
        health,
    )
)


class Application:
    """What a server serves, through its `gate`; `app` has the routes."""

    def __init__(self, engine: Engine, place: Place, rules: Rules | None = None) -> None:
        chosen = rules or Rules()
        self.limits = chosen.connections
        self.is_proxy = chosen.proxies.holds
        self.serving = Serving(
            engine=engine,
            place=place,
            max_body=chosen.max_body,
            max_streams=chosen.connections.streams,
        )
        self.app = FastAPI(title="Holdfast", version=own_version(), openapi_url=None, docs_url=None)
        self.app.state.serving = self.serving
        problems.install(self.app)
        routing.install(self.app, *TABLES)
        vars(self.app)["openapi"] = self._describe
        self._document: dict[str, Any] | None = None
        quick = Direct(self.app, self.serving, (tasks.table, claims.table))
        self.gate = Gate(Traced(quick), self.serving, chosen)

    def _describe(self) -> dict[str, Any]:
        if self._document is None:
            made = get_openapi(
                title="Holdfast",
                version=self.app.version,
                description="Runs, tasks and the worker's protocol; every change has its actor.",
                routes=self.app.routes,
            )
            parts = made.setdefault("components", {})
            parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
            illustrate(parts["schemas"])
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            made["security"] = [{"token": []}]
            self._document = made
        return self._document
