"""Runs of workflow files in real git repositories, by a worker of the test's own process."""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.model.run import Run
from holdfast.model.task import Task
from holdfast.worker.files.state_directory import StateDirectory
from tests.contract.worker.git.repositories import World, head, run, write
from tests.race.racers import eventually

HEADING = "name: work\ninput: {repo: string}\nworkspace: {git: '{{ input.repo }}'}\nsteps:\n"


class WorkspaceRuns:
    """A store with a worker, and one repository."""

    def __init__(self, hf: Holdfast, world: World, home: Path, path: Path | None = None) -> None:
        self.hf = hf
        self.world = world
        self.state = StateDirectory(root=home)
        self.path = world.repository() if path is None else path
        self.base = head(self.path)

    def start(self, steps: str, heading: str = HEADING, **given: Any) -> Run:
        path = self.world.folder / "work.yaml"
        path.write_text(heading + steps)
        handle = self.hf.workflow_file(path).start(**{"repo": str(self.path)} | given)
        return self.hf.runs.get(handle.id)

    def end(self, steps: str, heading: str = HEADING, **given: Any) -> Run:
        """A run from its start to its end."""
        return self.wait(self.start(steps, heading, **given))

    def wait(self, started: Run, *, followed: bool = True) -> Run:
        """The run at its end, when its branch has `followed` and its worktrees are given back."""
        assert eventually(lambda: self.hf.runs.get(started.id).terminal), self.tell(started)
        assert eventually(self.no_worktree_is_lent)
        assert not followed or eventually(lambda: self.branch_has_followed(started))
        return self.hf.runs.get(started.id)

    def branch_has_followed(self, of: Run) -> bool:
        lines = engine_of(self.hf).work.lines_of_host(socket.gethostname())
        return all(
            not line.number or self.read_branch(Path(line.repository), line.branch) == line.head
            for line in lines
            if line.run_id == of.id
        )

    @staticmethod
    def read_branch(path: Path, branch: str) -> str:
        return run(path, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", code=None)

    def no_worktree_is_lent(self) -> bool:
        for path in (self.state.root / "workspaces").glob("*.lock"):
            with path.open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
        return True

    def task(self, of: Run, step: str) -> Task:
        return next(each for each in self.hf.runs.tasks(of.id) if each.step == step)

    def tell(self, of: Run) -> str:
        return "\n".join(f"{t.step} {t.status} {t.error}" for t in self.hf.runs.tasks(of.id))

    def log(self, task: Task, attempt: int = 1) -> str:
        return self.state.log(task.id, attempt).path.read_text(errors="replace")

    def branch(self, of: Run) -> str:
        """The one branch of a run that people see."""
        listed = run(self.path, "branch", "--format=%(refname:short)", "--list", "holdfast/*")
        (found,) = [each for each in listed.split("\n") if each.endswith(of.id[-6:])]
        return found

    def subjects(self, name: str) -> list[str]:
        return run(self.path, "log", "--topo-order", "--format=%s", name).split("\n")


@contextmanager
def workspace_runs(
    url: str, world: World, home: Path, concurrency: int = 4
) -> Iterator[WorkspaceRuns]:
    with Holdfast(url) as hf:
        runs = WorkspaceRuns(hf, world, home)
        with hf.worker(agents=["*"], concurrency=concurrency):
            yield runs
        diagnosis = hf.doctor()
        assert diagnosis.ok, str(diagnosis)


__all__ = ["HEADING", "WorkspaceRuns", "workspace_runs", "write"]
