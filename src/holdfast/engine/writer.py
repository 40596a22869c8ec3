"""The one writer: a group of operations becomes one transaction of set-based statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.engine import (
    advance,
    creation,
    durable,
    hooks,
    leases,
    lifecycle,
    locks,
    picker,
    runs,
    slots,
)
from holdfast.engine.control import control
from holdfast.engine.durable_operations import (
    Ask,
    RecordEffect,
    SendSignal,
    Spawn,
    Suspend,
    TakeSignal,
)
from holdfast.engine.graphs import Graphs
from holdfast.engine.group import Group
from holdfast.engine.operations import (
    AcquireLease,
    AdvanceRun,
    Claim,
    ClaimById,
    Complete,
    Controlled,
    ControlledRun,
    CreateTasks,
    Fail,
    Lose,
    Operation,
    RegisterHooks,
    Release,
    ReleaseLease,
    RemoveHook,
    Renew,
    RenewLease,
    StartRun,
    Sweep,
)
from holdfast.errors import HoldfastError
from holdfast.ids import Ids
from holdfast.model.result import TransitionResult
from holdfast.store.database import Transaction
from holdfast.store.macros import Dialect

O = TypeVar("O")  # noqa: E741 - an operation
LIMITS_AT_ONCE = 1_000


class Writer:
    """Order matters: reports, control, what follows from them, new work, hooks, and claims last."""

    def __init__(self, *, secret: bytes, dialect: Dialect, ids: Ids) -> None:
        self._secret = secret
        self._dialect = dialect
        self._ids = ids
        self._graphs = Graphs()
        self.last: Group | None = None

    def apply(self, tx: Transaction, operations: Sequence[Operation]) -> list[object]:
        group = Group(tx=tx, secret=self._secret, ids=self._ids, graphs=self._graphs)
        batch = Batch(operations)
        if self._dialect == "postgresql":
            locks.lock(group, operations)
        # Before any counter is locked: hooks come between tasks and counters in every process.
        batch.together(RegisterHooks, lambda chosen: hooks.register(group, chosen))
        batch.each(RemoveHook, lambda operation: hooks.remove(group, operation))
        batch.together(Renew, lambda chosen: lifecycle.renew(group, chosen))
        batch.together(RecordEffect, lambda chosen: durable.record(group, chosen))
        batch.together(Complete, lambda chosen: lifecycle.complete(group, chosen))
        batch.together(Fail, lambda chosen: lifecycle.fail(group, chosen))
        batch.together(Release, lambda chosen: lifecycle.release(group, chosen))
        batch.together(Ask, lambda chosen: lifecycle.ask(group, chosen))
        batch.together(Suspend, lambda chosen: durable.suspend(group, chosen))
        batch.together(Lose, lambda chosen: lifecycle.lose(group, chosen))
        advance.derive(group)
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
        advance.derive(group)
        hooks.fire(group)
        batch.together(AcquireLease, lambda chosen: leases.acquire_all(group, chosen))
        batch.each(RenewLease, lambda operation: leases.renew(group, operation))
        batch.each(ReleaseLease, lambda operation: leases.release(group, operation))
        batch.each(Sweep, lambda _: sweep(group))
        batch.together(Claim, lambda chosen: picker.claim(group, chosen))
        batch.together(ClaimById, lambda chosen: picker.claim_by_id(group, chosen))
        if self._dialect == "postgresql" and (group.wakes or group.tells):
            group.tx.run("send_hint")
        self.last = group
        return batch.replies


def derived(group: Group, reply: TransitionResult) -> TransitionResult:
    """Let an operation's consequences stand before the next, as if it had been written alone."""
    advance.derive(group)
    return reply


def sweep(group: Group) -> None:
    picker.mark_due(group)
    group.change_tasks("lift_limits", count=LIMITS_AT_ONCE)
    slots.sweep(group)


class Batch:
    """The operations of a group, taken kind by kind, with a reply for each in its own place."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        self.replies: list[object] = [None] * len(operations)

    def together(self, kind: type[O], handle: Callable[[list[O]], Sequence[object]]) -> None:
        places: list[int] = []
        chosen: list[O] = []
        for place, operation in enumerate(self._operations):
            if isinstance(operation, kind):
                places.append(place)
                chosen.append(operation)
        if chosen:
            for place, reply in zip(places, handle(chosen), strict=True):
                self.replies[place] = reply

    def each(self, kind: type[O], handle: Callable[[O], object]) -> None:
        for place, operation in enumerate(self._operations):
            if isinstance(operation, kind):
                try:
                    self.replies[place] = handle(operation)
                except HoldfastError as error:
                    self.replies[place] = error
