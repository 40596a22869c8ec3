"""One thing that is wrong with a graph: where, what, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from holdfast.model.workflow.step import Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Flaw:
    """`named` is the very word that is wrong, of a `field` of a step; `known` were right there.

    Where a part of that word is wrong, it is the `guess`. The hint is looked for when it is asked
    for, because that takes long among many names.
    """

    message: str
    step: Step | None = None
    field: str | None = None
    named: str | None = None
    guess: str | None = None
    known: Collection[str] = ()
    advice: str = ""

    @property
    def hint(self) -> str:
        meant = self.guess or self.named
        if self.advice or meant is None:
            return self.advice
        own = None if self.step is None else self.step.id
        return suggest(meant, [name for name in self.known if name != own])

    @property
    def text(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


def suggest(name: str, known: Collection[str]) -> str:
    """What somebody who wrote a name probably meant."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""
