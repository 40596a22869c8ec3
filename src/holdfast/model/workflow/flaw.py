"""Flaws of a graph, with hints; apart from the checks, because all of them import it."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from holdfast.model.workflow.step import Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Flaw:
    """One flaw: `named` is the wrong word in a `field` of a step, `known` are the right words.

    Where only a part of that word is wrong, the part is the `guess`. The hint is computed at its
    first use, because the search among many names takes long.
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
    """A question with the known name nearest to a wrong one; empty where none is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""
