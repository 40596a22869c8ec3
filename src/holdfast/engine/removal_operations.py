"""What is asked of the writer when something has been kept as long as it is to be."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import ID, LEAST, Keys, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal(Operation):
    """Each of the `members` is named with what it is removed with, or stays with."""

    members: tuple[tuple[str, str], ...]
    before: int

    @property
    def keys(self) -> Keys:
        return tuple(member for member, _ in self.members)

    @property
    def size(self) -> int:
        return LEAST + 2 * ID * len(self.members)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveRuns(Removal):
    @property
    def runs(self) -> Keys:
        return tuple(key for key in self.keys if key.startswith("r_"))


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveTasks(Removal):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveDeleted(Removal):
    """Of tasks that somebody deleted there is nothing left but their past."""
