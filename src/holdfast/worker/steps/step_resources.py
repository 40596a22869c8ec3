"""Step resources: what command steps and HTTP steps share, and the questions that they ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import StoreError
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.prompt_feedback import exchange_feedback
from holdfast.model.workflow.template import render_value
from holdfast.settings import OwnPreset
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
    workflow_secrets: WorkflowSecrets
    addresses: AttemptAddresses
    permission: Permission = Permission()  # noqa: RUF009 - it holds nothing
    own_presets: Mapping[str, OwnPreset] = field(default_factory=dict)

    def permit(self, work: StepWork, prompt: str = "") -> PermittedWork:
        """The work to execute in one run; a step that is not allowed is left to other workers."""
        try:
            return permit_work(work, self.permission, self.secrets, prompt)
        except NotAllowed as refused:
            raise GivenBack(str(refused)) from refused


@contextmanager
def give_back_on_store_error() -> Iterator[None]:
    """Give the task back if Holdfast cannot read or write its store: the step has not failed."""
    try:
        yield
    except StoreError as error:
        raise GivenBack(str(error)) from error


class InvalidOutput(StepFailed):
    """The output does not fit the declared outputs of the step."""


@dataclass(frozen=True, kw_only=True)
class Questions:
    """The questions of a task in this epoch, each with the feedback from before it was asked.

    Each attempt of a command or an HTTP call may ask one question, and then runs again.
    """

    asked: tuple[tuple[Any, Any], ...]
    feedback: Any

    @property
    def answers(self) -> list[tuple[Any, Any]]:
        """Each question with its answer, which is the feedback from after it was asked."""
        said = [*(before for _, before in self.asked), self.feedback]
        return [(question, said[n + 1]) for n, (question, _) in enumerate(self.asked)]

    def add_answers(self, prompt: str, feedback: object) -> str:
        """A prompt with the earlier questions and answers at its end.

        The feedback that the prompt ends with is that from before the first question: the newest
        one is an answer.
        """
        said = "\n\n".join(
            f"{render_value(asked)}\n{render_value(answer)}" for asked, answer in self.answers
        )
        if not said:
            return prompt
        _, before = self.asked[0]
        prompt = exchange_feedback(prompt, feedback, before)
        return f"{prompt.rstrip()}\n\nYou have asked before, and this was answered:\n\n{said}\n"

    def suspend_for(self, question: object) -> SuspendedForAnswer:
        """The exception that leaves the step until somebody has answered."""
        name = f"{_NOTE_PREFIX}{len(self.asked) + 1:04d}"
        return SuspendedForAnswer(
            question, (name, {"question": question, "feedback": self.feedback})
        )


def read_questions(assignment: Assignment, effects: Mapping[str, Any]) -> Questions:
    notes = [effects[name] for name in sorted(effects) if name.startswith(_NOTE_PREFIX)]
    return Questions(
        asked=tuple((each["question"], each["feedback"]) for each in notes),
        # An empty answer counts too, whatever feedback the item around has.
        feedback=assignment.own_feedback if notes else assignment.feedback,
    )
