"""What a verifier says of the work it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

ACCEPT: Final = "accept"
REJECT: Final = "reject"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """`items` names the places of a loop's items that are meant, counted from 0; none means all."""

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
        return cls(verdict=REJECT, feedback=feedback, items=tuple(items))

    @property
    def accepts(self) -> bool:
        return self.verdict == ACCEPT


def read_verdict(output: object) -> Verdict | None:
    """The verdict in an output, or None where there is none to be found."""
    if not isinstance(output, dict) or output.get("verdict") not in {ACCEPT, REJECT}:
        return None
    items = output.get("items") or ()
    if not isinstance(items, list | tuple) or not all(type(place) is int for place in items):
        return None
    return Verdict(verdict=output["verdict"], feedback=output.get("feedback"), items=tuple(items))
