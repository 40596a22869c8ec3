"""Which secrets the workflow of a task asks for, in whichever of its steps."""

from __future__ import annotations

from holdfast.model.task import Assignment
from holdfast.worker.office import Office

KEPT = 10_000


class Asked:
    """Reads each version of a workflow once: it never changes."""

    def __init__(self, engine: Office) -> None:
        self._engine = engine
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def by(self, assignment: Assignment) -> frozenset[str]:
        """The names of all secrets of its workflow."""
        workflow, version = assignment.workflow, assignment.workflow_version
        if workflow is None or version is None:
            return frozenset()
        found = self._known.get((workflow, version))
        if found is None:
            found = self._engine.work.secrets_of(workflow, version)
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[workflow, version] = found
        return found
