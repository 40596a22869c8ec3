"""Remote store: the store port of a worker elsewhere, which calls a server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NoReturn

from holdfast.clock import Clock, SystemClock
from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.engine.core.operation import HeldTask, Operation
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.input import validation
from holdfast.engine.lines import KeepAside, OpenLine
from holdfast.engine.read.missing_functions import WANTED_AT_ONCE, WantedFunctions
from holdfast.engine.state.durable import RecordEffect
from holdfast.engine.state.reports import Reports
from holdfast.engine.surroundings.workers import AnnounceWorker, ForgetWorker, NoteStop
from holdfast.errors import InvalidInput, ShuttingDown, StoreGone
from holdfast.model.effect import Child, EffectRecord
from holdfast.model.result import TransitionResult
from holdfast.model.retry import positive_microseconds
from holdfast.model.task import Assignment, Renewal
from holdfast.model.text import clean_key, clean_name, encode_json
from holdfast.model.workflow.line import HostLine, OpenedLine
from holdfast.randomness import Randomness, SystemRandomness
from holdfast.settings import Settings
from holdfast.store.database import Row
from holdfast.store.group_commit.entries import Entry, FutureEntry
from holdfast.threads import SystemThreads, Threads
from holdfast.worker.remote import client
from holdfast.worker.remote.client import ServerClient, TokenRefused
from holdfast.worker.remote.end_watch import EndWatch
from holdfast.worker.remote.line_format import unpack_host_line
from holdfast.worker.remote.poller import Poller
from holdfast.worker.remote.sender import OperationSender
from holdfast.worker.store_port import LeasesPort, LiveWorkers


@dataclass(frozen=True, kw_only=True)
class ReportPorts:
    """The ports with which reports are made; only the server knows the store's secret."""

    settings: Settings
    clock: Clock
    threads: Threads
    randomness: Randomness
    secret: bytes = b""

    def now(self) -> int:
        return self.clock.now()


class RemoteReports(Reports):
    def read_token(self, task_id: str, token: str) -> HeldTask:
        """The fence in a token; the server decides whether the token is genuine."""
        number = token.partition(".")[0]
        fence = int(number) if number.isdecimal() else 0
        return {"task_id": validation.task_id(task_id), "fence": fence}


class RemoteWork:
    """The worker's protocol, spoken to a server."""

    def __init__(
        self,
        client: ServerClient,
        sender: OperationSender,
        ports: ReportPorts,
        end_watch: EndWatch,
    ) -> None:
        self._client = client
        self._sender = sender
        self._ports = ports
        self._end_watch = end_watch
        self._pollers: dict[int, Poller] = {}
        self.reports = RemoteReports(ports)

    def standing_claim(  # noqa: PLR0913 - all that a worker says of itself
        self,
        worker: str,
        *,
        agents: Sequence[str],
        tags: Sequence[str],
        room: Callable[[], int],
        passing: Callable[[], tuple[str, ...]],
        deliver: Callable[[Claimed], None],
    ) -> StandingClaim:
        return StandingClaim(
            worker=clean_name("worker", worker),
            agents=validation.agents(agents),
            tags=validation.tags(tags),
            lease=positive_microseconds("lease", self._ports.settings.lease),
            room=room,
            passed=passing,
            deliver=deliver,
        )

    def add_standing_claim(self, standing_claim: StandingClaim) -> Callable[[], None]:
        poller = Poller(
            self._client,
            self._sender,
            standing_claim,
            self._ports.threads,
            on_assigned=self._end_watch.add,
        )
        self._pollers[id(standing_claim)] = poller
        return poller.stop

    @operation
    def pull(self, standing_claim: StandingClaim) -> Future[None]:
        """Do nothing, because the poller asks all the time; a worker that leaves waits for it."""
        done: Future[None] = Future()
        poller = self._pollers[id(standing_claim)]
        if poller.stopping:
            poller.join()
        if poller.refused is not None and not poller.stopping:
            done.set_exception(ShuttingDown(str(poller.refused)))
        else:
            done.set_result(None)
        return done

    @property
    def refused(self) -> TokenRefused | None:
        """The refusal of the worker's token, if there was one."""
        found = (each.refused for each in self._pollers.values())
        return next((each for each in found if each is not None), None)

    def renew_each(self, renewals: Sequence[Renewal]) -> list[Future[TransitionResult]]:
        return self._sender.renew_each(renewals, self._ports.settings.lease)

    def tell(self, report: Entry[Operation], entered: Callable[[], None]) -> None:
        self._sender.enter(report, entered)

    @operation
    def record_effect(
        self,
        task_id: str,
        token: str,
        name: str,
        value: object,
        *,
        beside: int = 0,  # noqa: ARG002 - it is here, and not at the server
    ) -> Future[EffectRecord]:
        asked: FutureEntry[Operation] = FutureEntry(
            RecordEffect(
                **self.reports.read_token(task_id, token),
                name=clean_key("name", name),
                value=encode_json("value", value, limit=self._ports.settings.max_output),
            )
        )
        # Sent like a report, so that a repetition after an error comes after a pause.
        self._sender.enter(asked, lambda: None)
        return asked.future

    @operation
    def open_line(
        self,
        task_id: str,
        token: str,
        base: str | None = None,
        repository: str | None = None,
        host: str | None = None,
    ) -> Future[OpenedLine]:
        said = {"base": base, "repository": repository, "host": host}
        held = self.reports.read_token(task_id, token)
        return self._sender.submit(OpenLine(**held, **said))

    @operation
    def keep_aside(
        self, task_id: str, token: str, attempt: int, base: str, sha: str
    ) -> Future[TransitionResult]:
        held = self.reports.read_token(task_id, token)
        return self._sender.submit(KeepAside(**held, former=attempt, base=base, sha=sha))

    @reading
    def lines_of_host(self, host: str) -> list[HostLine]:
        told = self._client.post("/claims/lines", {"host": host}, items=list)
        return [unpack_host_line(each) for each in told["items"]]

    @reading
    def guard(self, task_id: str, token: str) -> TransitionResult:
        return self._client.transition(f"/claims/{task_id}/guard", {"token": token}, task=dict)

    @reading
    def check_room(self, task_id: str, token: str, name: str, size: int) -> None:
        """Accept every file, because the files of a worker elsewhere are not kept by the store."""

    @reading
    def effects(self, task_id: str) -> dict[str, Any]:
        asked = {"token": self._sender.held.find_newest_token(task_id)}
        known = dict[str, Any]()
        while True:
            told = self._client.post(f"/claims/{task_id}/effects", asked, effects=dict)
            page = dict(told["effects"])
            # A page without new effects ends the loop, so that no server keeps a worker in it.
            if not page.keys() - known.keys() or "next" not in told:
                return known | page
            known |= page
            asked["after"] = str(told["next"])

    @reading
    def needed_around(self, task_id: str) -> dict[str, Any]:
        return dict(self._sender.held.find_prefetch(task_id).needed)

    @reading
    def trace_of(self, root: str) -> str:
        return self._sender.held.find_trace(root)

    @reading
    def workflows_since(self, _: int) -> list[tuple[str, str, int]]:
        """Those whose steps it gets are known by their assignments; of others it hears nothing."""
        return []

    @reading
    def secrets_of(self, workflow: str, version: str) -> frozenset[str]:
        return self._sender.held.secrets(workflow, version)

    @reading
    def attempts_over(self, attempts: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        """Nothing is known of that here: the end watch tells, or else the next renewal."""
        return set(attempts) - self._sender.held.find_held(attempts)

    @reading
    def first_to_run_now(self, /, *_: object, **__: object) -> str | None:
        """A full worker elsewhere has no place more."""
        return None

    @operation
    def claim_by_id(self, task_id: str, *_: Any, **__: Any) -> Future[list[Assignment]]:
        _refuse_unserved(f"{task_id} is claimed by its id")

    @operation
    def take_signal(self, task_id: str, *_: Any, **__: Any) -> Future[EffectRecord]:
        _refuse_unserved(f"{task_id} waits for a signal")

    @operation
    def spawn(self, task_id: str, *_: Any, **__: Any) -> Future[EffectRecord]:
        _refuse_unserved(f"{task_id} makes children")

    @reading
    def children(self, task_id: str, ids: Sequence[str]) -> list[Child]:
        _refuse_unserved(f"{task_id} looks at {len(ids)} children")


def _refuse_unserved(what: str) -> NoReturn:
    reason = f"{what}, and a worker on a server runs commands and HTTP calls alone"
    raise InvalidInput("worker", reason)


class RemoteWorkers:
    """The presence of a worker elsewhere: its requests for work tell the server that it lives."""

    def __init__(self, sender: OperationSender, work: RemoteWork) -> None:
        self._sender = sender
        self._work = work

    @operation
    def register(self, /, *_: Any, process: str | None = None, **__: Any) -> Future[Row | None]:
        self._sender.process = process
        return _make_done_future({"started_at": 0})

    @operation
    def announce(
        self, name: str, started_at: int, pausing: str | None = None, *_: Any
    ) -> Future[Row | None]:
        return self._sender.submit(
            AnnounceWorker(name=name, started_at=started_at, ttl=0, pausing=pausing)
        )

    @operation
    def forget(self, name: str, started_at: int) -> Future[TransitionResult]:
        return self._sender.submit(ForgetWorker(name=name, started_at=started_at))

    @reading
    def list(self) -> LiveWorkers:
        """An empty list: the token of a worker does not show other workers, so names may clash."""
        return []

    @operation
    def note_stop(
        self, task_id: str, token: str, *, ended: int, left: int = 0
    ) -> Future[TransitionResult]:
        held = self._work.reports.read_token(task_id, token)
        return self._sender.submit(NoteStop(**held, ended=ended, left=left))


class RemoteTasks:
    """A worker elsewhere sets no holds: it leaves tasks without a function to others."""

    @operation
    def hold(self, *_: Any, **__: Any) -> Future[TransitionResult]:
        return _make_done_future(TransitionResult(ok=True))

    @reading
    def wanted(self, *, after: str = "", count: int = WANTED_AT_ONCE) -> WantedFunctions:  # noqa: ARG002 - as an engine is asked
        """No missing functions."""
        return WantedFunctions(functions=(), after=after, until=after, following="")

    @operation
    def unhold_known(self, *_: Any, **__: Any) -> Future[list[TransitionResult]]:
        return _make_done_future([])

    @reading
    def lifted(self, *_: Any) -> list[str]:
        """No tasks, because a worker elsewhere sets no holds."""
        return []


class RemoteStore:
    """The store port of a worker elsewhere.

    It has no file and no named leases: only functions use those, and such a worker runs none.
    """

    store = ""
    file = None

    def __init__(self, url: str, token: str, **settings: Any) -> None:
        self.settings = Settings(url=url.rstrip("/"), **settings)
        self.clock = SystemClock()
        self.threads = SystemThreads()
        self.token = token
        self.client = ServerClient(url, token)
        self._sender = OperationSender(self.client, self.clock)
        ports = ReportPorts(
            settings=self.settings,
            clock=self.clock,
            threads=self.threads,
            randomness=SystemRandomness(),
        )
        self._end_watch = EndWatch(self.client, self.threads)
        self.work = RemoteWork(self.client, self._sender, ports, self._end_watch)
        self.workers = RemoteWorkers(self._sender, self.work)
        self.tasks = RemoteTasks()

    def on_hint(self, callback: Callable[[], None], *, served: bool = True) -> Callable[[], None]:
        """Subscribe to nothing: a server sends no hints, and is asked all the time."""
        return lambda: None if served else callback()

    def on_attempts_ended(
        self, callback: Callable[[Sequence[tuple[str, int]]], None]
    ) -> Callable[[], None]:
        """Call back when the server tells of attempts that others have ended."""
        return self._end_watch.subscribe(callback)

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        """Subscribe to nothing: a server that is away is asked again until it is back."""
        del callback
        return lambda: None

    def now(self) -> int:
        return self.clock.now()

    @property
    def leases(self) -> LeasesPort:
        raise InvalidInput("lease", "there is none to be had through a server")

    @property
    def refused(self) -> TokenRefused | None:
        """The refusal of the worker's token, which ends its work."""
        return self.work.refused

    def close(self) -> None:
        self._end_watch.close()
        # Closing the client ends requests whose answers never come to an end.
        hang_up = threading.Timer(client.LONGEST_ANSWER, self.client.close)
        hang_up.daemon = True
        hang_up.start()
        try:
            self._sender.close()
        finally:
            hang_up.cancel()
        self.client.close()


def _make_done_future(value: Any) -> Future[Any]:  # noqa: ANN401 - whatever is known without asking
    done: Future[Any] = Future()
    done.set_result(value)
    return done
