"""The service of one store: the operations that every front end calls, made when first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeVar

from holdfast.clock import Clock, SystemClock
from holdfast.errors import InvalidInput, NotFound, StoreGone
from holdfast.randomness import SystemRandomness
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.queries import Queries
from holdfast.service.queries.views import View
from holdfast.settings import KeepTimes, ProjectSettings, Settings
from holdfast.store import migrations
from holdfast.store.database import Database, Transaction, is_postgresql
from holdfast.store.drivers import open_database
from holdfast.threads import SystemThreads

# Modules that only some commands need are imported where they are used: the import of the engine
# alone takes longer than a whole command that lists runs.
if TYPE_CHECKING:
    from holdfast.engine.engine import Engine
    from holdfast.model.token import AccessToken
    from holdfast.model.workflow.graph import Workflow
    from holdfast.service.admin.browser_links import BrowserLinks
    from holdfast.service.admin.bus import BusAdmin, ParkedMessages
    from holdfast.service.admin.metrics import Meter
    from holdfast.service.admin.tokens import Tokens
    from holdfast.service.commands.bulk_changes import BulkCommands
    from holdfast.service.commands.commands import Commands
    from holdfast.service.commands.previews import Previews
    from holdfast.service.commands.token_scope import TokenScope
    from holdfast.service.protocol.artifacts import OpenArtifact
    from holdfast.service.protocol.end_watches import EndWatches
    from holdfast.service.protocol.long_polls import LongPolls, OwnLongPolls
    from holdfast.service.protocol.protocol import Protocol
    from holdfast.service.protocol.remote_presence import RemotePresence
    from holdfast.service.queries.addresses import Addresses
    from holdfast.service.queries.command_lines import AdviceWords, CommandWords
    from holdfast.service.queries.history import History

T = TypeVar("T")

# A person at a terminal wants to know soon that a store is locked or does not answer.
PATIENCE = 5.0


class Service:
    """The service of one store. Reads open no engine; the writer starts with the first write.

    Answers name commands in the form that `words` give them. With `access` the caller has shown a
    token, which may be for some agents alone.
    """

    def __init__(
        self,
        location: StoreLocation,
        engine: Engine | None = None,
        *,
        actor: str = "user",
        access: AccessToken | None = None,
        words: CommandWords | None = None,
    ) -> None:
        self.location = location
        self.actor = actor
        self._access = access
        self._given_words = words
        self._given_engine = engine
        self._opened_engine: Engine | None = None
        self._opened_database: Database | None = None
        self._has_writer_started = engine is not None
        self._has_notifier_started = engine is not None

    @property
    def _words(self) -> CommandWords:
        from holdfast.service.queries.command_lines import CommandWords

        return self._given_words or CommandWords()

    @property
    def _settings(self) -> Settings:
        return Settings(url=self.location.url, patience=PATIENCE)

    @property
    def engine(self) -> Engine:
        """The engine, for the parts of the service: a front end calls these, not the engine."""
        if self._given_engine is not None:
            return self._given_engine
        if self._opened_engine is None:
            from holdfast.engine.engine import Engine

            self._opened_engine = Engine(self.location.url, settings=self._settings)
        return self._opened_engine

    @property
    def _writer(self) -> Engine:
        """The engine with its writer running."""
        engine = self.engine
        if not self._has_writer_started:
            self._has_writer_started = True
            engine.commits.start()
        return engine

    def _read_store(self, work: Callable[[Transaction], T]) -> T:
        """Read from the store, with the database of the engine where the engine is open."""
        if self._given_engine is not None or self._opened_engine is not None:
            return self.engine.database.view(work)
        if self._opened_database is None:
            self._opened_database = open_database(
                self.location.url,
                clock=SystemClock(),
                randomness=SystemRandomness(),
                threads=SystemThreads(),
                settings=self._settings,
            )
            self._opened_database.upgrade()
        return self._opened_database.view(work)

    @property
    def settings(self) -> Settings:
        """The settings that the engine of the store works by."""
        return self.engine.settings

    @property
    def clock(self) -> Clock:
        return self.engine.clock

    def acting_as(self, access: AccessToken) -> Service:
        """The service on the same engine, acting in the name and with the rights of a token."""
        return Service(self.location, self.engine, actor=access.name, access=access)

    def on_change(self, callback: Callable[[], None], *, served: bool = True) -> Callable[[], None]:
        """Call back after commits of any process; returns the function that stops the callbacks.

        With `served` false, no callback comes for commits of this process whose ready tasks its
        standing claims took.
        """
        engine = self.engine
        if not self._has_notifier_started:
            self._has_notifier_started = True
            engine.notifier.start()
        return engine.on_hint(callback, served=served)

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        """Call back once when the store's file is gone; returns how to stop that."""
        return self.engine.on_gone(callback)

    @cached_property
    def queries(self) -> Queries:
        return Queries(self._read_store, lambda: self.engine)

    @cached_property
    def addresses(self) -> Addresses:
        from holdfast.service.queries.addresses import Addresses

        return Addresses(self.engine)

    @cached_property
    def previews(self) -> Previews:
        from holdfast.service.commands.previews import Previews

        return Previews(self.engine, self.actor)

    @cached_property
    def commands(self) -> Commands:
        from holdfast.service.commands.commands import Commands

        return Commands(self._writer, self.queries, self.actor)

    @cached_property
    def bulk(self) -> BulkCommands:
        from holdfast.service.commands.bulk_changes import BulkCommands

        return BulkCommands(self._writer, self.queries, self.actor)

    @cached_property
    def protocol(self) -> Protocol:
        from holdfast.service.protocol.protocol import Protocol
        from holdfast.worker.files.state_directory import find_state_directory

        return Protocol(
            self._writer, self.queries, find_state_directory(self.location.url), self.token_scope
        )

    @cached_property
    def token_scope(self) -> TokenScope:
        from holdfast.service.commands.token_scope import TokenScope

        return TokenScope(self._access, self.engine)

    @cached_property
    def own_long_polls(self) -> OwnLongPolls:
        from holdfast.service.protocol.long_polls import OwnLongPolls

        return OwnLongPolls(self._writer)

    def long_polls(self) -> LongPolls:
        """The long polls of a server, to be made on the event loop of the server."""
        from holdfast.service.protocol.long_polls import LongPolls

        return LongPolls(self._writer)

    def end_watches(self) -> EndWatches:
        """The calls of a server that wait for ends, to be made on the event loop of the server."""
        from holdfast.service.protocol.end_watches import EndWatches

        return EndWatches(self._writer)

    def remote_presence(self) -> RemotePresence:
        """The presence of the workers that call one server, from now on."""
        from holdfast.service.protocol.remote_presence import RemotePresence

        return RemotePresence(self._writer)

    def meter(self) -> Meter:
        """A meter that counts events of the store from now on."""
        from holdfast.service.admin.metrics import Meter

        return Meter(self._writer)

    def bus(self, url: str | None = None) -> BusAdmin:
        """The bus of the store, or the Redis at a URL; it must be closed before the service."""
        from holdfast.service.admin.bus import BusAdmin

        return BusAdmin(self._writer, url)

    def bus_groups(self) -> View:
        """The consumer groups that the store knows of, and who reads each."""
        from holdfast.service.admin.bus import view_all_groups

        return view_all_groups(self._writer)

    @cached_property
    def parked_messages(self) -> ParkedMessages:
        from holdfast.service.admin.bus import ParkedMessages

        return ParkedMessages(self.engine)

    @cached_property
    def tokens(self) -> Tokens:
        from holdfast.service.admin.tokens import Tokens

        return Tokens(self._writer)

    @cached_property
    def links(self) -> BrowserLinks:
        from holdfast.service.admin.browser_links import BrowserLinks

        return BrowserLinks(self._writer)

    @cached_property
    def history(self) -> History:
        from holdfast.service.queries.history import History

        return History(self._read_store)

    def statistics(self) -> View:
        from holdfast.service.queries.summaries import count_open_work

        return count_open_work(self._read_store)

    def activity(self, hours: int) -> View:
        """What was done in each of the last hours, and how long work waited to be taken."""
        from holdfast.service.queries.activity import view_activity

        return view_activity(self._read_store, hours)

    def costs(self, days: int, offset: int = 0) -> View:
        """What was paid on each of the last days; they begin `offset` minutes off UTC."""
        from holdfast.service.queries.activity import view_costs

        return view_costs(self._read_store, days, offset)

    def effects(self, task_id: str, after: str | None, limit: int) -> View:
        """A page of the effects that a task remembers: `{effects, next}`, oldest first."""
        from holdfast.service.queries.history import view_page_of_effects

        return view_page_of_effects(self.engine, task_id, after, limit)

    def why(
        self,
        identifier: str,
        *,
        agents: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        words: AdviceWords | None = None,
    ) -> View:
        """The explanation of a run or task; unless said, its advice is commands to type."""
        from holdfast.service.queries.explanations import explain

        chosen = words or self._words
        return explain(self.engine, identifier, agents=agents, tags=tags, words=chosen)

    def doctor(self, project: ProjectSettings | None = None) -> View:
        from holdfast.service.admin.health import examine_store

        return examine_store(self.engine, self.location, project, self._words)

    def check_ready(self) -> None:
        """Read from the store and have its writer write; raises the error of either."""
        from holdfast.service.admin.health import check_ready

        check_ready(self._writer)

    def repair(self, *, dry_run: bool = False) -> View:
        from holdfast.service.admin.store_repair import repair_store

        return repair_store(self._writer, dry_run=dry_run)

    def clean(self, keep: KeepTimes, *, dry_run: bool = False) -> View:
        """Remove old runs, tasks, logs and files, or list them."""
        from holdfast.service.admin.cleanup import clean_store

        return clean_store(self._writer, self.location, keep, dry_run=dry_run)

    def rehearse(self, workflow: Workflow) -> None:
        """Let stubs carry out the runs in this store as far as possible."""
        from holdfast.service.commands.rehearsal import WorkflowRehearsal

        WorkflowRehearsal(self._writer, self.queries, workflow).play_run()

    def report(self, since: int) -> View:
        from holdfast.service.queries.summaries import build_report

        return build_report(self._read_store, self.queries, since, self._words)

    def read_last_lines(self, run: View) -> dict[str, tuple[str, float]]:
        """The last line that each running task of a run has logged, and its time."""
        from holdfast.service.protocol.attempt_files import read_last_line
        from holdfast.service.queries.run_tree import walk_tasks

        running = [task for task in walk_tasks(run["tasks"]) if task["status"] == "running"]
        found = {
            each["id"]: read_last_line(self.location, each["id"], each["attempt"])
            for each in running
        }
        return {task_id: line for task_id, line in found.items() if line is not None}

    def read_attempt_log(
        self, task_id: str, attempt: int | None = None, start: int = 0
    ) -> tuple[int, bytes]:
        """The number of an attempt, by default the latest, and its log from a byte on."""
        from holdfast.service.protocol.attempt_files import read_log

        latest = self.queries.task(task_id)["attempt"]
        chosen = latest if attempt is None else attempt
        if not 0 <= chosen <= latest:
            raise InvalidInput("attempt", f"must be between 1 and {latest}")
        return chosen, read_log(self.location, task_id, chosen, start)

    def artifacts(self, task_id: str, *, limit: int, after: str | None = None) -> View:
        """A page of the files that a task has kept: `{items, next}`, by name."""
        from holdfast.service.queries.artifacts import view_page_of_artifacts

        self.queries.task(task_id)
        return self._read_store(
            lambda tx: view_page_of_artifacts(tx, task_id, limit=limit, after=after)
        )

    def open_artifact(self, task_id: str, name: str) -> OpenArtifact:
        """Open a file that a task has kept; raises `NotFound` where it is not on this machine."""
        from holdfast.service.protocol.artifacts import open_artifact
        from holdfast.worker.files.state_directory import find_state_directory

        self.queries.task(task_id)
        state = find_state_directory(self.location.url)
        return open_artifact(self.engine, state, task_id, name)

    def change(self, identifier: str, attempt: int | None = None) -> View:
        """What a run, or an attempt of a task, has changed in its repository, as a patch too."""
        from holdfast.service.protocol.changes import change_of_run, change_of_task
        from holdfast.worker.files.state_directory import find_state_directory

        state = find_state_directory(self.location.url)
        if identifier.startswith("r_"):
            return change_of_run(self.engine, state, identifier)
        self.queries.task(identifier)
        return change_of_task(self.engine, state, identifier, attempt)

    def with_change_to_approve(self, run: View) -> View:
        """A run with what it has changed, where an approval of it waits for a person."""
        from holdfast.service.queries.run_tree import build_task_trees

        asking = [
            front
            for node in build_task_trees(run.get("tasks", ()))
            for front in node.frontier
            if front.asks_person and front.task["kind"] == "approval"
        ]
        if not asking or "commit" not in run:
            return run
        try:
            return {**run, "change": self.change(run["id"])}
        except NotFound:
            # The patch was kept on another machine.
            return run

    def schema(self) -> View:
        """The URL of the store, and the newest migration of its schema."""
        # Opening a store applies every migration that this release has, or is refused.
        self._read_store(lambda _: None)
        newest = migrations.load("postgresql" if is_postgresql(self.location.url) else "sqlite")[-1]
        return {"url": self.location.url, "migration": newest.file.removesuffix(".sql")}

    def close(self) -> None:
        for opened in (self._opened_engine, self._opened_database):
            if opened is not None:
                opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
