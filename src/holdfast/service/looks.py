"""Looks at tasks that many want at once: whoever asks while one is under way shares the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from holdfast.service.queries import Queries
from holdfast.service.views import View

T = TypeVar("T")
Asked = tuple[str, asyncio.Future[View | None]]


class InThread(Protocol):
    """Has another thread do what waits for the store."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]: ...


class Looks:
    """To be used on one loop; each task is read after it was asked for."""

    def __init__(self, queries: Queries, in_thread: InThread) -> None:
        self._queries = queries
        self.in_thread = in_thread
        self._asked: list[Asked] = []
        self._looking: asyncio.Task[None] | None = None

    async def task(self, task_id: str) -> View | None:
        """How a task stands now; None when it is not there."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[View | None] = loop.create_future()
        self._asked.append((task_id, found))
        if self._looking is None:
            self._looking = loop.create_task(self._look())
        return await found

    async def _look(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, []
                await self._tell(asked)
        finally:
            self._looking = None

    async def _tell(self, asked: Sequence[Asked]) -> None:
        ids = [task_id for task_id, _ in asked]
        try:
            views = await self.in_thread(partial(self._queries.some_tasks, ids))
        except BaseException as error:
            for _, waiter in asked:
                if not waiter.done():
                    waiter.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        known = {each["id"]: each for each in views}
        for task_id, waiter in asked:
            # Who hung up meanwhile waits no more.
            if not waiter.done():
                waiter.set_result(known.get(task_id))
