"""Whoever reports or makes a task is told how it stands, however many look at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.engine.engine import Engine
from holdfast.errors import StoreUnreachable
from holdfast.service.async_service import SharedTaskReads
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.queries import Queries
from holdfast.service.service import Service
from tests.contract.task_states import MISSING_TASK, create

T = TypeVar("T")


class Counted:
    """Threads that look one after another, each when it is let go."""

    def __init__(self, let_go: int = 0) -> None:
        self.looks = 0
        self.begun = asyncio.Event()
        self.go = asyncio.Semaphore(let_go)

    async def in_thread(self, work: Callable[[], T]) -> T:
        self.looks += 1
        self.begun.set()
        await self.go.acquire()
        return await asyncio.to_thread(work)


def queries(engine: Engine) -> Queries:
    place = StoreLocation(url=engine.settings.url, home=Path("unused"), may_be_created=True)
    return Service(place, engine).queries


def test_a_caller_that_asks_during_a_look_shares_the_next_look(engine: Engine) -> None:
    tasks = [create(engine, f"task {number}") for number in range(4)]

    async def work() -> None:
        threads = Counted()
        looks = SharedTaskReads(queries(engine), threads.in_thread)
        first = asyncio.create_task(looks.task(tasks[0]))
        await threads.begun.wait()
        others = [asyncio.create_task(looks.task(each)) for each in (*tasks, MISSING_TASK)]
        await asyncio.sleep(0)
        # What is committed while the first look is under way is seen by those who ask meanwhile.
        engine.tasks.cancel(tasks[1])
        threads.go.release()
        threads.go.release()
        told = await asyncio.gather(first, *others)
        assert threads.looks == 2
        assert [each and each["id"] for each in told] == [tasks[0], *tasks, None]
        seen = told[2]
        assert seen is not None
        assert seen["status"] == "cancelled"

    asyncio.run(work())


def test_a_look_that_fails_is_told_to_all_who_share_it_and_to_nobody_else(engine: Engine) -> None:
    task_id = create(engine)

    async def work() -> None:
        failing = [True]

        async def in_thread(work: Callable[[], T]) -> T:
            if failing.pop():
                raise StoreUnreachable("away")
            return await asyncio.to_thread(work)

        looks = SharedTaskReads(queries(engine), in_thread)
        both = await asyncio.gather(
            looks.task(task_id), looks.task(task_id), return_exceptions=True
        )
        assert [type(each) for each in both] == [StoreUnreachable] * 2
        failing.append(False)
        seen = await looks.task(task_id)
        assert seen is not None

    asyncio.run(work())


def test_the_view_is_the_one_that_a_look_alone_gives(engine: Engine) -> None:
    needed = create(engine)
    blocked = create(engine, needs=[needed])

    async def work() -> None:
        looks = SharedTaskReads(queries(engine), Counted(let_go=2).in_thread)
        for task_id in (needed, blocked):
            assert await looks.task(task_id) == queries(engine).task(task_id)

    asyncio.run(work())
