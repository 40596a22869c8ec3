"""Workers for steps of workflow files: each task is carried out as the work its payload names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast import Holdfast, NewTask, RetryPolicy
from holdfast.api.registry import Registry
from holdfast.model.task import Assignment, Task
from holdfast.model.work import Work
from holdfast.worker.execution import Execution
from holdfast.worker.executors import Executors
from holdfast.worker.options import WorkerOptions
from holdfast.worker.pool import Worker
from holdfast.worker.secrets import Secrets
from holdfast.worker.state import State
from tests.race.racers import eventually

SOON = RetryPolicy(backoff=0.01, backoff_max=0.01)
ONCE = RetryPolicy(max_attempts=1)


class FileWorker(Worker):
    """Gives each task the work that is known under its title."""

    works: dict[str, Work]

    @property
    def idle(self) -> bool:
        return not self._executions()

    def _execution(self, assignment: Assignment, asked: float) -> Execution:
        work = self.works[assignment.task.title]
        return super()._execution(replace(assignment, work=work), asked)


class FileSteps:
    """A store, a worker, and the state that the worker keeps beside it."""

    def __init__(self, hf: Holdfast, folder: Path, environment: Mapping[str, str]) -> None:
        self.hf = hf
        self.state = State(root=folder / "state")
        functions = Registry(lambda: hf.engine)
        secrets = Secrets(hf.settings.url, environment)
        executors = Executors(hf.engine, functions, state=self.state, secrets=secrets)
        options = WorkerOptions(concurrency=4)
        self.worker = FileWorker(hf.engine, executors, options, executors.clean)
        self.works: dict[str, Work] = {}
        self.worker.works = self.works

    def enqueue(self, work: Work, **fields: Any) -> str:
        """Have a step done; gives the id of its task."""
        title = f"work {len(self.works)}"
        self.works[title] = work
        return self.hf.tasks.create(NewTask(title=title, **{"retry": SOON} | fields)).id

    def done(self, work: Work, **fields: Any) -> Task:
        """Have a step done, and wait until its task has ended."""
        task_id = self.enqueue(work, **fields)
        assert eventually(lambda: self.hf.tasks.get(task_id).terminal)
        return self.hf.tasks.get(task_id)

    @property
    def idle(self) -> bool:
        """Whether the worker has nothing to do any more."""
        return self.worker.idle

    def log(self, task_id: str, attempt: int = 1) -> str:
        return self.state.log(task_id, attempt).read_text(errors="replace")


@contextmanager
def file_steps(
    url: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    started: bool = True,
    **settings: Any,
) -> Iterator[FileSteps]:
    """A worker for file steps that is at work; in the end the doctor finds nothing."""
    with Holdfast(url, **settings) as hf:
        steps = FileSteps(hf, folder, environment or {})
        with steps.worker if started else nullcontext():
            yield steps
        diagnosis = hf.doctor()
        assert diagnosis.ok, str(diagnosis)
