"""Which secrets workflows ask for, in whichever of their steps."""

from __future__ import annotations

from holdfast.model.task import Assignment
from holdfast.worker.office import Office

KEPT = 10_000
# What was written earlier may be committed later, by as much as a transaction lasts.
OVERLAP = 60_000_000


class Asked:
    """Reads each version of a workflow once: it never changes."""

    def __init__(self, engine: Office) -> None:
        self._engine = engine
        self._known: dict[tuple[str, str], frozenset[str]] = {}
        self._everywhere: frozenset[str] = frozenset()
        self._looked_at: set[tuple[str, str]] = set()
        self._newest = 0
        self._lock = engine.threads.lock()

    def by(self, assignment: Assignment) -> frozenset[str]:
        """The names of all secrets of its workflow."""
        workflow, version = assignment.workflow, assignment.workflow_version
        if workflow is None or version is None:
            return frozenset()
        return self._of(workflow, version)

    def by_any(self) -> frozenset[str]:
        """The names of the secrets of every workflow that the store knows by now."""
        with self._lock:
            since = max(0, self._newest - OVERLAP)
            for name, version, created_at in self._engine.work.workflows_since(since):
                if (name, version) not in self._looked_at:
                    self._everywhere |= self._of(name, version)
                    self._looked_at.add((name, version))
                self._newest = max(self._newest, created_at)
            return self._everywhere

    def _of(self, workflow: str, version: str) -> frozenset[str]:
        found = self._known.get((workflow, version))
        if found is None:
            found = self._engine.work.secrets_of(workflow, version)
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[workflow, version] = found
        return found
