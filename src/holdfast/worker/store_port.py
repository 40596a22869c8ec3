"""Store port: what a worker needs of its store, which is an engine here or a server elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from holdfast.clock import Clock
from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.engine.core.operation import Operation
from holdfast.engine.core.sync_async import BoundOperation, BoundRead
from holdfast.engine.read.missing_functions import WantedFunctions
from holdfast.engine.state.reports import Reports
from holdfast.errors import StoreGone
from holdfast.model.effect import Child, EffectRecord
from holdfast.model.result import TransitionResult
from holdfast.model.task import Assignment, NamedLease, Renewal
from holdfast.model.worker import LiveWorker
from holdfast.model.workflow.line import HostLine, OpenedLine
from holdfast.settings import Settings
from holdfast.store.database import Row
from holdfast.store.group_commit.entries import Entry
from holdfast.threads import Threads

AttemptKeys = Collection[tuple[str, int]]
LiveWorkers = list[LiveWorker]


class WorkPort(Protocol):
    """Claims, leases, reports and the durable operations of attempts."""

    @property
    def reports(self) -> Reports: ...
    @property
    def pull(self) -> BoundOperation[[StandingClaim], None]: ...
    @property
    def claim_by_id(self) -> BoundOperation[..., list[Assignment]]: ...
    @property
    def open_line(self) -> BoundOperation[..., OpenedLine]: ...
    @property
    def keep_aside(self) -> BoundOperation[..., TransitionResult]: ...
    @property
    def lines_of_host(self) -> BoundRead[[str], list[HostLine]]: ...
    @property
    def record_effect(self) -> BoundOperation[..., EffectRecord]: ...
    @property
    def take_signal(self) -> BoundOperation[..., EffectRecord]: ...
    @property
    def spawn(self) -> BoundOperation[..., EffectRecord]: ...
    @property
    def guard(self) -> BoundRead[[str, str], TransitionResult]: ...
    @property
    def check_room(self) -> BoundRead[[str, str, str, int], None]: ...
    @property
    def effects(self) -> BoundRead[[str], dict[str, Any]]: ...
    @property
    def children(self) -> BoundRead[[str, Sequence[str]], list[Child]]: ...
    @property
    def needed_around(self) -> BoundRead[[str], dict[str, Any]]: ...
    @property
    def workflows_since(self) -> BoundRead[[int], list[tuple[str, str, int]]]: ...
    @property
    def secrets_of(self) -> BoundRead[[str, str], frozenset[str]]: ...
    @property
    def attempts_over(self) -> BoundRead[[AttemptKeys], set[tuple[str, int]]]: ...
    @property
    def trace_of(self) -> BoundRead[[str], str]: ...
    @property
    def first_to_run_now(self) -> BoundRead[..., str | None]: ...

    def renew_each(self, renewals: Sequence[Renewal]) -> list[Future[TransitionResult]]: ...

    def add_standing_claim(self, standing_claim: StandingClaim) -> Callable[[], None]: ...

    def tell(self, report: Entry[Operation], entered: Callable[[], None]) -> None: ...

    def standing_claim(  # noqa: PLR0913 - all that a worker says of itself
        self,
        worker: str,
        *,
        agents: Sequence[str],
        tags: Sequence[str],
        room: Callable[[], int],
        passing: Callable[[], tuple[str, ...]],
        deliver: Callable[[Claimed], None],
    ) -> StandingClaim: ...


class WorkersPort(Protocol):
    """The registration of a worker among those that live."""

    @property
    def register(self) -> BoundOperation[..., Row | None]: ...
    @property
    def announce(self) -> BoundOperation[..., Row | None]: ...
    @property
    def forget(self) -> BoundOperation[..., TransitionResult]: ...
    @property
    def note_stop(self) -> BoundOperation[..., TransitionResult]: ...
    @property
    def list(self) -> BoundRead[[], LiveWorkers]: ...


class TasksPort(Protocol):
    """The hold `version` of tasks that a worker has no function for."""

    @property
    def hold(self) -> BoundOperation[..., TransitionResult]: ...
    @property
    def wanted(self) -> BoundRead[..., WantedFunctions]: ...
    @property
    def unhold_known(self) -> BoundOperation[..., list[TransitionResult]]: ...
    @property
    def lifted(self) -> BoundRead[..., list[str]]: ...


class LeasesPort(Protocol):
    """The named leases that steps take."""

    @property
    def acquire(self) -> BoundOperation[..., NamedLease | None]: ...
    @property
    def release(self) -> BoundOperation[..., TransitionResult]: ...


class StorePort(Protocol):
    """A store as a worker sees it."""

    @property
    def store(self) -> str:
        """The identity of the store."""

    @property
    def file(self) -> Path | None:
        """The file of a store in which an open transaction keeps all others from writing."""

    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def threads(self) -> Threads: ...
    @property
    def work(self) -> WorkPort: ...
    @property
    def workers(self) -> WorkersPort: ...
    @property
    def tasks(self) -> TasksPort: ...
    @property
    def leases(self) -> LeasesPort: ...

    def on_hint(
        self, callback: Callable[[], None], *, served: bool = True
    ) -> Callable[[], None]: ...

    def on_attempts_ended(
        self, callback: Callable[[Sequence[tuple[str, int]]], None]
    ) -> Callable[[], None]: ...

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]: ...

    def now(self) -> int: ...
