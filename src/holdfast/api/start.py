"""Start: the bases of tasks and workflows that can be scheduled, and of workflows that start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Never

from holdfast.api.handle import RunHandle, StoreRunHandle
from holdfast.api.options import read_concurrency
from holdfast.api.program_engine import ProgramEngine
from holdfast.engine.core.sync_async import operation
from holdfast.errors import InvalidInput
from holdfast.ids import AnyId, id_of
from holdfast.model.run import CreateResult, NewRun
from holdfast.model.schedule import NewSchedule, Schedule
from holdfast.model.task import NewTask
from holdfast.model.units import Moment
from holdfast.model.workflow.graph import Workflow


class Schedulable(ABC):
    """A task or workflow that a schedule can start at each tick."""

    _engine: ProgramEngine

    @abstractmethod
    def _request_start(self, given: Mapping[str, Any]) -> NewTask | NewRun:
        """The task or run that one tick starts."""

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
        names, use `hf.schedules.put`. While pytest imports a module it is only declared, and
        written into each store that the program opens for its tests.
        """
        starts = self._request_start(given)
        with_run = id_of(run)
        return self._engine.put_schedule(
            NewSchedule(name=name, cron=cron, zone=zone, missed=missed, run=with_run, starts=starts)
        )


class StartableWorkflow(Schedulable):
    """A workflow of this program, written in Python or read from a file."""

    @operation
    def start(  # noqa: PLR0913 - the options of a start
        self,
        /,
        *unnamed: Never,
        key: str | None = None,
        priority: int | None = None,
        scheduled_for: Moment | None = None,
        concurrency: Any = None,  # noqa: ANN401 - a key, or a key and its limit
        labels: Mapping[str, Any] | None = None,
        connection: object = None,
        **given: Any,
    ) -> Future[RunHandle]:
        """Start a run with its inputs by name; a `key` makes it exist once.

        Its tasks have the `priority`, besides that of their steps. Nothing of it starts before the
        moment that it is `scheduled_for`: a datetime, or "2h" from now. A `concurrency`, a key or a
        key and its limit, stands in place of that of the workflow. It is found again by its
        `labels`. These are options: with the same key others give back the same run. An input of
        such a name is the input. With a `connection`
        the run is part of the application's own transaction there.
        """
        if unnamed:
            reason = f"inputs go by name: start({self._first_input()}={unnamed[0]!r})"
            raise InvalidInput("start", reason)
        options = {
            "priority": priority,
            "scheduled_for": scheduled_for,
            "concurrency": concurrency,
            "labels": labels,
        }
        told = {name: value for name, value in options.items() if value is not None}
        named = {name: told.pop(name) for name in list(told) if self._has_input(name)}
        run = self.request(**named, **given)
        if "concurrency" in told:
            told["concurrency"] = read_concurrency(told["concurrency"])
        run = replace(run, key=run.key if key is None else key, **told)
        engine = self._engine()
        since = engine.outcomes.looks if connection is None else None

        def handle(created: CreateResult) -> RunHandle:
            made = created.created
            return StoreRunHandle(engine, created.id, self._decode, created=made, since=since)

        return engine.runs.start_and_read(run, handle, connection=connection)

    @abstractmethod
    def request(self, /, **given: Any) -> NewRun:
        """The run of one start with these inputs."""

    def _request_start(self, given: Mapping[str, Any]) -> NewRun:
        return self.request(**given)

    @abstractmethod
    def read_graph(self) -> Workflow:
        """The definition, which its `version` names."""

    @abstractmethod
    def find_wrong_inputs(self, step: str, given: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
        """The mistakes in the input that a step of another workflow gives to this one."""

    @abstractmethod
    def _has_input(self, name: str) -> bool:
        """Whether the workflow takes an input of that name."""

    @abstractmethod
    def _first_input(self) -> str:
        """The name of an input, for an example in an error message."""

    @abstractmethod
    def _decode(self, step: str, output: Any) -> Any:  # noqa: ANN401 - what the step returns
        """The output of a step, from its JSON."""
