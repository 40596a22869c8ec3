"""The audit of agents that use tools: what is refused has its line, as over REST."""

from __future__ import annotations

import asyncio
import logging

import httpx
import pytest

from tests.contract.server.local_server import Served
from tests.contract.server.routes.test_mcp_tools import enter

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ODD = "rm\n2026 admin (admin) MCP approve ok" + "x" * 500


def _ask(server: Served, token: str | None, query: str = "") -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    accept = {"Accept": "application/json, text/event-stream"}
    asked = httpx.post(f"{server.url}/mcp{query}", json=LIST, headers=accept | headers)
    return asked.status_code


def test_a_call_that_is_let_in_with_no_tools_has_its_line(
    quick_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server = quick_server
    caplog.set_level(logging.INFO, "holdfast.audit")
    assert _ask(server, "wrong" * 8) == _ask(server, None) == 401
    assert _ask(server, server.tokens["worker"], "?as=operator") == 403
    assert _ask(server, server.tokens["viewer"], "?as=nobody") == 403
    assert _ask(server, server.tokens["viewer"]) == 200
    server.application.server_state.audit_throttle.close()
    assert caplog.messages == [
        "nobody POST /mcp 401 from 127.0.0.1",
        "worker (worker) POST /mcp 403",
        "viewer (viewer) POST /mcp 403",
        "nobody 1 more 401 from 127.0.0.1",
    ]


def test_a_tool_that_is_refused_has_its_line(
    quick_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server = quick_server
    task = server.add(agent="beta")["id"]
    narrow = {"name": "narrow", "role": "worker", "agents": ["alpha"]}
    token = server().post("/tokens", json=narrow).json()["token"]
    caplog.set_level(logging.INFO, "holdfast.audit")

    async def story() -> None:
        async with enter(server, token) as worker:
            await worker.refused("claim", task_id=task)
            await worker.refused("complete", task_id=task, token="1.x")
            await worker.refused("complete", task_id=task)
            await worker.refused("approve", task_id=task)
            await worker.refused("get_task", task_id=task)
            await worker.refused(ODD, task_id="t_\nadmin (admin) MCP approve ok")
        async with enter(server, server.tokens["viewer"]) as viewer:
            await viewer.refused("cancel_task", task_id=task)
            # Who only looks leaves no line, refused or not, as with GET.
            await viewer.refused("get_task", task_id="t_" + "0" * 20)
            await viewer.refused("get_task")

    asyncio.run(asyncio.wait_for(story(), 60))
    assert [each.partition(" t_")[0] for each in caplog.messages] == [
        "narrow (worker) MCP claim forbidden",
        "narrow (worker) MCP complete forbidden",
        "narrow (worker) MCP complete invalid_input",
        "narrow (worker) MCP approve forbidden",
        "narrow (worker) MCP get_task forbidden",
        f"narrow (worker) MCP {ascii(ODD)[1:61]} not_found",
        "viewer (viewer) MCP cancel_task forbidden",
    ]
    assert not [each for each in caplog.messages if "\n" in each or len(each) > 200]
    assert server.hf.tasks.get(task).status == "queued"
