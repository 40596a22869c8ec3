"""Which operations are carried out in what order, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    picker,
    removal,
    runs,
    schedules,
    slots,
    workers,
)
from holdfast.engine.access_operations import AccessOperation
from holdfast.engine.batch import Handler, Phase, each
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
    Release,
    Renew,
    StartRun,
    Sweep,
)
from holdfast.engine.removal_operations import Removal
from holdfast.engine.schedule_operations import PutSchedule, SteerSchedule, Tick
from holdfast.engine.worker_operations import NoteStop, WorkerOperation
from holdfast.engine.workflow_operations import AddWorkflow
from holdfast.model.result import TransitionResult

LIMITS_AT_ONCE = 1_000


def conclude(group: Group) -> None:
    """Let all follow from the group's transitions, and from the ends among them what goes there."""
    advance.follow(group)
    schedules.tear_down(group)
    hooks.fire(group)


def sweep(group: Group, _: Sweep) -> None:
    picker.mark_due(group)
    group.change_tasks("lift_limits", count=LIMITS_AT_ONCE)
    limits.look(group)
    slots.sweep(group)
    # Who is held no more may call a workflow, and no claim does that.
    conclude(group)


def and_derive(handle: Callable[[Group, Any], TransitionResult]) -> Handler:
    """Let an operation's consequences stand before the next, as if it had been written alone."""

    def derived(group: Group, operation: object) -> TransitionResult:
        reply = handle(group, operation)
        advance.derive(group)
        return reply

    return each(derived)


# What stands around the work: schedules, workflows, hooks, workers, tokens.
SURROUNDINGS: Phase = {
    # Before any counter is held: who inserts a name may wait for another process.
    PutSchedule: schedules.put,
    AddWorkflow: creation.add_workflows,
    SteerSchedule: each(schedules.steer),
    # Before any counter is locked: hooks come between tasks and counters in every process.
    RegisterHooks: hooks.register,
    RemoveHook: each(hooks.remove),
    WorkerOperation: workers.carry_out,
    AccessOperation: access.carry_out,
    BrowserOperation: browsers.carry_out,
}
REPORTS: Phase = {
    NoteStop: workers.note_stops,
    Renew: lifecycle.renew,
    RecordEffect: durable.record,
    Complete: lifecycle.complete,
    Fail: lifecycle.fail,
    Release: lifecycle.release,
    Ask: lifecycle.ask,
    Suspend: durable.suspend,
    Lose: lifecycle.lose,
}
CONTROL: Phase = {
    Expect: each(conflicts.expect),
    Controlled: and_derive(lambda group, operation: control(operation, group)),
    ControlledRun: and_derive(runs.control_run),
}
SIGNALS: Phase = {SendSignal: durable.send, TakeSignal: each(durable.take)}
NEW_WORK: Phase = {
    AdvanceRun: advance.advance,
    CreateTasks: creation.create_tasks,
    Spawn: each(durable.spawn),
    StartRun: creation.start_runs,
    Import: importing.take_over,
    Tick: schedules.fire,
}
KEPT_IN_ORDER: Phase = {
    AcquireLease: leases.acquire_all,
    RenewLease: each(leases.renew),
    ReleaseLease: each(leases.release),
    Removal: each(removal.remove),
    Sweep: each(sweep),
}
CLAIMS: Phase = {Claim: picker.claim, ClaimById: picker.claim_by_id}
LIFTED: Phase = {LiftLimit: limits.lift}
