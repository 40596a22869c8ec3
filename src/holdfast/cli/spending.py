"""What a run has cost, of how much it may, and what to type when that is used up."""

from __future__ import annotations

from typing import Any

from holdfast.cli.words import money
from holdfast.model.budget import Budget, Used, tell_raise, tell_used
from holdfast.service.queries.views import usd
from holdfast.service.queries.wording import in_commands

View = dict[str, Any]


def cost_of(run: View) -> str:
    """$1.12, or $1.12 of $5."""
    budget, used = _read(run)
    if budget.usd is None:
        told = [money(usd(run.get("usage"))), tell_used(budget, used)]
        return ", ".join(each for each in told if each)
    return tell_used(budget, used)


def is_spent(run: View) -> bool:
    return run["status"] == "running" and "budget" in run["holds"]


def how_to_go_on(run: View) -> str:
    """The command that lets a run use more than its budget said."""
    return in_commands(tell_raise(run["id"], *_read(run))) or f"holdfast why {run['id']}"


def _read(run: View) -> tuple[Budget, Used]:
    told = run.get("budget", {})
    limits = {name: told[name] for name in ("usd", "usd_per_attempt", "attempts") if name in told}
    return Budget(**limits), Used(**told.get("used", {}))
