"""The claims of agents that use tools: made again, and cancelled while they are under way."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from holdfast.engine.engine import Engine
from holdfast.mcp.tools import ToolCaller
from holdfast.mcp.worker_tools import WorkerTools
from holdfast.model.task import Assignment
from holdfast.service.project.project import StoreLocation
from holdfast.service.service import Service
from tests.contract.task_states import create
from tests.race.racers import eventually

PATIENCE = 30


@pytest.fixture
def tools(engine: Engine, store_url: str, tmp_path: Path) -> WorkerTools:
    place = StoreLocation(url=store_url, home=tmp_path, may_be_created=True)
    service = Service(place, engine, actor="ada:worker")
    caller = ToolCaller(service=service, worker="ada", wait=service.own_long_polls.wait)
    return WorkerTools(lambda: caller)


def test_a_claim_that_is_made_again_under_its_name_gives_the_same(
    engine: Engine, tools: WorkerTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id, other = create(engine), create(engine)

    async def claim(**fields: Any) -> tuple[str, str]:
        (got,) = (await tools.claim(**fields))["assignments"]
        return got["task"]["id"], got["token"]

    async def story() -> None:
        first = await claim(request_id="r1")
        assert first[0] == task_id
        assert await claim(request_id="r1") == first
        assert await claim(task_id=task_id, request_id="r1") == first
        assert (await claim(request_id="r2", wait_seconds=PATIENCE))[0] == other
        waiting, begun = tools.service.own_long_polls.wait, asyncio.Event()

        async def begin(*args: Any) -> list[Assignment]:
            begun.set()
            return await waiting(*args)

        slow = replace(tools.find_caller(), wait=begin)
        monkeypatch.setattr(tools, "find_caller", lambda: slow)
        third = asyncio.ensure_future(claim(request_id="r3", wait_seconds=PATIENCE))
        await begun.wait()
        await run_sync(create, engine)
        assert await claim(request_id="r3") == await third

    asyncio.run(asyncio.wait_for(story(), PATIENCE))


def test_a_claim_that_is_cancelled_while_it_is_written_is_given_back(
    engine: Engine, tools: WorkerTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = create(engine)
    taken, cancelled = threading.Event(), threading.Event()
    protocol = tools.service.protocol
    take = protocol.claim_assignments

    def slowly(*args: Any, **fields: Any) -> list[Assignment]:
        got = take(*args, **fields)
        taken.set()
        assert cancelled.wait(PATIENCE)
        return got

    monkeypatch.setattr(protocol, "claim_assignments", slowly)

    async def story() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(tools.claim)
            assert await run_sync(taken.wait, PATIENCE)
            assert engine.tasks.get(task_id).attempt == 1
            group.cancel_scope.cancel()
            cancelled.set()

    asyncio.run(story())
    assert eventually(lambda: engine.tasks.get(task_id).status == "queued")
    assert [each.outcome for each in engine.tasks.attempts(task_id)] == ["released"]
