"""A worker for steps of workflow files, each in a workflow of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from holdfast import Holdfast, NewRun, RetryPolicy
from holdfast.api.function_registry import FunctionRegistry
from holdfast.engine.engine import engine_of
from holdfast.model.task import Task
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.service.protocol.attempt_calls import AttemptCalls
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.secrets.secrets import Secrets
from holdfast.worker.steps.executors import Executors
from tests.race.racers import eventually

SOON = RetryPolicy(backoff=0.01, backoff_max=0.01)
ONCE = RetryPolicy(max_attempts=1)
ALLOWED = WorkflowDeclarations(env=("NOT_THERE", "PLACE"))


def shell(text: str, **fields: Any) -> StepWork:
    """A step that is a few lines for a shell."""
    return StepWork(command=("sh", "-c", text), **fields)


class BusyWorker(StoreWorker):
    @property
    def idle(self) -> bool:
        """Whether it has nothing to do any more."""
        return not self._held


class FileSteps:
    """A store, a worker, and the state that the worker keeps beside it."""

    def __init__(self, hf: Holdfast, folder: Path, environment: Mapping[str, str]) -> None:
        self.hf = hf
        self.state = StateDirectory(root=folder / "state")
        executors = Executors(
            engine_of(hf),
            FunctionRegistry(lambda: engine_of(hf)),
            partial(AttemptCalls, engine_of(hf)),
            state=self.state,
            secrets=Secrets(hf.settings.url, environment),
        )
        options = WorkerOptions(concurrency=4)
        self.worker = BusyWorker(engine_of(hf), executors, options, executors.clean)

    def enqueue(self, work: StepWork, **fields: Any) -> str:
        """Have a step done; gives the id of its task."""
        return enqueue(self.hf, work, **fields)

    def done(self, work: StepWork, **fields: Any) -> Task:
        """Have a step done, and wait until its task has ended."""
        task_id = self.enqueue(work, **fields)
        assert eventually(lambda: self.hf.tasks.get(task_id).terminal)
        return self.hf.tasks.get(task_id)

    @property
    def idle(self) -> bool:
        return self.worker.idle

    def log(self, task_id: str, attempt: int = 1) -> str:
        return self.state.log(task_id, attempt).path.read_text(errors="replace")


def enqueue(hf: Holdfast, work: StepWork, **fields: Any) -> str:
    """Start a run of one step; gives the id of its task."""
    step = Step(id="step", work=work, **{"retry": SOON} | fields)
    workflow = Workflow.define("one", (step,), declared=ALLOWED)
    run = hf.runs.start(NewRun(workflow=workflow))
    (task,) = hf.runs.tasks(run.id)
    return task.id


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
