"""Where the steps of a worker are carried out that are no functions of its program.

Questions of steps that are no Python functions: each attempt may ask one, and run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.errors import StoreError
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.template import render_value
from holdfast.worker.attempt.execution import GivenBack, StepFailed
from holdfast.worker.attempt.waits import SuspendedForAnswer
from holdfast.worker.attempt_server.attempt_addresses import AttemptAddresses
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.secrets.secrets import Secrets, WorkflowSecrets
from holdfast.worker.steps.permission import NotAllowed, Permission, PermittedWork, permit_work
from holdfast.worker.store_port import StorePort

_NOTE_PREFIX = "question "


@dataclass(frozen=True, kw_only=True)
class StepResources:
    store: StorePort
    state: StateDirectory
    secrets: Secrets
    asked: WorkflowSecrets
    addresses: AttemptAddresses
    permission: Permission = Permission()  # noqa: RUF009 - it holds nothing

    def permit(self, work: StepWork, prompt: str = "") -> PermittedWork:
        """What is executed of a step in one turn; one that is not allowed goes to others."""
        try:
            return permit_work(work, self.permission, self.secrets, prompt)
        except NotAllowed as refused:
            raise GivenBack(str(refused)) from refused


@contextmanager
def give_back_on_store_error() -> Iterator[None]:
    """What Holdfast itself cannot read for a step, or remember of it, is no failure of the step."""
    try:
        yield
    except StoreError as error:
        raise GivenBack(str(error)) from error


class InvalidOutput(StepFailed):
    """It gave something else than its step declares to give."""


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What a task has asked in this epoch, each with the feedback there was before it."""

    asked: tuple[tuple[Any, Any], ...]
    feedback: Any

    @property
    def answers(self) -> list[tuple[Any, Any]]:
        """Each question with its answer, which is the feedback there was after it."""
        said = [*(before for _, before in self.asked), self.feedback]
        return [(question, said[n + 1]) for n, (question, _) in enumerate(self.asked)]

    def add_answers(self, prompt: str) -> str:
        """A prompt with what was asked and answered before, at its end."""
        said = "\n\n".join(
            f"{render_value(asked)}\n{render_value(answer)}" for asked, answer in self.answers
        )
        if not said:
            return prompt
        return f"{prompt.rstrip()}\n\nYou have asked before, and this was answered:\n\n{said}\n"

    def ask(self, question: object) -> SuspendedForAnswer:
        """What to raise, so that the step is left until somebody has answered."""
        name = f"{_NOTE_PREFIX}{len(self.asked) + 1:04d}"
        return SuspendedForAnswer(
            question, (name, {"question": question, "feedback": self.feedback})
        )


def read_questions(assignment: Assignment, effects: Mapping[str, Any]) -> Questions:
    notes = [effects[name] for name in sorted(effects) if name.startswith(_NOTE_PREFIX)]
    return Questions(
        asked=tuple((each["question"], each["feedback"]) for each in notes),
        # An answer may be that there is none, whatever was said of the item around.
        feedback=assignment.own_feedback if notes else assignment.feedback,
    )
