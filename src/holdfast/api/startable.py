"""What starts runs of a workflow, whether it was written in Python or read from a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from holdfast.api.handle import RunHandle
from holdfast.api.recurring import Recurring
from holdfast.engine.core.sync_async import operation
from holdfast.errors import InvalidInput
from holdfast.model.run import Created, NewRun
from holdfast.model.workflow.graph import Workflow


class Startable(Recurring):
    @operation
    def start(
        self,
        /,
        *unnamed: object,
        key: str | None = None,
        connection: object = None,
        **given: Any,
    ) -> Future[RunHandle]:
        """Start a run with its inputs by name; a `key` makes it exist once.

        With a `connection` it is part of the application's own transaction there.
        """
        if unnamed:
            reason = f"inputs go by name: start({self._first_input()}={unnamed[0]!r})"
            raise InvalidInput("start", reason)
        run = self.request(**given)
        if key is not None:
            run = replace(run, key=key)
        engine = self._engine()
        since = engine.outcomes.looks if connection is None else None

        def handle(created: Created) -> RunHandle:
            made = created.created
            return RunHandle(engine, created.id, self._decode, created=made, since=since)

        return engine.runs.starting(run, handle, connection=connection)

    @abstractmethod
    def request(self, /, **given: Any) -> NewRun:
        """The run that stands for one start."""

    @abstractmethod
    def read_graph(self) -> Workflow:
        """The definition, which its `version` names."""

    @abstractmethod
    def misgiven(self, step: str, given: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
        """What is wrong with what a step of another workflow gives to a run of this one."""

    @abstractmethod
    def _first_input(self) -> str:
        """The name of an input, to show how it is given."""

    @abstractmethod
    def _decode(self, step: str, output: Any) -> Any:  # noqa: ANN401 - what the step returns
        """What a step gave, from its JSON."""
