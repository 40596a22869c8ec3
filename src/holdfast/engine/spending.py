"""What runs have used so far, for whoever only looks."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.budget import Used, to_dollars
from holdfast.store.database import Transaction


def used_by(tx: Transaction, runs: Sequence[str]) -> dict[str, Used]:
    """What some runs have used so far."""
    if not runs:
        return {}
    found = {
        row["run_id"]: Used(usd=to_dollars(int(row["usd"])), attempts=int(row["attempts"]))
        for row in tx.read("used_by_runs", ids=runs)
    }
    return {run: found.get(run, Used()) for run in runs}
