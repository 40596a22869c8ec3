"""What can be started again and again: at the ticks of a cron expression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from holdfast.engine.core.sync_async import operation
from holdfast.ids import AnyId, id_of
from holdfast.model.run import NewRun
from holdfast.model.schedule import NewSchedule, Schedule
from holdfast.model.task import NewTask

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


class Recurring(ABC):
    _engine: Callable[[], Engine]

    @abstractmethod
    def request(self, /, **given: Any) -> NewTask | NewRun:
        """What one tick starts."""

    @operation
    def schedule(
        self,
        /,
        name: str,
        cron: str,
        *,
        zone: str = "UTC",
        missed: str = "one",
        run: AnyId | None = None,
        **given: Any,
    ) -> Future[Schedule]:
        """Start it with these arguments at each tick of a cron expression in a time zone.

        The same schedule again changes nothing; another of its `name` replaces it. Ticks that
        were missed are made up for by `one` start, by `all` of them, or are left out: `skip`.
        With a `run` it goes with that run, and ends with it. Where arguments have these very
        names, use `hf.schedules.put`.
        """
        starts = self.request(**given)
        with_run = id_of(run)
        return self._engine().schedules.put.submit(
            NewSchedule(name=name, cron=cron, zone=zone, missed=missed, run=with_run, starts=starts)
        )
