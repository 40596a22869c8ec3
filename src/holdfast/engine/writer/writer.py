"""The one writer: each group of operations becomes one transaction of set-based statements."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from holdfast.engine.claims import claim_requests
from holdfast.engine.claims.standing_claims import HandOver, StandingClaims
from holdfast.engine.core.batch import OperationBatch
from holdfast.engine.core.effect_limits import Bounds
from holdfast.engine.core.operation import (
    Complete,
    ControlledRun,
    ControlledTask,
    Operation,
    Pull,
    Sweep,
)
from holdfast.engine.core.run_cache import RunCache
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.core.workflow_cache import WorkflowCache
from holdfast.engine.state import advance, durable, slots, usage_limits
from holdfast.engine.writer import expected_statements, locks, phases
from holdfast.ids import Ids
from holdfast.store.database import Transaction
from holdfast.store.sql_text.macros import Dialect

# Only a group of these kinds starts tasks directly: any other operation could make a task ready
# that has to be started first.
DIRECT_START_KINDS = frozenset({Complete, Pull})
# The seconds between hints to other processes about tasks that this process took at once.
HINT_INTERVAL = 0.05


class Writer:
    """Carries out the phases of each group; their order decides what each can rely on."""

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
        # Keys under which more tasks are to be withdrawn than one group withdraws.
        self._keys_to_withdraw: set[str] = set()
        # Whether this process may have withdrawn tasks; tasks that others withdrew are readmitted
        # by the sweep.
        self._may_have_withdrawn_tasks = True
        # Whether the store had hooks when something last ended.
        self._fires_hooks = False
        self._hinted_at = -inf
        self._owes_hint = False
        self.last_work: UnitOfWork | None = None
        self.hand_over: HandOver = []

    def apply(self, tx: Transaction, operations: Sequence[Operation]) -> list[object]:
        """Carry out the operations of a group in a transaction; returns a reply for each."""
        work = UnitOfWork(
            tx=tx,
            secret=self._secret,
            ids=self._ids,
            workflow_cache=self._workflow_cache,
            run_cache=self._run_cache,
            bounds=self._bounds,
        )
        work.keys_to_withdraw |= self._keys_to_withdraw
        batch = OperationBatch(operations)
        if self._dialect == "postgresql":
            locks.lock_rows(work, operations)
        if batch.has_only(DIRECT_START_KINDS):
            work.direct_start = self._standing_claims.choose_direct_start()
            expected_statements.send_ahead(
                work,
                batch.operations_of(Complete),
                self._standing_claims,
                fires_hooks=self._fires_hooks,
            )
        batch.carry_out(work, phases.SURROUNDINGS)
        batch.carry_out(work, phases.REPORTS)
        advance.advance_to_fixpoint(work)
        batch.carry_out(work, phases.CONTROL)
        advance.advance_and_free_slots(work)
        batch.carry_out(work, phases.SIGNALS)
        durable.wake_for_signals(work)
        batch.carry_out(work, phases.NEW_WORK)
        phases.advance_and_handle_ends(work)
        batch.carry_out(work, phases.LEASES_REMOVAL_SWEEP)
        # A controlled task may have been withdrawn by another process while it was held.
        steered = batch.has_any_of(ControlledTask, ControlledRun)
        readmits = self._may_have_withdrawn_tasks or steered or work.may_readmit_tasks
        self._may_have_withdrawn_tasks = readmits and slots.readmit_tasks(work)
        usage_limits.hold_limited_tasks(work)
        batch.carry_out(work, phases.CLAIMS)
        self.hand_over = self._standing_claims.serve(work, batch.operations_of(Pull))
        withdrawn = slots.withdraw_tasks(work)
        self._may_have_withdrawn_tasks |= withdrawn > 0 or work.may_readmit_tasks
        self._keys_to_withdraw = (
            work.keys_to_withdraw if withdrawn == slots.WITHDRAWN_AT_ONCE else set()
        )
        self._fires_hooks = self._fires_hooks if work.has_hooks is None else work.has_hooks
        usage_limits.write_limits(work)
        batch.carry_out(work, phases.LIMIT_LIFTS)
        # The last statement that may wait for another process: nothing is locked after it.
        claim_requests.keep_claim_requests(work)
        self._send_hint_if_needed(work, swept=batch.has_any_of(Sweep))
        self.last_work = work
        return batch.replies

    def note_commit(self, work: UnitOfWork) -> None:
        """Note whether a committed group sent a hint to other processes, or owes them one."""
        if work.notified:
            self._hinted_at, self._owes_hint = self._ids.clock.monotonic(), False
        elif self._dialect == "postgresql":
            self._owes_hint |= work.wakes

    def seconds_to_owed_hint(self) -> float:
        """The seconds until other processes must be sent a hint; infinite if none is owed."""
        return self._seconds_to_next_hint() if self._owes_hint else inf

    def _send_hint_if_needed(self, work: UnitOfWork, *, swept: bool) -> None:
        if self._dialect == "postgresql" and self._needs_hint(work, swept=swept):
            work.tx.run("send_hint", sender=self._name)
            work.notified = True

    def _needs_hint(self, work: UnitOfWork, *, swept: bool) -> bool:
        """Whether other processes must hear of a group now; each hint wakes all of them.

        Tasks that became ready and were claimed in the group concern only processes that show
        progress or wait for a step: these hear of them a little later, by the next hint or sweep.
        """
        if work.notify or work.maybe_ready or work.ready:
            return True
        return (work.wakes or (swept and self._owes_hint)) and self._seconds_to_next_hint() <= 0

    def _seconds_to_next_hint(self) -> float:
        return self._hinted_at + HINT_INTERVAL - self._ids.clock.monotonic()
