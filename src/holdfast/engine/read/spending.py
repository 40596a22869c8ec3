"""What runs have used so far, for whoever only looks.

How much of its budget a run has used, and what would let it use more.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.read.records import read_budget
from holdfast.model.budget import BudgetUsage, describe_raise, describe_usage, to_dollars
from holdfast.store.database import Row, Transaction


def read_usage_of_runs(tx: Transaction, runs: Sequence[str]) -> dict[str, BudgetUsage]:
    """What some runs have used so far."""
    if not runs:
        return {}
    found = {
        row["run_id"]: BudgetUsage(usd=to_dollars(int(row["usd"])), attempts=int(row["attempts"]))
        for row in tx.read("used_by_runs", ids=runs)
    }
    return {run: found.get(run, BudgetUsage()) for run in runs}


def explain_budget_hold(tx: Transaction, run_id: str, names: str) -> tuple[str, str]:
    """What holds up a run that is held by a budget, and the call that lets it go on."""
    detail, fix = describe_reached_budget(tx, run_id)
    return f"hold: {names}{', ' if detail else ''}{detail}", fix


def describe_reached_budget(tx: Transaction, run_id: str) -> tuple[str, str]:
    """As `describe_budget`, of the run that called this one where its own budget is not used up."""
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
    """What a run has used of its budget, and the call that raises what it has reached of it."""
    budget = read_budget(run)
    if budget is None:
        return "", ""
    used = read_usage_of_runs(tx, [run["id"]])[run["id"]]
    told = describe_usage(budget, used)
    return f"{told} used" if told else "", describe_raise(run["id"], budget, used)
