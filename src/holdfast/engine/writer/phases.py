"""Phases: the operations of each phase of a group, in their order, with their handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.engine import lines
from holdfast.engine.claims import picker
from holdfast.engine.core.batch import OperationHandler, Phase, one_by_one
from holdfast.engine.core.operation import (
    AdvanceRun,
    Claim,
    ClaimById,
    Complete,
    ControlledRun,
    ControlledTask,
    CreateTasks,
    Fail,
    Import,
    Lose,
    Release,
    Renew,
    StartRun,
    Sweep,
)
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.lines import KeepAside, OpenLine
from holdfast.engine.state import (
    advance,
    creation,
    durable,
    expected_version,
    report_outcomes,
    run_control,
    slots,
    usage_limits,
)
from holdfast.engine.state.durable import (
    AskQuestion,
    RecordEffect,
    SendSignal,
    Spawn,
    Suspend,
    TakeSignal,
)
from holdfast.engine.state.expected_version import ExpectVersion
from holdfast.engine.state.task_control import control_task
from holdfast.engine.state.usage_limits import LiftLimit
from holdfast.engine.surroundings import (
    access,
    browser_sessions,
    hooks,
    imports,
    leases,
    removal,
    schedules,
    workers,
)
from holdfast.engine.surroundings.access import AccessOperation
from holdfast.engine.surroundings.browser_sessions import BrowserOperation
from holdfast.engine.surroundings.hooks import RegisterHooks, RemoveHook
from holdfast.engine.surroundings.leases import AcquireLease, ReleaseLease, RenewLease
from holdfast.engine.surroundings.removal import Removal
from holdfast.engine.surroundings.schedules import ControlSchedule, FireTicks, PutSchedule
from holdfast.engine.surroundings.workers import NoteStop, WorkerOperation
from holdfast.engine.surroundings.workflows import AddWorkflow, add_workflows
from holdfast.model.result import TransitionResult

LIMITS_AT_ONCE = 1_000


def advance_and_handle_ends(work: UnitOfWork) -> None:
    """Advance, remove the schedules of ended runs, and fire the hooks of what ended."""
    advance.advance_and_free_slots(work)
    schedules.remove_schedules_of_ended_runs(work)
    hooks.fire_hooks(work)


def sweep(work: UnitOfWork, _: Sweep) -> None:
    """Do what time alone causes: tasks become due, limits lift, keys get room."""
    picker.mark_due(work)
    work.change_tasks("lift_limits", count=LIMITS_AT_ONCE)
    usage_limits.notice_lifted_limits(work)
    slots.admit_where_room(work)
    # A task whose hold was lifted may call a workflow, which is started by advance, not by a claim.
    advance_and_handle_ends(work)


def advance_after_each(handle: Callable[[UnitOfWork, Any], TransitionResult]) -> OperationHandler:
    """Make a handler that advances after each operation, as if each had been written alone."""

    def derived(work: UnitOfWork, operation: object) -> TransitionResult:
        reply = handle(work, operation)
        advance.advance_to_fixpoint(work)
        return reply

    return one_by_one(derived)


# Schedules, workflow versions, hooks, workers, tokens and browser sessions.
SURROUNDINGS: Phase = {
    # Before any counter is locked: the insert of a name may wait for another process.
    PutSchedule: schedules.put_schedules,
    AddWorkflow: add_workflows,
    ControlSchedule: one_by_one(schedules.control_schedule),
    # Before any counter is locked: every process locks hooks after tasks and before counters.
    RegisterHooks: hooks.register_hooks,
    RemoveHook: one_by_one(hooks.remove_hook),
    WorkerOperation: workers.carry_out_worker_operations,
    AccessOperation: access.carry_out_access_operations,
    BrowserOperation: browser_sessions.carry_out_browser_operations,
}
REPORTS: Phase = {
    NoteStop: workers.note_stops,
    Renew: report_outcomes.renew_leases,
    RecordEffect: durable.record_effects,
    Complete: report_outcomes.complete_tasks,
    Fail: report_outcomes.fail_tasks,
    Release: report_outcomes.release_tasks,
    AskQuestion: report_outcomes.ask_questions,
    Suspend: durable.suspend_tasks,
    Lose: report_outcomes.lose_tasks,
    # After the completions, so that a line is opened at its newest head.
    OpenLine: one_by_one(lines.open_line),
    KeepAside: one_by_one(lines.keep_aside),
}
CONTROL: Phase = {
    ExpectVersion: one_by_one(expected_version.check_expected_version),
    ControlledTask: advance_after_each(lambda work, operation: control_task(operation, work)),
    ControlledRun: advance_after_each(run_control.control_run),
}
SIGNALS: Phase = {SendSignal: durable.send_signals, TakeSignal: one_by_one(durable.take_signal)}
NEW_WORK: Phase = {
    AdvanceRun: advance.advance_runs,
    CreateTasks: creation.create_tasks,
    Spawn: one_by_one(durable.spawn_tasks),
    StartRun: creation.start_runs,
    Import: imports.carry_out_imports,
    FireTicks: schedules.fire_ticks,
}
LEASES_REMOVAL_SWEEP: Phase = {
    AcquireLease: leases.acquire_leases,
    RenewLease: one_by_one(leases.renew_lease),
    ReleaseLease: one_by_one(leases.release_lease),
    Removal: one_by_one(removal.remove_runs_and_tasks),
    Sweep: one_by_one(sweep),
}
CLAIMS: Phase = {Claim: picker.claim_tasks, ClaimById: picker.claim_tasks_by_id}
LIMIT_LIFTS: Phase = {LiftLimit: usage_limits.lift_limits}
