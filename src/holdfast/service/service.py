"""Opens a store for a front end: to look at it, and to steer what is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Self

from holdfast.engine.engine import Engine
from holdfast.model.graph import Workflow
from holdfast.service.addresses import Addresses
from holdfast.service.commands import Commands
from holdfast.service.explaining import explain
from holdfast.service.health import examine, heal
from holdfast.service.logs import last_line
from holdfast.service.place import Place
from holdfast.service.previews import Previews
from holdfast.service.protocol import Protocol
from holdfast.service.queries import Queries
from holdfast.service.rehearsal import Rehearsal
from holdfast.service.report import report
from holdfast.service.views import View
from holdfast.settings import Settings
from holdfast.store import migrations

# A person who waits at a terminal wants to hear sooner that a store is locked or away.
PATIENCE = 5.0


class Service:
    """One store. Nothing but the writer is started, and that not before something is written."""

    def __init__(self, place: Place, engine: Engine | None = None, *, actor: str = "user") -> None:
        self.place = place
        self.actor = actor
        self._own = engine is None
        self._writes = engine is not None
        self._listens = False
        self._engine = engine or Engine(
            place.url, settings=Settings(url=place.url, patience=PATIENCE)
        )

    @property
    def _writer(self) -> Engine:
        """The engine with its writer running."""
        if not self._writes:
            self._writes = True
            self._engine.commits.start()
        return self._engine

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever something was committed, here or elsewhere; returns the way out."""
        if self._own and not self._listens:
            self._listens = True
            self._engine.notifier.start()
        return self._engine.on_hint(callback)

    @cached_property
    def addresses(self) -> Addresses:
        return Addresses(self._engine)

    @cached_property
    def queries(self) -> Queries:
        return Queries(self._engine)

    @cached_property
    def previews(self) -> Previews:
        return Previews(self._engine)

    @cached_property
    def commands(self) -> Commands:
        return Commands(self._writer, self.queries, self.actor)

    @cached_property
    def protocol(self) -> Protocol:
        return Protocol(self._writer, self.queries, self.place)

    def why(
        self,
        identifier: str,
        *,
        agents: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
    ) -> View:
        return explain(self._engine, identifier, agents=agents, tags=tags)

    def doctor(self) -> View:
        return examine(self._engine, self.place)

    def heal(self, *, dry_run: bool = False) -> View:
        return heal(self._writer, dry_run=dry_run)

    def rehearse(self, workflow: Workflow) -> None:
        """Let stubs do all that can be done of the runs in this store."""
        Rehearsal(self._writer, self.queries, workflow).play()

    def report(self, since: int) -> View:
        return report(self._engine, self.queries, since)

    def last_lines(self, run: View) -> dict[str, tuple[str, float]]:
        """What the running tasks of a run wrote last, and when."""
        running = [task for task in run["tasks"] if task["status"] == "running"]
        found = {each["id"]: last_line(self.place, each["id"], each["attempt"]) for each in running}
        return {task_id: line for task_id, line in found.items() if line is not None}

    def schema(self) -> View:
        """Which store this is, and how far its schema has come."""
        # To open a store brings it up to what the code knows, or is refused.
        newest = migrations.load(self._engine.database.dialect)[-1]
        return {"url": self.place.url, "migration": newest.file.removesuffix(".sql")}

    def close(self) -> None:
        if self._own:
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
