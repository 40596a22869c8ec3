"""Claims whose caller does not hear what came of them: nobody is left holding a task."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.types import Message

from holdfast.engine.engine import engine_of
from holdfast.errors import StoreBusy
from holdfast.model.task import Assignment
from holdfast.model.token import AccessToken
from holdfast.server.application import Application
from holdfast.service.admin.tokens import Tokens
from holdfast.service.protocol.protocol import Protocol
from holdfast.service.queries.views import View
from tests.contract.server.local_server import Served
from tests.race.racers import eventually

CLAIM = {"name": "claim", "arguments": {}}


def _send_and_hang_up(server: Served, path: str, body: dict[str, Any]) -> None:
    """A call of somebody who is gone as soon as all of it was sent."""
    application = Application(server.application.server_state.service)
    messages: list[Message] = [
        {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}
    ]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(_: Message) -> None: ...

    headers = {
        "host": "localhost",
        "authorization": f"Bearer {server.tokens['worker']}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
    }
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def call() -> None:
        await application.gate(scope, receive, send)
        application.server_state.close()
        await application.server_state.end()

    asyncio.run(asyncio.wait_for(call(), 30))


@pytest.mark.parametrize("way", ["rest", "by_id", "mcp"])
def test_a_task_claimed_for_a_caller_that_has_hung_up_goes_back(server: Served, way: str) -> None:
    task = server.add()["id"]
    body: dict[str, Any] = {"worker": "w", "wait_seconds": 20}
    if way == "by_id":
        body["task_id"] = task
    if way == "mcp":
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CLAIM}
    _send_and_hang_up(server, "/mcp" if way == "mcp" else "/api/v1/claims", body)
    assert eventually(lambda: server.hf.tasks.get(task).status == "queued")
    assert [each.outcome for each in server.hf.tasks.attempts(task)] == ["released"]


def test_a_claim_with_a_request_id_is_kept_for_a_caller_that_asks_again(
    quick_server: Served,
) -> None:
    server = quick_server
    task = server.add()["id"]
    _send_and_hang_up(server, "/api/v1/claims", {"worker": "w", "request_id": "r1"})
    (got,) = server.claim(request_id="r1")
    assert (got["task"]["id"], got["attempt"]) == (task, 1)


def test_work_that_came_when_the_token_could_not_be_looked_at_goes_back(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = server.application.server_state.tokens
    look = tokens.look

    async def fail(secret: str) -> AccessToken | None:
        if secret == server.tokens["worker"]:
            raise StoreBusy("somebody else writes")
        return await look(secret)

    with ThreadPoolExecutor() as pool:
        body = {"worker": "w", "wait_seconds": 20}
        waiting = pool.submit(server("worker").post, "/claims", json=body)
        assert eventually(lambda: server.application.server_state.waiting == 1)
        monkeypatch.setattr(tokens, "look", fail)
        # From now on every token has to be looked at again.
        Tokens(engine_of(server.hf)).create("another", role="viewer")
        task = server.add()["id"]
        assert waiting.result(30).status_code == 503
    assert eventually(lambda: server.hf.tasks.get(task).status == "queued")
    assert [each.outcome for each in server.hf.tasks.attempts(task)] == ["released"]


def test_work_of_which_the_rest_cannot_be_read_goes_back_unless_it_is_asked_for_again(
    quick_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = quick_server
    task = server.add(step="pack")["id"]

    def fail(_: Protocol, __: Sequence[Assignment]) -> list[View]:
        raise StoreBusy("somebody else writes")

    with monkeypatch.context() as patch:
        patch.setattr(Protocol, "view_whole_assignments", fail)
        body: dict[str, Any] = {"worker": "w", "whole": True}
        assert server("worker").post("/claims", json=body).status_code == 503
        assert eventually(lambda: server.hf.tasks.get(task).status == "queued")
        body["request_id"] = "r1"
        assert server("worker").post("/claims", json=body).status_code == 503
    (got,) = server.claim(whole=True, request_id="r1")
    assert (got["task"]["id"], got["attempt"]) == (task, 2)
