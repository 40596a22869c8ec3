"""Effect limits: how many effects and artifacts an attempt and its run may have, and their bytes.

The database keeps the counts. A writer has locked the run or lone task, and the statement that
inserts an effect checks the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import TooMuchKept
from holdfast.settings import Settings
from holdfast.store.database import Row, Transaction

# A task, its fence, the name and JSON of an effect, and the bytes of a file beside it.
EffectRow = tuple[str, int, str, str, int]
KeptNames = set[tuple[str, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Limits on what one attempt, and one whole run or lone task, may keep."""

    max_effects: int
    max_kept: int
    max_run_effects: int
    max_run_kept: int
    # The size of the longest signal, because a signal that is taken is kept as an effect.
    max_payload: int

    @classmethod
    def of(cls, settings: Settings) -> Bounds:
        return cls(
            max_effects=settings.max_effects,
            max_kept=settings.max_kept,
            max_run_effects=settings.max_run_effects,
            max_run_kept=settings.max_run_kept,
            max_payload=settings.max_payload,
        )

    def refusal(self, kept: Row, size: int) -> TooMuchKept | None:
        """The refusal of an effect of `size` bytes beside what is kept; None if there is room."""
        for setting, whose, have, more, what in (
            ("max_effects", "attempt", kept["effects"], 1, "effects and artifacts"),
            ("max_kept", "attempt", kept["bytes"], size, "bytes of effects and artifacts"),
            ("max_run_effects", "run", kept["run_effects"], 1, "effects and artifacts"),
            ("max_run_kept", "run", kept["run_bytes"], size, "bytes of effects and artifacts"),
        ):
            most = getattr(self, setting)
            if have + more > most:
                reason = f"this {whose} has {have} {what} and may have {most}, not {have + more}"
                return TooMuchKept("effects", f"{reason}; Holdfast(…, {setting}=…) allows more")
        return None


def keep_effects(tx: Transaction, bounds: Bounds, effects: Sequence[EffectRow]) -> KeptNames:
    """Write the effects for which there is room; returns the new ones, each by task and name."""
    rows, upto = list[tuple[object, ...]](), 0
    for nth, (task_id, fence, name, value, beside) in enumerate(effects, 1):
        size = len(value.encode()) + beside
        upto += size
        rows.append((task_id, fence, name, value, size, nth, upto))
    kept = _write(tx, bounds, rows)
    if len(kept) < len(rows) and len(rows) > 1:
        # The statement counted all rows before a row for the run of that row, though they may be of
        # other runs. So each row that was left out is written again, alone.
        for row in rows:
            if (row[0], row[2]) not in kept:
                kept |= _write(tx, bounds, [(*row[:5], 1, row[4])])
    return kept


def find_refusal(
    tx: Transaction, bounds: Bounds, effect: tuple[str, int, str], size: int
) -> TooMuchKept | None:
    """The refusal of an effect of `size` bytes; None if there is room or it is kept already."""
    rows = tx.read("kept_by", rows=[effect])
    return bounds.refusal(rows[0], size) if rows else None


def _write(tx: Transaction, bounds: Bounds, rows: Sequence[tuple[object, ...]]) -> KeptNames:
    written = tx.write(
        "record_effects",
        rows=rows,
        max_effects=bounds.max_effects,
        max_kept=bounds.max_kept,
        max_run_effects=bounds.max_run_effects,
        max_run_kept=bounds.max_run_kept,
    )
    return {(row["task_id"], row["name"]) for row in written}
