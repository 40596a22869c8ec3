"""The engine: one store, one writer, the loops beside it, the facades, and the commit listeners."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from holdfast.clock import Clock, SystemClock
from holdfast.engine.background.recovery import Recovery
from holdfast.engine.background.run_outcomes import Outcomes
from holdfast.engine.claims.standing_claims import StandingClaims, hand_over_claimed_tasks
from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.effect_limits import Bounds
from holdfast.engine.core.shared_reads import SharedReads
from holdfast.engine.core.sync_async import reading
from holdfast.engine.explain.doctor import Diagnosis, examine_store
from holdfast.engine.explain.explanation import Explanation
from holdfast.engine.explain.why_run import RunExplanation, explain_run
from holdfast.engine.explain.why_task import explain_task
from holdfast.engine.input.task_template import TemplatedCreation
from holdfast.engine.read.key_addresses import find_id, find_run_id, find_task_id
from holdfast.engine.runs import Runs
from holdfast.engine.state.durable import Signals
from holdfast.engine.state.expected_version import VersionWait
from holdfast.engine.surroundings import hooks
from holdfast.engine.surroundings.access import AccessTokens
from holdfast.engine.surroundings.browser_sessions import BrowserSessions
from holdfast.engine.surroundings.hooks import Hooks
from holdfast.engine.surroundings.imports import Imports
from holdfast.engine.surroundings.leases import Leases
from holdfast.engine.surroundings.removal import Removals
from holdfast.engine.surroundings.schedules import Schedules
from holdfast.engine.surroundings.workers import Workers
from holdfast.engine.surroundings.workflows import Workflows
from holdfast.engine.tasks import Tasks
from holdfast.engine.work import Work
from holdfast.engine.writer.caller_transaction import (
    CallerTransactions,
    JoinedTransaction,
    join_group,
    join_transaction,
)
from holdfast.engine.writer.dry_run import DryRun, rehearse
from holdfast.engine.writer.writer import Writer
from holdfast.errors import StoreGone
from holdfast.ids import AnyId, Ids
from holdfast.model.text import digest
from holdfast.randomness import Randomness, SystemRandomness
from holdfast.settings import Settings
from holdfast.store.drivers import open_database, open_notifier
from holdfast.store.group_commit.queue import GroupCommit
from holdfast.threads import SystemThreads, Threads, shorten_switch_interval

T = TypeVar("T")
Listener = Callable[[Sequence[T]], None]

log = logging.getLogger("holdfast.engine")


class Listeners(Generic[T]):
    """Callbacks that are told what a commit of this process did."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener[T], ...] = ()

    def add(self, listener: Listener[T]) -> Callable[[], None]:
        """Tell one more listener from now on; returns a function that removes it."""
        self._listeners = (*self._listeners, listener)

        def remove() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return remove

    def notify(self, news: Sequence[T]) -> None:
        if not news:
            return
        for listener in self._listeners:
            # The other listeners are told even if one fails.
            try:
                listener(news)
            except Exception:
                log.exception("a listener failed on the end of %s", ", ".join(map(str, news)))


class EngineOwner(Protocol):
    """What leads to an engine: the Holdfast of a program, or the engine itself."""

    def __holdfast_engine__(self) -> Engine: ...


def engine_of(store: EngineOwner) -> Engine:
    """The engine of a store, opened and its schema brought up to date on first use."""
    return store.__holdfast_engine__()


class Engine:
    """Open one for each process and store; close it to drain what was submitted."""

    def __init__(
        self,
        url: str,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        threads: Threads | None = None,
    ) -> None:
        self.settings = settings or Settings(url=url)
        self.clock = clock or SystemClock()
        self.randomness = randomness or SystemRandomness()
        self.threads = threads or SystemThreads()
        ports: dict[str, Any] = {
            "randomness": self.randomness,
            "threads": self.threads,
            "settings": self.settings,
        }
        self.database = open_database(url, clock=self.clock, **ports)
        self.file = self.database.file
        try:
            self.database.upgrade()
            secret = self.database.view(lambda tx: tx.read("store_secret"))[0]["value"]
            # The identity of the store, for programs that use several stores.
            self.store = digest("store", secret)
            self.notifier = open_notifier(url, self.database, **ports)
        except BaseException:
            self.database.close()
            raise
        ids = Ids(self.clock, self.randomness)
        new_writer = partial(
            Writer,
            secret=secret.encode(),
            dialect=self.database.dialect,
            ids=ids,
            bounds=Bounds.of(self.settings),
        )
        self._new_writer = new_writer
        standing_claims = StandingClaims()
        self._writer = new_writer(standing_claims=standing_claims, name=self.notifier.name)
        self.commits = GroupCommit(
            self.database,
            self._writer.apply,
            self.threads,
            self.settings,
            self.clock,
            on_commit=self._on_commit,
            on_take=standing_claims.note_room,
        )
        self.reads = SharedReads(self.database, self.threads, self.clock, self.settings.patience)
        self.outcomes = Outcomes(self.database, self.threads)
        self.database.on_gone(self.outcomes.fail_all)
        self._context = EngineContext(
            database=self.database,
            reads=self.reads,
            commits=self.commits,
            ids=ids,
            randomness=self.randomness,
            settings=self.settings,
            secret=secret.encode(),
            caller_transactions=CallerTransactions(self.database, new_writer, secret.encode()),
            standing_claims=standing_claims,
        )
        self._commit_listeners: Listeners[None] = Listeners()
        self._end_listeners: Listeners[str] = Listeners()
        self._attempt_listeners: Listeners[tuple[str, int]] = Listeners()
        self._grant_listeners: Listeners[str] = Listeners()
        wait = VersionWait(threads=self.threads, clock=self.clock, randomness=self.randomness)
        self.tasks = Tasks(self._context, wait)
        self.templated_creation = TemplatedCreation(self._context)
        self.runs = Runs(self._context)
        self.workflows = Workflows(self._context)
        self.work = Work(self._context)
        self.leases = Leases(self._context)
        self.signals = Signals(self._context)
        self.workers = Workers(self._context)
        self.access = AccessTokens(self._context)
        self.browsers = BrowserSessions(self._context)
        self.hooks = Hooks(self._context)
        self.imports = Imports(self._context)
        self.schedules = Schedules(self._context)
        self.removals = Removals(self._context)
        self.recovery = Recovery(
            self._context,
            self.work,
            self.threads,
            clock=self.clock,
            runs=self.runs,
            schedules=self.schedules,
            outcomes=self.outcomes,
            seconds_to_owed_hint=self._writer.seconds_to_owed_hint,
        )

    def start(self) -> Engine:
        """Start the writer and the loops; simulations do not start them, and call their steps."""
        shorten_switch_interval()
        try:
            self.commits.start()
            self.notifier.start()
            self.notifier.subscribe(self.recovery.kick)
            self.notifier.subscribe(self.outcomes.kick, own=False)
            self.recovery.start()
            self.outcomes.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        self.recovery.close()
        self.commits.close()
        self.outcomes.close()
        self.notifier.close()
        self.database.close()

    def join(self, connection: object) -> JoinedTransaction:
        """The facades inside a transaction that is under way on a connection."""
        return join_transaction(self._context, connection)

    def join_group(self, connection: object) -> AbstractContextManager[JoinedTransaction]:
        """The same for a block: its operations are submitted, and written together when it ends."""
        return join_group(self._context, connection)

    def rehearse(self, work: Callable[[DryRun], T]) -> T:
        """Return what `work` returns; its operations are rolled back, and nobody hears of them."""
        return rehearse(self._context, self._new_writer, work)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A write transaction of the application's own on the store, to pass as `connection`."""
        with self.database.begin() as connection:
            yield connection
        self.notifier.notify()

    def on_hint(self, callback: Callable[[], None], *, served: bool = True) -> Callable[[], None]:
        """Call back when something may have become ready or ended; returns a function to stop it.

        With `served` false, commits after which the standing claims were served are left out.
        """
        return self.notifier.subscribe(callback, served=served)

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        """Call back once when the file of the store is gone and its contents have been saved."""
        return self.database.on_gone(callback)

    def on_commit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each commit of this process; returns a function that stops it."""
        return self._commit_listeners.add(lambda _: callback())

    def on_end(self, callback: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call back with the tasks and runs that a commit of this process ended."""
        return self._end_listeners.add(callback)

    def on_attempts_ended(
        self, callback: Callable[[Sequence[tuple[str, int]]], None]
    ) -> Callable[[], None]:
        """Call back with the attempts (task and number) that a commit of this process ended."""
        return self._attempt_listeners.add(callback)

    def on_grant(self, callback: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call back with the tokens that a commit of this process granted or revoked."""
        return self._grant_listeners.add(callback)

    @reading
    def why(
        self,
        task_id: AnyId,
        *,
        agents: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
    ) -> Explanation:
        """Explain, clause by clause, why a task is not claimed, or what it does instead."""
        found = find_task_id(self._context, task_id)
        return explain_task(self.database, found, agents=agents, tags=tags)

    @reading
    def why_run(
        self,
        run_id: AnyId,
        *,
        agents: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
    ) -> RunExplanation:
        """Explain a run: its holds, and each task of it that is not done."""
        found = find_run_id(self._context, run_id)
        return explain_run(self.database, found, agents=agents, tags=tags)

    def __holdfast_engine__(self) -> Engine:
        return self

    def find(self, identifier: AnyId) -> str:
        """The id of the run or task that an id, a record or a key address (`key:…`) means."""
        return find_id(self._context, identifier)

    @reading
    def doctor(self) -> Diagnosis:
        """Check every invariant of the store, as it stands now."""
        return examine_store(self.database)

    def now(self) -> int:
        """The time of the database in microseconds, which decides what is due."""
        return self._context.now()

    def _on_commit(self, _: Sequence[object]) -> None:
        work = self._writer.last_work
        if work is None:
            return
        self._writer.note_commit(work)
        handed, self._writer.hand_over = self._writer.hand_over, []
        hand_over_claimed_tasks(handed)
        if work.wakes or work.notify or not work.claims_served:
            self.notifier.notify(served=work.claims_served)
        self._grant_listeners.notify(work.granted)
        self._commit_listeners.notify((None,))
        self._attempt_listeners.notify(work.attempts_ended)
        self._end_listeners.notify(work.ended)
        if work.ended:
            self.outcomes.look_for_ends(work.ended)
        hooks.log_hook_failures(work.failed_hooks, work.passed_hooks)
