"""What starts runs of a workflow, whether it was written in Python or read from a file."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from holdfast.api.handle import RunHandle
from holdfast.api.recurring import Recurring
from holdfast.engine.edge import operation, then
from holdfast.errors import InvalidInput
from holdfast.model.run import NewRun


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
        run = replace(self.request(**given), key=key)
        engine = self._engine()
        return then(
            engine.runs.start.submit(run, connection=connection),
            lambda created: RunHandle(engine, created.id, self._decode, created=created.created),
        )

    @abstractmethod
    def request(self, /, **given: Any) -> NewRun:
        """The run that stands for one start."""

    @abstractmethod
    def _first_input(self) -> str:
        """The name of an input, to show how it is given."""

    @abstractmethod
    def _decode(self, step: str, output: Any) -> Any:  # noqa: ANN401 - what the step returns
        """What a step gave, from its JSON."""
