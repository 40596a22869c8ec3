"""A night: an agent plans over MCP, and `holdfast up` has the parts done by scripts."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from holdfast import Holdfast
from tests.acceptance.server.test_server import serving
from tests.acceptance.terminals import PROGRAM, environment, holdfast
from tests.mcp_agents import Agent
from tests.race.racers import eventually

SETTINGS = """
agents:
  developer: {command: [./developer.sh], timeout: 1m}
  reviewer: {command: [./reviewer.sh, "{{ prompt }}", "{{ attempt }}"]}
"""
# Fails at its first attempt for the roof, and writes down what it was asked.
DEVELOPER = """#!/bin/sh
prompt=$(cat)
echo "developer: $prompt" >> night.txt
case "$prompt" in *roof*) [ "$HOLDFAST_ATTEMPT" = 1 ] && { echo 'no tiles' >&2; exit 1; } ;; esac
echo '{"built": true}' > "$HOLDFAST_OUTPUT"
"""
REVIEWER = """#!/bin/sh
echo "reviewer: $1" >> night.txt
"""
PARTS: list[dict[str, Any]] = [
    {"title": "Walls", "key": "walls", "prompt": "Build the walls."},
    {"title": "Roof", "key": "roof", "prompt": "Build a roof.", "needs": ["walls"]},
    {"title": "Look", "agent": "reviewer", "prompt": "Look at all of it.", "needs": ["roof"]},
    {"title": "Nobody", "agent": "gardener", "needs": ["walls"], "key": "garden"},
]


async def plan(folder: Path) -> str:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-c", PROGRAM, "mcp", "--as", "planner"],
        env=environment(),
        cwd=folder,
    )
    async with Client(started) as client:
        planner = Agent(client)
        task = {"title": "A shed", "agent": "developer", "enqueue": False}
        shed = (await planner.use("create_task", **task))["id"]
        await planner.use("start_planning", task_id=shed)
        for part in PARTS:
            await planner.use("add_child", task_id=shed, **part)
        await planner.use("finalize_plan", task_id=shed)
        return str(shed)


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_what_an_agent_has_planned_is_done_overnight_by_the_commands_of_the_project(
    tmp_path: Path,
) -> None:
    assert holdfast(tmp_path, "init", "--bare").returncode == 0
    (tmp_path / "holdfast.yaml").write_text(SETTINGS)
    write_program(tmp_path / "developer.sh", DEVELOPER)
    write_program(tmp_path / "reviewer.sh", REVIEWER)
    with serving(tmp_path, "up") as (_, client):
        shed = asyncio.run(asyncio.wait_for(plan(tmp_path), 60))

        def states() -> dict[str, str]:
            items = client.get("/tasks", params={"parent": shed}).json()["items"]
            return {each["title"]: each["state"] for each in items}

        (retried,) = (
            each["id"]
            for each in client.get("/tasks", params={"parent": shed}).json()["items"]
            if each["title"] == "Roof"
        )
        assert eventually(lambda: states()["Roof"] in {"scheduled", "done"}), states()
        client.post(f"/tasks/{retried}/run-now")
        done = {"Walls": "done", "Roof": "done", "Look": "done", "Nobody": "ready"}
        assert eventually(lambda: states() == done), states()
        why = holdfast(tmp_path, "why", "key:garden").stdout
        assert "a worker with a command for agent 'gardener' in its holdfast.yaml" in why
        warnings = json.loads(holdfast(tmp_path, "doctor", "--json").stdout)["warnings"]
        assert any("no live worker has a command for 'gardener'" in each for each in warnings)
        left = client.get("/tasks", params={"agent": "gardener"}).json()["items"][0]["id"]
        assert client.request("DELETE", f"/tasks/{left}").status_code == 200
        told = client.get(f"/tasks/{shed}").json()
        assert (told["status"], told["output"]) == (
            "done",
            [{"built": True}, {"built": True}, {"text": ""}],
        )
    assert (tmp_path / "night.txt").read_text().splitlines() == [
        "developer: Build the walls.",
        "developer: Build a roof.",
        "developer: Build a roof.",
        "reviewer: Look at all of it.",
    ]
    with Holdfast(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") as hf:
        assert hf.doctor().ok
