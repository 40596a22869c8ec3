"""Called files: the workflows that a file calls, read from the files beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.errors import InvalidInput, InvalidWorkflowFile
from holdfast.model.workflow.graph import MAX_CALL_DEPTH, Workflow

SUFFIXES = (".yaml", ".yml", ".json")
ReadWorkflow = Callable[[Path, "CalledFiles"], Workflow]


class UncallableWorkflow(Exception):
    """A file that exists but cannot be called; `hint` says what to do."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True, kw_only=True)
class CalledFiles:
    """The called workflows, each file read once; `files_above` are its callers, outermost first."""

    read: ReadWorkflow
    files_above: tuple[Path, ...]
    known: dict[Path, Workflow] = field(default_factory=dict)
    # By depth too: a file that is too deep on one way may not be too deep on another.
    failed: dict[tuple[Path, int], UncallableWorkflow] = field(default_factory=dict)

    def find(self, name: str) -> Workflow | None:
        """The workflow in the file of that name beside the caller; None without such a file."""
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
