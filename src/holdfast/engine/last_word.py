"""What a verifier said with its last round, kept until what it rejected begins again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from holdfast.model.verdict import Verdict, items_mistake
from holdfast.store.database import Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class LastWord:
    """What is to be done otherwise, and the places of a loop's items that are meant, or all."""

    feedback: Any = None
    items: tuple[int, ...] = ()


def write(verdict: Verdict, task: Row) -> str:
    """A verdict as the error of its verifier, with the epoch of the loop that the places are of."""
    said = {"rounds": task["max_rounds"], "feedback": verdict.feedback}
    if verdict.items:
        said |= {"items": verdict.items, "epoch": task["subject_epoch"]}
    return json.dumps(said)


def read(tx: Transaction, verifier: Row) -> LastWord:
    """What a verifier without rounds has said; of a loop that has begun anew, all is meant."""
    said = _verdict(verifier["error"]) or _before(tx, verifier["id"])
    items = said.get("items", ())
    # Whoever may write an error may write anything into it.
    known = said.get("epoch") == verifier["subject_epoch"] and items_mistake(items) is None
    return LastWord(feedback=said.get("feedback"), items=tuple(items) if known else ())


def _before(tx: Transaction, task_id: str) -> dict[str, Any]:
    """The verdict in whose place another error stands by now: a person's word."""
    for event in reversed(tx.read("entity_events", entity=task_id)):
        told = json.loads(event["data"] or "null")
        if isinstance(told, dict) and (said := _verdict(json.dumps(told.get("error")))):
            return said
    return {}


def _verdict(error: str | None) -> dict[str, Any]:
    said = json.loads(error or "null")
    return said if isinstance(said, dict) and "rounds" in said and "feedback" in said else {}
