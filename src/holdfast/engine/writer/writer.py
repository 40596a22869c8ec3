"""The one writer: a group of operations becomes one transaction of set-based statements."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from holdfast.engine.claims import picker
from holdfast.engine.claims.standing_claims import Handed, Takers
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
from holdfast.engine.core.run_cache import Facts
from holdfast.engine.core.unit_of_work import Group
from holdfast.engine.core.workflow_cache import Graphs
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
        takers: Takers | None = None,
        name: str = "",
    ) -> None:
        self._secret = secret
        self._name = name
        self._takers = takers or Takers()
        self._dialect = dialect
        self._ids = ids
        self._bounds = bounds
        self._graphs = Graphs()
        self._facts = Facts()
        # Keys with more to park than one group does.
        self._crowded: set[str] = set()
        # Whether tasks may be parked, as far as this process can tell: others' are the sweep's.
        self._parked = True
        self._hinted = -inf
        self._owes = False
        self.last: Group | None = None
        self.handed: Handed = []

    def apply(self, tx: Transaction, operations: Sequence[Operation]) -> list[object]:
        group = Group(
            tx=tx,
            secret=self._secret,
            ids=self._ids,
            graphs=self._graphs,
            facts=self._facts,
            bounds=self._bounds,
        )
        group.crowded |= self._crowded
        batch = Batch(operations)
        if self._dialect == "postgresql":
            locks.lock(group, operations)
        batch.carry_out(group, phases.SURROUNDINGS)
        batch.carry_out(group, phases.REPORTS)
        if batch.only(HANDED_ON):
            group.offer = self._takers.offer()
        advance.derive(group)
        batch.carry_out(group, phases.CONTROL)
        advance.follow(group)
        batch.carry_out(group, phases.SIGNALS)
        durable.wake(group)
        batch.carry_out(group, phases.NEW_WORK)
        phases.conclude(group)
        batch.carry_out(group, phases.KEPT_IN_ORDER)
        # What is steered may have been parked while something else held it, where none was seen.
        steered = batch.has(Controlled, ControlledRun)
        looks = self._parked or steered or group.room
        self._parked = looks and slots.unpark(group)
        usage_limits.hold_limited_tasks(group)
        batch.carry_out(group, phases.CLAIMS)
        self.handed = self._takers.serve(group, batch.of(Pull))
        parked = slots.park(group)
        self._parked |= parked > 0 or group.room
        self._crowded = group.crowded if parked == slots.PARKED_AT_ONCE else set()
        usage_limits.keep(group)
        batch.carry_out(group, phases.LIFTED)
        group.settle()
        # Last of all that another process may be waited for: nothing is locked after it.
        picker.keep(group)
        self._tell_others(group, swept=batch.has(Sweep))
        self.last = group
        return batch.replies

    def note_commit(self, group: Group) -> None:
        """Remember whether others were told of a group, or are to be told later."""
        if group.hinted:
            self._hinted, self._owes = self._ids.clock.monotonic(), False
        elif self._dialect == "postgresql":
            self._owes |= group.wakes

    def owed(self) -> float:
        """In how many seconds others are to hear of what they were not told at once."""
        return self._quiet() if self._owes else inf

    def _tell_others(self, group: Group, *, swept: bool) -> None:
        if self._dialect == "postgresql" and self._is_news(group, swept=swept):
            group.tx.run("send_hint", sender=self._name)
            group.hinted = True

    def _is_news(self, group: Group, *, swept: bool) -> bool:
        """Whether other processes are to hear of a group: each hint wakes every one of them.

        What was ready and is taken is nothing to them, but for those who show how things go on or
        wait for a step: they hear of it a little later, with the next hint or a sweep.
        """
        if group.tells or group.unsure or group.ready:
            return True
        return (group.wakes or (swept and self._owes)) and self._quiet() <= 0

    def _quiet(self) -> float:
        return self._hinted + SHOWN_EVERY - self._ids.clock.monotonic()
