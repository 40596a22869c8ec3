"""Verdicts of verifiers, and the feedback that is passed on when work is done again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from holdfast import errors
from holdfast.errors import InvalidInput

# What people say about files: each a mapping with `file`, `text`, and `line` where it is of one.
Comments = Sequence[Mapping[str, Any]]
ACCEPT: Final = "accept"
REJECT: Final = "reject"

# The output schema of a verifier that declares no outputs of its own.
VERDICT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "verdict": {"enum": [ACCEPT, REJECT]},
        "feedback": {"description": "what is to be done otherwise, when it is rejected"},
        "items": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "description": "of a loop: the places of the items that are meant, counted from 0",
        },
    },
    "required": ["verdict"],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A verdict; `items` are the places of the loop items it rejects, from 0; none means all."""

    verdict: Literal["accept", "reject"]
    feedback: Any = None
    items: tuple[int, ...] = ()

    @classmethod
    def accept(cls) -> Self:
        """It is good: what waits for it may begin."""
        return cls(verdict=ACCEPT)

    @classmethod
    def reject(cls, feedback: object, *, items: Sequence[int] = ()) -> Self:
        """It is to be done again with this feedback; of a loop, the `items` meant, or all."""
        if (mistake := find_items_mistake(items)) is not None:
            raise InvalidInput("items", mistake)
        return cls(verdict=REJECT, feedback=feedback, items=tuple(items))

    @property
    def accepts(self) -> bool:
        """Whether the work passes."""
        return self.verdict == ACCEPT


def read_verdict(output: object) -> Verdict | None:
    """The verdict in an output, or None where the output has none."""
    if not isinstance(output, dict) or output.get("verdict") not in {ACCEPT, REJECT}:
        return None
    items = output.get("items")
    if items is None:
        items = ()
    if find_items_mistake(items) is not None:
        return None
    return Verdict(verdict=output["verdict"], feedback=output.get("feedback"), items=tuple(items))


def find_items_mistake(items: object, total: int | None = None) -> str | None:
    """The reason why `items` are not places of the items of a loop with `total` items, or None."""
    if not isinstance(items, Sequence) or isinstance(items, str):
        return f"{items!r} is no list of places, such as [0, 2]"
    for place in items:
        if type(place) is not int or place < 0:
            return f"{place!r} is no place of an item; they are counted from 0"
        if total is not None and place >= total:
            return f"there is no item {place}; there are {total}, counted from 0"
    return None


def first_feedback(said: Iterable[str | None]) -> str | None:
    """The first of some JSON texts of feedback that is neither missing nor null."""
    return next((each for each in said if each is not None and each != "null"), None)


def describe_feedback(feedback: object) -> object:
    """The feedback; comments, and the error of a step that went back, are turned into words."""
    match feedback:
        case {"reason": _, "comments": list()}:
            return errors.describe_error(feedback)
        case {"type": str(), "message": str(), "traceback": list()}:
            return errors.describe_error(feedback)
        case _:
            return feedback
