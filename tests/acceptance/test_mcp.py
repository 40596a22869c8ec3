"""The MCP server as agents use it: the official client, over the pipes of a real process."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from holdfast import Holdfast
from tests.acceptance.terminals import PROGRAM, ROOT, environment, holdfast
from tests.mcp_agents import TOOLS, Agent, build_a_shed

PAGE = (ROOT / "docs" / "how-to" / "mcp.md").read_text(encoding="utf-8")


def test_an_agent_plans_another_works_and_a_third_judges(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")

    @asynccontextmanager
    async def enter(role: str) -> AsyncIterator[Agent]:
        started = StdioServerParameters(
            command=sys.executable,
            args=["-c", PROGRAM, "mcp", "--as", role],
            env=environment() | {"LOGNAME": "worker"},
            cwd=tmp_path,
        )
        async with Client(started) as client:
            yield Agent(client)

    asyncio.run(asyncio.wait_for(build_a_shed(enter, TOOLS["worker"]), 60))
    with Holdfast(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") as hf:
        actors = {each.actor for task in hf.tasks.list() for each in hf.tasks.events(task.id)}
        assert any(each == "worker_:planner" for each in actors)
        assert hf.doctor().ok


def test_the_page_tells_the_tools_of_each_role_and_how_a_client_starts_them() -> None:
    tools = PAGE.partition("\n\nNobody")[0]
    rows = {
        row[0].replace("`", ""): set(re.findall(r"`(\w+)`", row[1]))
        for row in re.findall(r"^\| (.*?) \| (.*?) \|$", tools, re.MULTILINE)
    }
    each = rows["each, viewer"]
    assert each == TOOLS["viewer"]
    assert rows["planner"] | each == TOOLS["planner"]
    assert rows["worker"] | each == TOOLS["worker"]
    assert rows["operator"] | rows["planner"] | each == TOOLS["operator"]
    written = re.findall(r"^```(json|toml)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    servers = [
        _server(json.loads(text) if kind == "json" else tomllib.loads(text))
        for kind, text in written
    ]
    assert len(servers) == 5
    for told in servers:
        started = (told.get("command"), told.get("args")) == (
            "holdfast",
            ["mcp", "--as", "planner"],
        )
        assert started or told["url"] == "http://127.0.0.1:8765/mcp?as=planner"


def _server(written: dict[str, Any]) -> dict[str, Any]:
    (servers,) = [each for name, each in written.items() if name.lower().endswith("servers")]
    return dict(servers["holdfast"])
