"""A request as a span below its caller's, where the caller says which, and traces are wanted."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.tracing import Span, read_header, tracer


class Traced:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        known = tracer()
        given = None if known is None or scope["type"] != "http" else _given(scope)
        place = None if given is None else read_header(given)
        if known is None or place is None:
            await self._app(scope, receive, send)
            return
        span = Span(name=f"{scope['method']} {scope['path']}", place=place)
        with known.within(span):
            await self._app(scope, receive, send)


def _given(scope: Scope) -> str | None:
    found = [value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"]
    return found[0] if len(found) == 1 else None
