"""One group of operations under way: its transaction, and what its statements did so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.engine.core.kept_totals import Bounds
from holdfast.engine.core.run_cache import RunCache
from holdfast.engine.core.workflow_cache import WorkflowCache
from holdfast.ids import Ids
from holdfast.model.status import TERMINAL, Hold
from holdfast.store.database import Contended, Row, Transaction
from holdfast.store.sql_text.queries import Rows


@dataclass(kw_only=True, eq=False)
class DirectStartRoom:
    """The room that a worker of this process has for what the reports of a group make ready."""

    worker: str
    agent: str
    tags: str
    lease: int
    room: int
    started: list[Row] = field(default_factory=list)


@dataclass(kw_only=True)
class UnitOfWork:
    """Collects what follows from the rows that changed, so that no handler has to remember it."""

    tx: Transaction
    secret: bytes = field(repr=False)
    ids: Ids
    workflow_cache: WorkflowCache
    run_cache: RunCache
    bounds: Bounds
    done: list[str] = field(default_factory=list)
    # What those gave that are done by a report, but for verifiers: for them others speak as well.
    given: dict[str, Row] = field(default_factory=dict)
    runs_with_failure: set[str] = field(default_factory=set)
    runs_to_settle: set[str] = field(default_factory=set)
    freed: Counter[str] = field(default_factory=Counter)
    slots: set[str] = field(default_factory=set)
    keys_to_withdraw: set[str] = field(default_factory=set)
    # Whether there is room under a key that tasks may wait for, and nobody has looked for them.
    may_readmit_tasks: bool = False
    ended: list[str] = field(default_factory=list)
    scheduled_runs_ended: list[str] = field(default_factory=list)
    groups_to_settle: set[str] = field(default_factory=set)
    runs_with_usage: set[str] = field(default_factory=set)
    awaited: set[tuple[str, str, str]] = field(default_factory=set)
    to_evaluate: list[str] = field(default_factory=list)
    callers_to_abandon: set[str] = field(default_factory=set)
    called_runs_ended: set[str] = field(default_factory=set)
    # Agents that have reached a usage limit, when that lifts, and which task told so.
    limits: list[tuple[str, int, str]] = field(default_factory=list)
    attempts_ended: list[tuple[str, int]] = field(default_factory=list)
    ends: list[Row] = field(default_factory=list)
    failed_hooks: list[Row] = field(default_factory=list)
    passed_hooks: list[Row] = field(default_factory=list)
    # Who takes at once what the reports make ready.
    direct_start: DirectStartRoom | None = None
    # What was claimed for requests that may be made again.
    claims_by_request: dict[str, str] = field(default_factory=dict)
    # The tokens of the server that were granted or revoked.
    granted: list[str] = field(default_factory=list)
    # Whether there are usage limits to forget.
    lifted: bool = False
    # How many rows inserts have made, as far as that has not been asked, and how many they must.
    unsettled: list[tuple[Callable[[], int], int]] = field(default_factory=list)
    # Whether something became ready, and what of it this group has given to nobody so far.
    wakes: bool = False
    ready: set[str] = field(default_factory=set)
    # Whether more may be ready than the statements of this group said.
    maybe_ready: bool = False
    notify: bool = False
    # Whether other processes are told of it.
    notified: bool = False
    claims_served: bool = False

    def change_tasks(
        self, query: str, *, rows: Rows | None = None, **parameters: object
    ) -> list[Row]:
        changed = self.tx.change(query, rows=rows, **parameters)
        note_start = self.run_cache.note_start
        for row in changed:
            status = row["status"]
            if status == "running":
                self.ready.discard(row["entity"])
                if row["run_id"] is not None:
                    note_start(row["entity"], row["run_id"])
            elif row["previous"] == "running":
                self._observe_stop(row)
            if row.get("calls") is not None:
                self.callers_to_abandon.add(row["entity"])
                self.to_evaluate.append(row["entity"])
            if status == "queued":
                self.wakes = True
                self.ready.add(row["entity"])
            elif status in TERMINAL:
                self._observe_terminal(row)
        return changed

    def wake(self) -> None:
        """Note that there may be ready tasks, whichever they are."""
        self.wakes = self.maybe_ready = True

    def insert(self, query: str, rows: Rows, *, keyed: bool) -> None:
        """Make new rows; where a key could have kept one out, go on only when all are there."""
        made = self.tx.insert(query, rows=rows)
        self.unsettled.append((made, len(rows)))
        if keyed:
            self.settle()

    def settle(self) -> None:
        """Begin again unless all was inserted that should be."""
        unsettled, self.unsettled = self.unsettled, []
        if any(made() != wanted for made, wanted in unsettled):
            message = "a key was taken by another process"
            raise Contended(message)

    def change_runs(
        self, query: str, *, rows: Rows | None = None, **parameters: object
    ) -> list[Row]:
        changed = self.tx.change(query, rows=rows, **parameters)
        for row in changed:
            if row["status"] != "running":
                self.notify = True
                self.ended.append(row["entity"])
                if row.get("scheduled", True):
                    self.scheduled_runs_ended.append(row["entity"])
                self._observe_end(row)
                if row.get("parent_id") is not None:
                    # What it has used may be the last that those above it had.
                    self.called_runs_ended.add(row["entity"])
                else:
                    self.run_cache.forget(row["entity"])
                    self.runs_with_usage.discard(row["entity"])
                if row["concurrency_key"] and not row["holds"] & Hold.SLOT:
                    self.freed[row["concurrency_key"]] += 1
        return changed

    def _observe_terminal(self, row: Row) -> None:
        run_id = row["run_id"]
        self.ended.append(row["entity"])
        if row.get("parent_id") is not None:
            self.groups_to_settle.add(row["parent_id"])
        if run_id is None:
            self.notify = True
            self._observe_end(row)
        else:
            self.runs_to_settle.add(run_id)
        if row["status"] == "done":
            self.done.append(row["entity"])
        elif run_id is not None:
            self.runs_with_failure.add(run_id)

    def _observe_end(self, row: Row) -> None:
        """Remember an end for the hooks; the statements that end most say when there are none."""
        if row.get("hooked", True):
            self.ends.append(row)

    def _observe_stop(self, row: Row) -> None:
        self.attempts_ended.append((row["entity"], row["attempt"]))
        self.run_cache.note_stop(row["entity"])
        # Its worker, which may be in another process, is to hear of a cancel at once.
        self.notify |= row["status"] == "cancelled"
        if row["concurrency_key"]:
            self.freed[row["concurrency_key"]] += 1
        # What is failing ends with the last task of it that runs, however that one ends.
        if row["run_id"] is not None:
            self.runs_to_settle.add(row["run_id"])
            self.runs_with_usage.add(row["run_id"])
        elif row.get("parent_id") is not None:
            self.groups_to_settle.add(row["parent_id"])
