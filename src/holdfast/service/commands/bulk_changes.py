"""Bulk changes: one command for all runs that fit some filters, carried out set by set.

Each set is some runs with few tasks, and waits for nobody for long. What was not reached when the
process ends is simply not done: the same call goes on with it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Literal, cast, get_args

from holdfast.engine.engine import Engine
from holdfast.engine.read.pages import choose_runs_query, read_runs
from holdfast.errors import HoldfastError, InvalidInput, NotFound
from holdfast.ids import Ids
from holdfast.model.filters import RunFilters
from holdfast.model.result import TransitionResult
from holdfast.randomness import SystemRandomness
from holdfast.service.queries.queries import Queries
from holdfast.service.queries.views import View, format_time
from holdfast.store.database import Row

BulkVerb = Literal["cancel", "retry", "pause", "resume"]
VERBS: tuple[BulkVerb, ...] = get_args(BulkVerb)
# What one transaction changes: so many runs, of so many tasks that are not done.
RUNS_AT_ONCE = 50
TASKS_AT_ONCE = 1_000
EXAMPLES = 10
MAX_REFUSALS = 20
# So many changes that are over are kept in memory, for those who ask what became of them.
MAX_KEPT = 100
# So many changes may go on at once in one process.
MAX_UNDER_WAY = 4
_FIELDS_OF_EXAMPLE = ("id", "workflow", "key", "status", "labels", "created_at")

ChangeRun = Callable[[str], "Future[TransitionResult]"]


def choose_runs_of_verb(
    verb: BulkVerb, filters: RunFilters, *, everything: bool = False
) -> RunFilters:
    """The filters of the runs that a verb can change: those that fit, and are in its status.

    A retry is of failed runs, unless the filters say cancelled ones.
    """
    given = {name: value for name, value in filters.items() if value is not None}
    if not given and not everything:
        raise InvalidInput("all", f"say which runs to {verb}: a filter, or all of them")
    known = ("failed", "cancelled") if verb == "retry" else ("running",)
    status = given.get("status", known[0])
    if status not in known:
        raise InvalidInput("status", f"must be {' or '.join(known)} for {verb}, not {status!r}")
    # To resume a run that is not paused would begin it where it is scheduled for later.
    held = {"held": "paused"} if verb == "resume" else {}
    if held and given.get("held", "paused") != "paused":
        raise InvalidInput("held", "must be paused for resume; a budget is raised run by run")
    return cast("RunFilters", {**given, **held, "status": status})


class BulkChange:
    """One command for many runs: how far it has come, and what became of each."""

    def __init__(
        self, engine: Engine, queries: Queries, actor: str, verb: BulkVerb, filters: RunFilters
    ) -> None:
        self._engine = engine
        self._verb = verb
        self._filters = filters
        self._actor = actor
        self._stopped = threading.Event()
        self.id = Ids(engine.clock, SystemRandomness()).bulk_change()
        self.matched: int = queries.run_counts(**filters)["total"]
        self._state = "waiting"
        self._counts = {"changed": 0, "unchanged": 0, "refused": 0}
        self._refusals: list[View] = []
        self._error: str | None = None
        self._started_at = engine.clock.now()
        self._finished_at: int | None = None

    @property
    def is_over(self) -> bool:
        return self._finished_at is not None

    @property
    def refused(self) -> int:
        return self._counts["refused"]

    @property
    def failed(self) -> bool:
        return self._error is not None

    def stop(self) -> None:
        """Have it end after the set that is under way; what it has changed stays changed."""
        self._stopped.set()

    def view(self) -> View:
        told: View = {
            "id": self.id,
            "verb": self._verb,
            "filters": {name: _plain(value) for name, value in self._filters.items()},
            "actor": self._actor,
            "state": self._state,
            "matched": self.matched,
            **self._counts,
            "refusals": self._refusals,
            "started_at": format_time(self._started_at),
        }
        ended = {"finished_at": format_time(self._finished_at)} if self._finished_at else {}
        return told | ended | ({} if self._error is None else {"error": self._error})

    def carry_out(self, heard: Callable[[View], None] = lambda _: None) -> View:
        """Change the runs set by set; `heard` is told how far it has come after each."""
        self._state = "running"
        try:
            for runs in self._sets():
                if self._stopped.is_set():
                    break
                self._change(runs)
                heard(self.view())
            self._state = "stopped" if self._stopped.is_set() else "done"
        except HoldfastError as error:
            self._state, self._error = "failed", str(error)
        finally:
            self._finished_at = self._engine.clock.now()
        return self.view()

    def _change(self, runs: Sequence[str]) -> None:
        change = self._find_change()
        for run, answer in [(run, change(run)) for run in runs]:
            self._note(run, answer.result())

    def _find_change(self) -> ChangeRun:
        runs = self._engine.runs
        operations: dict[BulkVerb, Any] = {
            "cancel": runs.cancel,
            "retry": runs.retry,
            "pause": runs.pause,
            "resume": runs.resume,
        }
        submit = operations[self._verb].submit
        return lambda run: submit(run, actor=self._actor)

    def _note(self, run: str, answer: TransitionResult) -> None:
        if answer.ok or answer.repeated:
            self._counts["unchanged" if answer.repeated else "changed"] += 1
            return
        self._counts["refused"] += 1
        if len(self._refusals) < MAX_REFUSALS:
            self._refusals.append(
                {"id": run, "code": str(answer.reason), "detail": str(answer.detail)}
            )

    def _sets(self) -> Iterator[list[str]]:
        """The runs, from the newest that was there at the beginning to the oldest."""
        after = None
        while True:
            page = self._read_page(after)
            if not page:
                return
            after = page[-1]["id"]
            yield from self._split([row["id"] for row in page])

    def _read_page(self, after: str | None) -> list[Row]:
        query, asked = choose_runs_query(
            lambda: self._started_at, limit=RUNS_AT_ONCE, after=after, **self._filters
        )
        # A run that starts meanwhile is not what was looked at when this was asked.
        asked |= {"called": False, "until": min(asked["until"] or _END, self._started_at + 1)}
        return self._engine.database.view(lambda tx: read_runs(tx, query, asked))

    def _split(self, runs: Sequence[str]) -> Iterator[list[str]]:
        """Sets of runs with no more tasks than one transaction may change, or of one run."""
        rows = self._engine.database.view(lambda tx: tx.read("tasks_not_done", ids=runs))
        tasks = {row["run_id"]: row["tasks"] for row in rows}
        chosen: list[str] = []
        size = 0
        for run in runs:
            size += tasks.get(run, 0)
            if chosen and size > TASKS_AT_ONCE:
                yield chosen
                chosen, size = [], tasks.get(run, 0)
            chosen.append(run)
        yield chosen


_END = 2**62


def _plain(value: Any) -> Any:  # noqa: ANN401 - a filter
    return value if isinstance(value, str | int | dict) else str(value)


class BulkCommands:
    """Commands for all runs that fit some filters, for one actor."""

    def __init__(self, engine: Engine, queries: Queries, actor: str = "user") -> None:
        self._engine = engine
        self._queries = queries
        self._actor = actor

    def preview(self, verb: BulkVerb, filters: RunFilters, *, everything: bool = False) -> View:
        """How many runs a command would change, with the newest of them; nothing is changed."""
        chosen = choose_runs_of_verb(verb, filters, everything=everything)
        matched = self._queries.run_counts(**chosen)["total"]
        newest = self._queries.runs(limit=EXAMPLES, **chosen)["items"]
        examples = [
            {name: each[name] for name in _FIELDS_OF_EXAMPLE if name in each} for each in newest
        ]
        return {"dry_run": True, "verb": verb, "matched": matched, "examples": examples}

    def prepare(
        self, verb: BulkVerb, filters: RunFilters, *, everything: bool = False
    ) -> BulkChange:
        """The command for all runs that fit now; it is yet to be carried out."""
        chosen = choose_runs_of_verb(verb, filters, everything=everything)
        return BulkChange(self._engine, self._queries, self._actor, verb, chosen)


class BulkRegistry:
    """The bulk changes of one server: those under way, and the last of those that are over."""

    def __init__(self) -> None:
        self._changes: OrderedDict[str, BulkChange] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    def add(self, change: BulkChange) -> bool:
        """Keep a change; False where too many go on already, or the server is stopping."""
        with self._lock:
            under_way = [each for each in self._changes.values() if not each.is_over]
            if len(under_way) >= MAX_UNDER_WAY or self._closed:
                return False
            self._changes[change.id] = change
            over = [key for key, each in self._changes.items() if each.is_over]
            for key in over[: len(self._changes) - MAX_KEPT]:
                del self._changes[key]
            return True

    def get(self, identifier: str) -> BulkChange:
        with self._lock:
            found = self._changes.get(identifier)
        if found is None:
            hint = "this server knows the last that were asked of it; the same call goes on"
            raise NotFound(identifier, "bulk change", hint)
        return found

    def list(self) -> list[View]:
        """All of them, the newest first."""
        with self._lock:
            known = [*self._changes.values()]
        return [each.view() for each in reversed(known)]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            known = [*self._changes.values()]
        for each in known:
            each.stop()
