"""Whether the server lives, whether it is of use, what it counts, and what it offers."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from holdfast.server import answers
from holdfast.server.door import AsksAs
from holdfast.server.metrics import MEDIA, Counts, exposition
from holdfast.server.problems import Answer, Problem
from holdfast.server.routing import ANYONE, LOOKERS, Table
from holdfast.service.admin.health import check_ready

table = Table(tag="health", prefix="")


@table.route("GET", "/healthz", ANYONE, answers=answers.Alive)
async def alive() -> Answer:
    """That the process answers; it says nothing of the store."""
    return Answer({"ok": True})


@table.route("GET", "/readyz", ANYONE, answers=answers.Alive)
def ready(asks: AsksAs) -> Answer:
    """That the store can be read and written, and that the server is not about to stop."""
    if asks.serving.closing:
        raise Problem(503, "shutting_down", "this server is going", {"Retry-After": "1"})
    asks.engine.workers.list()
    check_ready(asks.engine)
    return Answer({"ok": True})


@table.route("GET", "/metrics", LOOKERS, kind=PlainTextResponse)
def metrics(asks: AsksAs) -> Response:
    """Counts for Prometheus."""
    serving, commits = asks.serving, asks.engine.commits
    counts = Counts(
        stored=asks.service.statistics(),
        reading=serving.meter.read(),
        refused=dict(serving.refused),
        groups=dict(commits.sizes),
        operations=commits.written,
        waiting=serving.waiting,
        readers=serving.readers,
    )
    return Response(exposition(counts), media_type=MEDIA)


@table.route("GET", "/openapi.json", ANYONE, answers=answers.Document)
async def document(request: Request) -> Answer:
    """All of this, as OpenAPI."""
    return Answer(request.app.openapi())
