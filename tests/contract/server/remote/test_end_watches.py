"""End watches over a store that was away for a while."""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.service.protocol.end_watches import EndWatches
from holdfast.settings import Settings
from tests.contract.postgresql_proxy import proxied
from tests.contract.task_states import create, take
from tests.engines import opened
from tests.race.racers import eventually


def test_ends_are_told_after_the_store_was_away(
    postgres_store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "holdfast.server")

    with proxied(postgres_store_url) as proxy, opened(postgres_store_url) as engine:
        task = create(engine)
        take(engine, task)
        with closing(
            Engine(proxy.url, settings=Settings(url=proxy.url, poll=0.05, patience=0.2))
        ) as far:
            far.commits.start()

            async def watch() -> set[tuple[str, int]]:
                watches = EndWatches(far)
                gone: Any = asyncio.get_running_loop().create_future()
                waiting = asyncio.ensure_future(watches.wait([(task, 1)], 20, gone))
                # It has looked once, and begins to wait.
                await asyncio.to_thread(eventually, lambda: bool(gone._callbacks))  # noqa: SLF001
                proxy.sever()
                assert await asyncio.to_thread(eventually, lambda: "no ends" in caplog.text)
                proxy.admit()
                assert engine.tasks.cancel(task).ok
                try:
                    return await waiting
                finally:
                    watches.close()

            assert asyncio.run(watch()) == {(task, 1)}
