"""The one writer: a group of operations becomes one transaction of set-based statements."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from holdfast.engine.claims import picker
from holdfast.engine.claims.standing_claims import HandOver, StandingClaims
from holdfast.engine.core.batch import Batch
from holdfast.engine.core.kept_totals import Bounds
from holdfast.engine.core.operation import (
    Complete,
    Controlled,
    ControlledRun,
    Operation,
    Pull,
    Sweep,
)
from holdfast.engine.core.run_cache import RunCache
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.core.workflow_cache import WorkflowCache
from holdfast.engine.state import advance, durable, slots, usage_limits
from holdfast.engine.writer import locks, phases
from holdfast.ids import Ids
from holdfast.store.database import Transaction
from holdfast.store.sql_text.macros import Dialect

# Beside anything else it is not known, when reports are written, who is to be started first.
HANDED_ON = frozenset({Complete, Pull})
# How often others are told, in seconds, of what this process makes ready and takes at once.
SHOWN_EVERY = 0.05


class Writer:
    """Order matters: reports, control, what follows from them, new work, hooks, and claims last."""

    def __init__(  # noqa: PLR0913 - what all groups have in common
        self,
        *,
        secret: bytes,
        dialect: Dialect,
        ids: Ids,
        bounds: Bounds,
        standing_claims: StandingClaims | None = None,
        name: str = "",
    ) -> None:
        self._secret = secret
        self._name = name
        self._standing_claims = standing_claims or StandingClaims()
        self._dialect = dialect
        self._ids = ids
        self._bounds = bounds
        self._workflow_cache = WorkflowCache()
        self._run_cache = RunCache()
        # Keys with more to park than one group does.
        self._crowded: set[str] = set()
        # Whether tasks may be parked, as far as this process can tell: others' are the sweep's.
        self._parked = True
        self._hinted = -inf
        self._owes = False
        self.last: UnitOfWork | None = None
        self.handed: HandOver = []

    def apply(self, tx: Transaction, operations: Sequence[Operation]) -> list[object]:
        work = UnitOfWork(
            tx=tx,
            secret=self._secret,
            ids=self._ids,
            workflow_cache=self._workflow_cache,
            run_cache=self._run_cache,
            bounds=self._bounds,
        )
        work.keys_to_withdraw |= self._crowded
        batch = Batch(operations)
        if self._dialect == "postgresql":
            locks.lock(work, operations)
        batch.carry_out(work, phases.SURROUNDINGS)
        batch.carry_out(work, phases.REPORTS)
        if batch.only(HANDED_ON):
            work.direct_start = self._standing_claims.choose_direct_start()
        advance.advance_to_fixpoint(work)
        batch.carry_out(work, phases.CONTROL)
        advance.advance_and_free_slots(work)
        batch.carry_out(work, phases.SIGNALS)
        durable.wake_for_signals(work)
        batch.carry_out(work, phases.NEW_WORK)
        phases.conclude(work)
        batch.carry_out(work, phases.KEPT_IN_ORDER)
        # What is steered may have been parked while something else held it, where none was seen.
        steered = batch.has(Controlled, ControlledRun)
        looks = self._parked or steered or work.may_readmit_tasks
        self._parked = looks and slots.readmit_tasks(work)
        usage_limits.hold_limited_tasks(work)
        batch.carry_out(work, phases.CLAIMS)
        self.handed = self._standing_claims.serve(work, batch.of(Pull))
        parked = slots.withdraw_tasks(work)
        self._parked |= parked > 0 or work.may_readmit_tasks
        self._crowded = work.keys_to_withdraw if parked == slots.WITHDRAWN_AT_ONCE else set()
        usage_limits.write_limits(work)
        batch.carry_out(work, phases.LIFTED)
        work.settle()
        # Last of all that another process may be waited for: nothing is locked after it.
        picker.keep(work)
        self._tell_others(work, swept=batch.has(Sweep))
        self.last = work
        return batch.replies

    def note_commit(self, work: UnitOfWork) -> None:
        """Remember whether others were told of a group, or are to be told later."""
        if work.notified:
            self._hinted, self._owes = self._ids.clock.monotonic(), False
        elif self._dialect == "postgresql":
            self._owes |= work.wakes

    def owed(self) -> float:
        """In how many seconds others are to hear of what they were not told at once."""
        return self._quiet() if self._owes else inf

    def _tell_others(self, work: UnitOfWork, *, swept: bool) -> None:
        if self._dialect == "postgresql" and self._is_news(work, swept=swept):
            work.tx.run("send_hint", sender=self._name)
            work.notified = True

    def _is_news(self, work: UnitOfWork, *, swept: bool) -> bool:
        """Whether other processes are to hear of a group: each hint wakes every one of them.

        What was ready and is taken is nothing to them, but for those who show how things go on or
        wait for a step: they hear of it a little later, with the next hint or a sweep.
        """
        if work.notify or work.maybe_ready or work.ready:
            return True
        return (work.wakes or (swept and self._owes)) and self._quiet() <= 0

    def _quiet(self) -> float:
        return self._hinted + SHOWN_EVERY - self._ids.clock.monotonic()
