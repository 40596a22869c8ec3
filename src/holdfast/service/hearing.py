"""Signals for workers that are no functions: taken in the name of an attempt, and remembered."""

from __future__ import annotations

import re
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.effect import Wait

_NOTE = re.compile(r"wait ([0-9]{1,9})")


def note_waits(attempt: int, wait: Wait) -> list[tuple[str, object]]:
    """What is remembered of an attempt that was given back until a signal comes."""
    return [(f"wait {attempt}", {"wait_for": signal}) for signal in wait.signals]


def hear(engine: Engine, task_id: str, token: str) -> dict[str, Any]:
    """Take the signal that a task waited for last, if it is there; all it has heard, by name."""
    known = engine.work.effects(task_id)
    waits = _waits(known)
    if waits and (last := _heard(max(waits))) not in known:
        target = engine.tasks.get(task_id).run_id or task_id
        taken = engine.work.take_signal(task_id, token, target, waits[max(waits)], name=last)
        if taken.found:
            known[last] = taken.value
    heard = {each: known.get(_heard(each)) for each in sorted(waits)}
    # A worker may remember whatever it likes under these names.
    return {
        waits[each]: said["signal"]
        for each, said in heard.items()
        if isinstance(said, dict) and "signal" in said
    }


def _heard(attempt: int) -> str:
    return f"wait {attempt} heard"


def _waits(known: dict[str, Any]) -> dict[int, str]:
    """For which signals attempts were given back."""
    found = {name: _NOTE.fullmatch(name) for name in known}
    noted = {int(each[1]): known[name] for name, each in found.items() if each}
    return {
        attempt: said["wait_for"]
        for attempt, said in noted.items()
        if isinstance(said, dict) and isinstance(said.get("wait_for"), str)
    }
