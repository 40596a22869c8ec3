"""The graphs of the workflow versions that the writer has met; each never changes."""

from __future__ import annotations

from holdfast.model.graph_text import read_steps
from holdfast.model.step import Step, every
from holdfast.store.database import Transaction

KEPT = 1_000


class Graphs:
    def __init__(self) -> None:
        self._steps: dict[tuple[str, str], dict[str, Step]] = {}

    def step(self, tx: Transaction, workflow: str, version: str, name: str) -> Step:
        """One step of a version, wherever it stands in it."""
        found = self._steps.get((workflow, version))
        if found is None:
            rows = tx.read("workflow_definition", name=workflow, version=version)
            found = {step.id: step for step in every(read_steps(rows[0]["definition"]))}
            if len(self._steps) >= KEPT:
                self._steps.clear()
            self._steps[workflow, version] = found
        return found[name]
