"""The workflows that a file calls, where their files stand beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.errors import InvalidInput, InvalidWorkflowFile
from holdfast.model.workflow.graph import MAX_CALL_DEPTH, Workflow

SUFFIXES = (".yaml", ".yml", ".json")
Read = Callable[[Path, "Beside"], Workflow]


class Uncallable(Exception):
    """A file that is there, and cannot be called; `hint` is what to do about it."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Reads each file once; `way` are the files that led here, the first one first."""

    read: Read
    way: tuple[Path, ...]
    known: dict[Path, Workflow] = field(default_factory=dict)
    # By how deep they were called too: what is too deep there may not be elsewhere.
    failed: dict[tuple[Path, int], Uncallable] = field(default_factory=dict)

    def find(self, name: str) -> Workflow | None:
        """The workflow of that name; None where no file of that name is there."""
        for suffix in SUFFIXES:
            place = self.way[-1].parent / f"{name}{suffix}"
            if place.is_file():
                return self._read(place, name)
        return None

    def _read(self, place: Path, name: str) -> Workflow:
        if place not in self.known:
            self._check_way(place)
            if before := self.failed.get((place, len(self.way))):
                raise Uncallable(str(before), before.hint)
            try:
                self.known[place] = self._load(place)
            except Uncallable as error:
                self.failed[place, len(self.way)] = error
                raise
        found = self.known[place]
        if found.name != name:
            raise Uncallable(f"{place.name} holds the workflow {found.name!r}, not {name!r}")
        return found

    def _load(self, place: Path) -> Workflow:
        inner = replace(self, way=(*self.way, place))
        try:
            return self.read(place, inner)
        except InvalidWorkflowFile as error:
            first = error.found[0]
            reason = f"{place.name} has mistakes, the first in line {first.line}"
            hint = f"holdfast workflow validate {place}"
            raise Uncallable(f"{reason}: {first.message}", hint) from error
        except InvalidInput as error:
            raise Uncallable(error.reason) from error

    def _check_way(self, place: Path) -> None:
        if place in self.way:
            circle = [*self.way[self.way.index(place) :], place]
            told = " → ".join(each.stem for each in circle)
            raise Uncallable(f"these workflows call each other in a circle: {told}")
        if len(self.way) > MAX_CALL_DEPTH:
            raise Uncallable(f"workflows call each other at most {MAX_CALL_DEPTH} deep")
