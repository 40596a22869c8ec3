"""Spending: what runs have used of their budgets, and the call that lets a run use more."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.read.records import read_budget
from holdfast.model.budget import BudgetUsage, describe_raise, describe_usage, to_dollars
from holdfast.store.database import Row, Transaction


def read_usage_of_runs(tx: Transaction, runs: Sequence[str]) -> dict[str, BudgetUsage]:
    """Read what some runs have used so far."""
    if not runs:
        return {}
    found = {
        row["run_id"]: BudgetUsage(usd=to_dollars(int(row["usd"])), attempts=int(row["attempts"]))
        for row in tx.read("used_by_runs", ids=runs)
    }
    return {run: found.get(run, BudgetUsage()) for run in runs}


def explain_budget_hold(tx: Transaction, run_id: str, names: str) -> tuple[str, str]:
    """Explain the hold of a run by a budget, with the call that lets the run go on."""
    detail, fix = describe_reached_budget(tx, run_id)
    return f"hold: {names}{', ' if detail else ''}{detail}", fix


def describe_reached_budget(tx: Transaction, run_id: str) -> tuple[str, str]:
    """As `describe_budget`, of a run above when the budget of this run is not used up."""
    (run,) = tx.read("run_by_id", run_id=run_id)
    own = describe_budget(tx, run)
    if own[1] or run["parent_id"] is None:
        return own
    for limit in tx.read("limits_above", ids=[run_id]):
        (above,) = tx.read("run_by_id", run_id=limit["top"])
        told, fix = describe_budget(tx, above)
        if fix:
            return f"{told} by {above['workflow']} {above['id']}", fix
    return own


def describe_budget(tx: Transaction, run: Row) -> tuple[str, str]:
    """Describe what a run has used of its budget, with the call that raises what is reached."""
    budget = read_budget(run)
    if budget is None:
        return "", ""
    used = read_usage_of_runs(tx, [run["id"]])[run["id"]]
    told = describe_usage(budget, used)
    return f"{told} used" if told else "", describe_raise(run["id"], budget, used)
