"""The workflows that a file calls, where their files stand beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.errors import InvalidInput, InvalidWorkflowFile
from holdfast.model.workflow.graph import MAX_CALL_DEPTH, Workflow

SUFFIXES = (".yaml", ".yml", ".json")
ReadWorkflow = Callable[[Path, "CalledFiles"], Workflow]


class UncallableWorkflow(Exception):
    """A file that is there, and cannot be called; `hint` is what to do about it."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True, kw_only=True)
class CalledFiles:
    """Reads each file once; `way` are the files that led here, the first one first."""

    read: ReadWorkflow
    files_above: tuple[Path, ...]
    known: dict[Path, Workflow] = field(default_factory=dict)
    # By how deep they were called too: what is too deep there may not be elsewhere.
    failed: dict[tuple[Path, int], UncallableWorkflow] = field(default_factory=dict)

    def find(self, name: str) -> Workflow | None:
        """The workflow of that name; None where no file of that name is there."""
        for suffix in SUFFIXES:
            path = self.files_above[-1].parent / f"{name}{suffix}"
            if path.is_file():
                return self._read(path, name)
        return None

    def _read(self, path: Path, name: str) -> Workflow:
        if path not in self.known:
            self._check_files_above(path)
            if before := self.failed.get((path, len(self.files_above))):
                raise UncallableWorkflow(str(before), before.hint)
            try:
                self.known[path] = self._load(path)
            except UncallableWorkflow as error:
                self.failed[path, len(self.files_above)] = error
                raise
        found = self.known[path]
        if found.name != name:
            raise UncallableWorkflow(f"{path.name} holds the workflow {found.name!r}, not {name!r}")
        return found

    def _load(self, path: Path) -> Workflow:
        inner = replace(self, files_above=(*self.files_above, path))
        try:
            return self.read(path, inner)
        except InvalidWorkflowFile as error:
            first = error.found[0]
            reason = f"{path.name} has mistakes, the first in line {first.line}"
            hint = f"holdfast workflow validate {path}"
            raise UncallableWorkflow(f"{reason}: {first.message}", hint) from error
        except InvalidInput as error:
            raise UncallableWorkflow(error.reason) from error

    def _check_files_above(self, path: Path) -> None:
        if path in self.files_above:
            circle = [*self.files_above[self.files_above.index(path) :], path]
            told = " → ".join(each.stem for each in circle)
            raise UncallableWorkflow(f"these workflows call each other in a circle: {told}")
        if len(self.files_above) > MAX_CALL_DEPTH:
            raise UncallableWorkflow(f"workflows call each other at most {MAX_CALL_DEPTH} deep")
