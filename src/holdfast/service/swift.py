"""What is asked most, for a server's loop: no thread waits with each who asks for the writer."""

from __future__ import annotations

from functools import partial

from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask, Result
from holdfast.service.looks import Looks
from holdfast.service.refused import accepted
from holdfast.service.service import Service
from holdfast.service.views import View


class Swift:
    """Commands and reports as the service has them; what is not usual is left to that to tell."""

    def __init__(self, engine: Engine, service: Service, looks: Looks) -> None:
        self._engine = engine
        self._service = service
        self._looks = looks

    async def add_task(self, task: NewTask) -> View:
        if task.scheduled_for is not None:
            # From now on, perhaps: the store is asked what that is.
            return await self._looks.in_thread(partial(self._service.commands.add_task, task))
        made = await self._engine.tasks.create.aio(task, actor=self._service.actor)
        seen = await self._looks.task(made.id) if made.created else None
        if seen is None:
            return await self._looks.in_thread(partial(self._service.commands.tell, made))
        return {**seen, "created": True}

    async def complete(self, result: Result) -> View:
        task_id = result.task_id
        if self._service.scope.is_narrow:
            await self._looks.in_thread(partial(self._service.scope.check_tasks, [task_id]))
        answer = await self._engine.work.complete.aio(
            task_id, result.token, result.output, usage=result.usage
        )
        repeated = accepted(task_id, answer).repeated
        seen = await self._looks.task(task_id)
        if seen is None:
            tell = partial(self._service.protocol.tell, task_id, answer)
            return await self._looks.in_thread(tell)
        return {"ok": True, "repeated": repeated, "task": seen}
