"""The one writer: a group of operations becomes one transaction of set-based statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import inf
from typing import Any, TypeVar

from holdfast.engine import (
    access,
    advance,
    browsers,
    conflicts,
    creation,
    durable,
    hooks,
    importing,
    leases,
    lifecycle,
    limits,
    locks,
    picker,
    pulls,
    removal,
    runs,
    schedules,
    slots,
    workers,
)
from holdfast.engine.access_operations import AccessOperation
from holdfast.engine.browser_operations import BrowserOperation
from holdfast.engine.control import control
from holdfast.engine.durable_operations import (
    Ask,
    RecordEffect,
    SendSignal,
    Spawn,
    Suspend,
    TakeSignal,
)
from holdfast.engine.expect_operations import Expect
from holdfast.engine.facts import Facts
from holdfast.engine.graphs import Graphs
from holdfast.engine.group import Group
from holdfast.engine.hook_operations import RegisterHooks, RemoveHook
from holdfast.engine.lease_operations import AcquireLease, ReleaseLease, RenewLease
from holdfast.engine.limit_operations import LiftLimit
from holdfast.engine.operations import (
    AdvanceRun,
    Claim,
    ClaimById,
    Complete,
    Controlled,
    ControlledRun,
    CreateTasks,
    Fail,
    Import,
    Lose,
    Operation,
    Pull,
    Release,
    Renew,
    StartRun,
    Sweep,
)
from holdfast.engine.removal_operations import Removal
from holdfast.engine.schedule_operations import PutSchedule, SteerSchedule, Tick
from holdfast.engine.taking import Handed, Takers
from holdfast.engine.worker_operations import NoteStop, WorkerOperation
from holdfast.engine.workflow_operations import AddWorkflow
from holdfast.errors import HoldfastError
from holdfast.ids import Ids
from holdfast.model.result import TransitionResult
from holdfast.store.database import Transaction
from holdfast.store.macros import Dialect

O = TypeVar("O")  # noqa: E741 - an operation
LIMITS_AT_ONCE = 1_000
# How often others are told, in seconds, of what this process makes ready and takes at once.
SHOWN_EVERY = 0.05


class Writer:
    """Order matters: reports, control, what follows from them, new work, hooks, and claims last."""

    def __init__(
        self,
        *,
        secret: bytes,
        dialect: Dialect,
        ids: Ids,
        takers: Takers | None = None,
        name: str = "",
    ) -> None:
        self._secret = secret
        self._name = name
        self._takers = takers or Takers()
        self._dialect = dialect
        self._ids = ids
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
            tx=tx, secret=self._secret, ids=self._ids, graphs=self._graphs, facts=self._facts
        )
        group.crowded |= self._crowded
        batch = Batch(operations)
        if self._dialect == "postgresql":
            locks.lock(group, operations)
        arrange(group, batch)
        batch.together(NoteStop, lambda chosen: workers.note_stops(group, chosen))
        batch.together(Renew, lambda chosen: lifecycle.renew(group, chosen))
        batch.together(RecordEffect, lambda chosen: durable.record(group, chosen))
        batch.together(Complete, lambda chosen: lifecycle.complete(group, chosen))
        batch.together(Fail, lambda chosen: lifecycle.fail(group, chosen))
        batch.together(Release, lambda chosen: lifecycle.release(group, chosen))
        batch.together(Ask, lambda chosen: lifecycle.ask(group, chosen))
        batch.together(Suspend, lambda chosen: durable.suspend(group, chosen))
        batch.together(Lose, lambda chosen: lifecycle.lose(group, chosen))
        advance.derive(group)
        batch.each(Expect, lambda operation: conflicts.expect(group, operation))
        batch.each(Controlled, lambda operation: derived(group, control(operation, group)))
        batch.each(ControlledRun, lambda o: derived(group, runs.control_run(group, o)))
        advance.follow(group)
        batch.together(SendSignal, lambda chosen: durable.send(group, chosen))
        batch.each(TakeSignal, lambda operation: durable.take(group, operation))
        durable.wake(group)
        batch.together(AdvanceRun, lambda chosen: advance.advance(group, chosen))
        batch.together(CreateTasks, lambda chosen: creation.create_tasks(group, chosen))
        batch.each(Spawn, lambda operation: durable.spawn(group, operation))
        batch.together(StartRun, lambda chosen: creation.start_runs(group, chosen))
        batch.together(Import, lambda chosen: importing.take_over(group, chosen))
        batch.together(Tick, lambda chosen: schedules.fire(group, chosen))
        conclude(group)
        batch.together(AcquireLease, lambda chosen: leases.acquire_all(group, chosen))
        batch.each(RenewLease, lambda operation: leases.renew(group, operation))
        batch.each(ReleaseLease, lambda operation: leases.release(group, operation))
        batch.each(Removal, lambda operation: removal.remove(group, operation))
        batch.each(Sweep, lambda _: sweep(group))
        # What is steered may have been parked while something else held it, where none was seen.
        steered = bool(batch.of(Controlled)) or bool(batch.of(ControlledRun))
        self._parked = (self._parked or steered) and slots.unpark(group)
        limits.hold(group)
        batch.together(Claim, lambda chosen: picker.claim(group, chosen))
        batch.together(ClaimById, lambda chosen: picker.claim_by_id(group, chosen))
        self.handed = self._takers.serve(group, batch.of(Pull))
        parked = slots.park(group)
        self._parked |= parked > 0
        self._crowded = group.crowded if parked == slots.PARKED_AT_ONCE else set()
        limits.keep(group)
        batch.together(LiftLimit, lambda chosen: limits.lift(group, chosen))
        group.settle()
        # Last of all that another process may be waited for: nothing is locked after it.
        pulls.keep(group)
        self._tell_others(group, swept=bool(batch.of(Sweep)))
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


def arrange(group: Group, batch: Batch) -> None:
    """What stands around the work: schedules, workflows, hooks, workers, tokens."""
    # Before any counter is held: who inserts a name may wait for another process.
    batch.together(PutSchedule, lambda chosen: schedules.put(group, chosen))
    batch.together(AddWorkflow, lambda chosen: creation.add_workflows(group, chosen))
    batch.each(SteerSchedule, lambda operation: schedules.steer(group, operation))
    # Before any counter is locked: hooks come between tasks and counters in every process.
    batch.together(RegisterHooks, lambda chosen: hooks.register(group, chosen))
    batch.each(RemoveHook, lambda operation: hooks.remove(group, operation))
    batch.together(WorkerOperation, lambda chosen: workers.carry_out(group, chosen))
    batch.together(AccessOperation, lambda chosen: access.carry_out(group, chosen))
    batch.together(BrowserOperation, lambda chosen: browsers.carry_out(group, chosen))


def derived(group: Group, reply: TransitionResult) -> TransitionResult:
    """Let an operation's consequences stand before the next, as if it had been written alone."""
    advance.derive(group)
    return reply


def sweep(group: Group) -> None:
    picker.mark_due(group)
    group.change_tasks("lift_limits", count=LIMITS_AT_ONCE)
    limits.look(group)
    slots.sweep(group)
    # Who is held no more may call a workflow, and no claim does that.
    conclude(group)


def conclude(group: Group) -> None:
    """Let all follow from the group's transitions, and from the ends among them what goes there."""
    advance.follow(group)
    schedules.tear_down(group)
    hooks.fire(group)


class Batch:
    """The operations of a group, taken kind by kind, with a reply for each in its own place."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.replies: list[object] = [None] * len(operations)
        self._places: dict[type, list[int]] = {}
        for place, operation in enumerate(operations):
            self._places.setdefault(type(operation), []).append(place)
        self._operations = operations
        # Nearly all that a group is asked for is not in it.
        self._kinds = set(chain.from_iterable(kind.__mro__ for kind in self._places))

    def together(self, kind: type[O], handle: Callable[[list[O]], Sequence[object]]) -> None:
        if places := self._of(kind):
            for place, reply in zip(places, handle(self._at(places)), strict=True):
                self.replies[place] = reply

    def of(self, kind: type[O]) -> list[O]:
        return self._at(self._of(kind))

    def each(self, kind: type[O], handle: Callable[[O], object]) -> None:
        places = self._of(kind)
        operations: list[O] = self._at(places)
        for place, operation in zip(places, operations, strict=True):
            try:
                self.replies[place] = handle(operation)
            except HoldfastError as error:
                self.replies[place] = error

    def _of(self, kind: type) -> list[int]:
        """Where the operations of a kind stand, which may be one of several more special ones."""
        if kind not in self._kinds:
            return []
        found = [places for each, places in self._places.items() if issubclass(each, kind)]
        return found[0] if len(found) == 1 else sorted(chain.from_iterable(found))

    def _at(self, places: Sequence[int]) -> list[Any]:
        return [self._operations[place] for place in places]
