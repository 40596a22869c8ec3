"""Budgets: the limits of what a run may cost, the usage of a run, and checks of reported usage.

An attempt reports its usage as any JSON; the numbers of a mapping are added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, advise

# Millionths of a dollar. Money is counted in whole numbers, because sums of fractions drift.
MILLIONTHS = 1_000_000
MAX_USD = 1_000_000_000
BUDGET_CODE = "budget"
# The most dollars, tokens or other units that one number may report: sums of them stay exact.
MAX_AMOUNT = 1_000_000_000_000
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The limits of a run: dollars in all, dollars for one attempt, and attempts in all."""

    usd: float | None = None
    usd_per_attempt: float | None = None
    attempts: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetUsage:
    """The usage of a run so far: the dollars that its attempts reported, and its attempts."""

    usd: float = 0.0
    attempts: int = 0


def to_millionths(field: str, usd: object) -> int:
    if isinstance(usd, bool) or not isinstance(usd, int | float):
        raise InvalidInput(field, f"must be a number of dollars, not {type(usd).__name__}")
    if not 0 < usd <= MAX_USD or not (counted := round(usd * MILLIONTHS)):
        reason = f"must be more than 0 and at most {MAX_USD} dollars, not {usd}"
        raise InvalidInput(field, reason)
    return counted


def to_dollars(millionths: int) -> float:
    return millionths / MILLIONTHS


def describe_usd(usd: float) -> str:
    """Dollars as people read them: $5, $1.12, $0.004."""
    if round(usd, 2) == 0 and usd:
        return f"${usd:.6f}".rstrip("0")
    return f"${usd:.2f}".removesuffix(".00")


def describe_usage(budget: Budget, used: BudgetUsage) -> str:
    """The usage of a run beside each of its limits: $1.12 of $5, 7 of 40 attempts."""
    told = []
    if budget.usd is not None:
        told.append(f"{describe_usd(used.usd)} of {describe_usd(budget.usd)}")
    if budget.attempts is not None:
        told.append(f"{used.attempts} of {budget.attempts} attempts")
    return ", ".join(told)


def describe_raise(run_id: str, budget: Budget, used: BudgetUsage) -> str:
    """The call that raises the limits which a run has reached, so far that the run goes on."""
    raises = []
    if budget.usd is not None and used.usd >= budget.usd:
        millionths = _choose_raise(round(used.usd * MILLIONTHS), round(budget.usd * MILLIONTHS))
        raises.append(("add_usd", f"{to_dollars(millionths):f}".rstrip("0").rstrip(".")))
    if budget.attempts is not None and used.attempts >= budget.attempts:
        raises.append(("add_attempts", str(_choose_raise(used.attempts, budget.attempts))))
    return advise(Action.RESUME, run_id, *raises) if raises else ""


def _choose_raise(spent: int, most: int) -> int:
    """The limit once more, or as often as brings it above what is spent."""
    step = max(1, most)
    return step * ((spent - most) // step + 1)


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_amount(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number that an attempt can have used."""
    return is_number(value) and 0 <= value <= MAX_AMOUNT


def check_usage(usage: object) -> None:
    """Raise `InvalidInput` with the name of a number that no attempt can have used."""
    if not isinstance(usage, dict):
        return
    for name, value in usage.items():
        if is_number(value) and not is_amount(value):
            field = f"usage.{ascii(name)[1:-1][:SHOWN_CHARACTERS]}"
            raise InvalidInput(
                field, f"must be from 0 to {MAX_AMOUNT}, not {str(value)[:SHOWN_CHARACTERS]}"
            )
