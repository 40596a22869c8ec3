"""The unit of work: one group of operations under way, and the lists of what follows from it.

Each list holds what is still to be done. The code that does it empties the list, and may fill
this list or another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from holdfast.engine.core.effect_limits import Bounds
from holdfast.engine.core.run_cache import RunCache
from holdfast.engine.core.workflow_cache import WorkflowCache
from holdfast.ids import Ids
from holdfast.model.status import TERMINAL, Hold
from holdfast.store.database import Row, Transaction
from holdfast.store.sql_text.queries import Rows

# A run on one of these holds does not have the slot of its key yet.
WITHOUT_SLOT = Hold.SLOT | Hold.SCHEDULED


@dataclass(kw_only=True, eq=False)
class DirectStartRoom:
    """Room of one standing claim for tasks that the reports of a group make ready."""

    worker: str
    agent: str
    tags: str
    lease: int
    room: int
    # The rows of the tasks that were started directly.
    started: list[Row] = field(default_factory=list)


@dataclass(kw_only=True)
class UnitOfWork:
    """One transaction, and the consequences of the rows that its statements changed.

    Handlers change the status of rows only through `change_tasks` and `change_runs`, which note
    the consequences. So no handler has to remember them.
    """

    # What all groups share:

    # The transaction of the group.
    tx: Transaction
    # The secret of the store, with which the tokens of attempts are made.
    secret: bytes = field(repr=False)
    # New ids of tasks and runs.
    ids: Ids
    # Graphs of workflow versions, which never change.
    workflow_cache: WorkflowCache
    # Facts of runs that never change, and the run of each task that this process started.
    run_cache: RunCache
    # How much one attempt, and one run or lone task, may keep.
    bounds: Bounds

    # Lists that advance empties:

    # Tasks that were done: what needs them is unblocked or started directly.
    done: list[str] = field(default_factory=list)
    # Runs with a failed or cancelled task: marked as failing.
    runs_with_failure: set[str] = field(default_factory=set)
    # Groups, plans and waiting parents that may have ended: settled or woken.
    groups_to_settle: set[str] = field(default_factory=set)
    # Tasks with a condition, a list or a called workflow that have what they need: evaluated.
    to_evaluate: list[str] = field(default_factory=list)
    # Tasks that wait for a called run no longer: their called runs are cancelled.
    callers_to_abandon: set[str] = field(default_factory=set)
    # Called runs that ended: their calling tasks end with their results.
    called_runs_ended: set[str] = field(default_factory=set)
    # Runs that may have ended, because a task of theirs ended or stopped.
    runs_to_settle: set[str] = field(default_factory=set)
    # Runs that used some of their budget: held when they have reached it.
    runs_with_usage: set[str] = field(default_factory=set)
    # Concurrency keys, with the number of slots that came back to each.
    freed: Counter[str] = field(default_factory=Counter)

    # Lists that a later phase uses:

    # Waits that a signal may end (the wait, its target and the name of the signal).
    awaited: set[tuple[str, str, str]] = field(default_factory=set)
    # Ended runs that may have schedules: these are removed.
    scheduled_runs_ended: list[str] = field(default_factory=list)
    # Rows of ended runs and of ended tasks without a run: hooks are fired for them.
    ends: list[Row] = field(default_factory=list)
    # Whether the store has hooks; None if no statement has told.
    has_hooks: bool | None = None
    # Whether a key that tasks may wait for got room: withdrawn tasks are readmitted.
    may_readmit_tasks: bool = False
    # Keys under which tasks became ready or were claimed: tasks without room are withdrawn.
    keys_to_withdraw: set[str] = field(default_factory=set)
    # Agents that reached a usage limit, when the limit lifts, and the task that reported it.
    limits: list[tuple[str, int, str]] = field(default_factory=list)
    # Whether usage limits have ended: they are forgotten.
    lifted: bool = False
    # Claims of requests that may be repeated, as JSON by request: kept with the claim.
    claims_by_request: dict[str, str] = field(default_factory=dict)

    # What claims go by:

    # Outputs that reports of this group gave, by task; a claim need not read these. Verifiers are
    # left out, because a task that needs a verifier is given the verified output as well.
    given: dict[str, Row] = field(default_factory=dict)
    # Concurrency keys whose counters this transaction has locked.
    slots: set[str] = field(default_factory=set)
    # Tasks that became ready and that no claim of this group has taken.
    ready: set[str] = field(default_factory=set)
    # Whether more tasks may be ready than `ready` names.
    maybe_ready: bool = False
    # The room of one standing claim for tasks that reports of this group make ready.
    direct_start: DirectStartRoom | None = None

    # What is told after the commit:

    # Tasks and runs that ended: told to those who wait for ends.
    ended: list[str] = field(default_factory=list)
    # Attempts that are over (task and number): told to workers, which stop them.
    attempts_ended: list[tuple[str, int]] = field(default_factory=list)
    # Access tokens that were granted or revoked: told to servers, which keep tokens in memory.
    granted: list[str] = field(default_factory=list)
    # Hooks that failed for good: logged.
    failed_hooks: list[Row] = field(default_factory=list)
    # Hooks whose work could not be read: logged.
    passed_hooks: list[Row] = field(default_factory=list)
    # Whether something became ready: other processes hear of it with the next hint.
    wakes: bool = False
    # Whether other processes must hear of this group at once.
    notify: bool = False
    # Whether this transaction sends a hint to other processes.
    notified: bool = False
    # Whether the standing claims of this process were served in this group.
    claims_served: bool = False

    def change_tasks(
        self, query: str, *, rows: Rows | None = None, **parameters: object
    ) -> list[Row]:
        """Carry out a statement that changes the status of tasks, and note what follows from it."""
        changed = self.tx.change(query, rows=rows, **parameters)
        note_start = self.run_cache.note_start
        for row in changed:
            status = row["status"]
            if status == "running":
                self.ready.discard(row["entity"])
                if "needed" in row:
                    note_start(row)
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
        """Note that tasks may be ready whose ids are not known."""
        self.wakes = self.maybe_ready = True

    def change_runs(
        self, query: str, *, rows: Rows | None = None, **parameters: object
    ) -> list[Row]:
        """Carry out a statement that changes the status of runs, and note what follows from it."""
        changed = self.tx.change(query, rows=rows, **parameters)
        for row in changed:
            if row["status"] != "running":
                self.notify = True
                self.ended.append(row["entity"])
                if row.get("scheduled", True):
                    self.scheduled_runs_ended.append(row["entity"])
                self._observe_end(row)
                if row.get("parent_id") is not None:
                    # The usage of a called run counts for the runs that called it: it stays noted.
                    self.called_runs_ended.add(row["entity"])
                else:
                    self.run_cache.forget(row["entity"])
                    self.runs_with_usage.discard(row["entity"])
                if row["concurrency_key"] and not row["holds"] & WITHOUT_SLOT:
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
        """Note an end for the hooks, unless the statement says that the store has no hooks."""
        self.has_hooks = row.get("hooked", self.has_hooks)
        if row.get("hooked", True):
            self.ends.append(row)

    def _observe_stop(self, row: Row) -> None:
        self.attempts_ended.append((row["entity"], row["attempt"]))
        self.run_cache.note_stop(row["entity"])
        # The worker of a cancelled task may be in another process, and must hear of it at once.
        self.notify |= row["status"] == "cancelled"
        if row["concurrency_key"]:
            self.freed[row["concurrency_key"]] += 1
        # A failing run ends when the last of its running tasks stops, in whatever status.
        if row["run_id"] is not None:
            self.runs_to_settle.add(row["run_id"])
            self.runs_with_usage.add(row["run_id"])
        elif row.get("parent_id") is not None:
            self.groups_to_settle.add(row["parent_id"])
