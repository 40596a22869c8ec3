"""What is asked about workflows: that a definition is kept."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class AddWorkflow(Operation):
    workflow: str
    workflow_version: str
    definition: str
    called: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def keys(self) -> Keys:
        return (f"workflow:{self.workflow}",)

    @property
    def size(self) -> int:
        return len(self.definition) + sum(len(each[2]) for each in self.called)
