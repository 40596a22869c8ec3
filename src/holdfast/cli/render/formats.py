"""Formats: times, costs, budgets, states and errors in a few characters."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from holdfast.cli.app.session import with_store
from holdfast.cli.app.terminal import escape, paint, strip_codes_of
from holdfast.errors import read_traceback, summarize_error
from holdfast.model.advice import read_stored
from holdfast.model.budget import Budget, BudgetUsage, describe_raise, describe_usage
from holdfast.service.queries.command_lines import describe_text
from holdfast.service.queries.views import read_cost, read_time

View = dict[str, Any]
SECOND = 1_000_000
KILOBYTE = 1_000
_SHORT = 9.95 * SECOND
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400

COLOURS = {
    "completed": "green",
    "done": "green",
    "running": "cyan",
    "failed": "red",
    "cancelled": "magenta",
    "stalled": "red",
    "held": "yellow",
    "blocked": "dim",
    "idle": "dim",
    "scheduled": "dim",
    "waiting": "yellow",
    "verifying": "cyan",
}


_shown_moment: ContextVar[int | None] = ContextVar("shown_moment", default=None)


@contextmanager
def as_of(moment: int) -> Iterator[None]:
    """Show times as they were told at a moment that is past."""
    token = _shown_moment.set(moment)
    try:
        yield
    finally:
        _shown_moment.reset(token)


def now() -> int:
    """The moment from which times are told: the present, or that of `as_of`."""
    shown = _shown_moment.get()
    return time.time_ns() // 1_000 if shown is None else shown


def format_span(microseconds: float | None) -> str:
    """A time span: 0.3s, 14s, 1m 02s, 2h 13m, 3d 4h."""
    if microseconds is None:
        return ""
    if 0 < microseconds < _SHORT:
        return f"{microseconds / SECOND:.1f}s"
    seconds = max(0, round(microseconds / SECOND))
    if seconds < _MINUTE:
        return f"{seconds}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m {seconds % _MINUTE:02}s"
    if seconds < _DAY:
        return f"{seconds // _HOUR}h {seconds % _HOUR // _MINUTE:02}m"
    return f"{seconds // _DAY}d {seconds % _DAY // _HOUR}h"


def format_ago(moment: int | None) -> str:
    return "" if moment is None else f"{format_span(now() - moment)} ago"


def format_since(text: str | None) -> str:
    """How long ago a time of a view was: `for 3m 10s`; empty for none."""
    moment = read_time(text)
    return "" if moment is None else f"for {format_span(now() - moment)}"


def describe_start(run: View) -> str:
    """The time at which a run starts that was scheduled for later."""
    moment = read_time(run.get("scheduled_for")) or 0
    left = max(0, round((moment - now()) / SECOND) * SECOND)
    return f"{run['scheduled_for'][:16].replace('T', ' ')} UTC, in {format_span(left)}"


def time_since_start(run: View) -> str:
    """How long a run took, or takes until now; empty for a run that is scheduled for later."""
    if state_of_run(run) == "scheduled":
        return ""
    begun, ended = read_time(run["created_at"]), read_time(run.get("finished_at"))
    return format_span((ended or now()) - (begun or 0))


def state_of_run(run: View) -> str:
    """The status of a run; of one that is scheduled for later, that."""
    scheduled = run["status"] == "running" and "scheduled" in run["holds"]
    return "scheduled" if scheduled else str(run["status"])


def format_money(cost: float | None) -> str:
    return "" if cost is None else f"${cost:.2f}"


def format_state(state: str) -> str:
    """A status or state in its colour."""
    style = COLOURS.get(state.partition(" ")[0])
    return paint(state, style) if style else state


def one_line(value: object, most: int = 200) -> str:
    """A JSON value in one line."""
    plain = strip_codes_of(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    shown = escape(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def draw_traceback(error: Any) -> list[str]:  # noqa: ANN401 - JSON is any value
    """The lines of the traceback of a function's error; no lines for other errors."""
    return draw_lines(read_traceback(error))


def draw_lines(lines: Sequence[str]) -> list[str]:
    """Lines of a traceback, below what they are about."""
    return [f"    {paint(escape(line), 'dim')}" for line in lines]


def describe_error_line(error: Any) -> str:  # noqa: ANN401 - JSON is any value
    """An error in one line; the commands that it names are as they are typed in a shell."""
    return one_line(describe_text(read_stored(summarize_error(error)), with_store))


def format_bytes(size: int) -> str:
    """A number of bytes: 12 bytes, 34 KB, 5.6 MB."""
    if size < KILOBYTE:
        return format_count(size, "byte")
    if size < KILOBYTE**2:
        return f"{size / KILOBYTE:.0f} KB"
    return f"{size / KILOBYTE**2:.1f} MB"


def format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def cost_of(run: View) -> str:
    """The cost of a run: $1.12, or $1.12 of $5."""
    budget, used = _read_budget(run)
    if budget.usd is None:
        told = [format_money(read_cost(run.get("usage"))), describe_usage(budget, used)]
        return ", ".join(each for each in told if each)
    return describe_usage(budget, used)


def is_spent(run: View) -> bool:
    return run["status"] == "running" and "budget" in run["holds"]


def advise_spent_run(run: View) -> str:
    """The command that raises the budget of a run."""
    return (
        describe_text(describe_raise(run["id"], *_read_budget(run))) or f"holdfast why {run['id']}"
    )


def _read_budget(run: View) -> tuple[Budget, BudgetUsage]:
    told = run.get("budget", {})
    limits = {name: told[name] for name in ("usd", "usd_per_attempt", "attempts") if name in told}
    return Budget(**limits), BudgetUsage(**told.get("used", {}))
