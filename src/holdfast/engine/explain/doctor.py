"""Doctor: every invariant of the live store as a named query that must return nothing."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.model.advice import Action, AdviceText, advise, join_texts
from holdfast.store.database import Database, Row, Transaction

CHECKS = (
    "needs_done_before_start",
    "transitions_allowed",
    "terminal_needs_generation",
    "versions_gapless",
    "fold_status",
    "fold_numbers",
    "fold_marks",
    "one_live_lease",
    "fence_increases",
    "end_carries_fence",
    "cancel_wins",
    "terminal_run_is_still",
    "completed_means_done",
    "one_key_one_row",
    "budgets",
    "no_early_start",
    "concurrency_limits",
    "blocked_is_true",
    "needs_still_count",
    "run_holds_copied",
    "failing_is_marked",
    "rows_are_there",
    "times_make_sense",
    "results_are_kept",
    "schedules_end_with_runs",
    "ended_plans_are_still",
    "plans_end_with_children",
    "plans_wait_for_no_part",
    "waits_end_with_children",
    "waits_end_with_signals",
    "calls_end_with_runs",
    "messages_done_once",
    "events_reach_groups",
    "heads_follow_events",
)


_ADVICE = (
    "The events are the record: compare what hf.tasks.events(id) or hf.runs.events(id) say with "
    "the row, put back what was changed by hand, and report anything else, with its events."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    entity: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    name: str
    violations: tuple[Violation, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return not any(check.violations for check in self.checks)

    def __str__(self) -> str:
        found = [
            f"{check.name}: {violation.entity} {violation.detail}"
            for check in self.checks
            for violation in check.violations
        ]
        if not found:
            return f"{len(self.checks)} checks, no violations"
        return "\n".join([*found, _ADVICE])


def examine_store(database: Database) -> Diagnosis:
    """Run every check on one snapshot."""
    return database.view(examine_transaction)


def examine_transaction(tx: Transaction) -> Diagnosis:
    """Run every check on what a transaction sees."""
    return Diagnosis(
        checks=tuple(
            Check(
                name=name,
                violations=tuple(
                    Violation(entity=row["entity"], detail=_describe_violation(row))
                    for row in tx.read(f"check_{name}")
                ),
            )
            for name in CHECKS
        )
    )


def _describe_violation(row: Row) -> str:
    """The detail of a violation; of a circle through a part of a plan, with the way out of it."""
    part = row.get("part_id")
    if part is None:
        return str(row["detail"])
    let_go = [
        advise(Action.UNBLOCK, row[each], ("need", part)) for each in ("entity", "waiting_id")
    ]
    return AdviceText(row["detail"], "; ", join_texts(" and ", let_go), " let them go on")
