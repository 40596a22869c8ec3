"""Questions of steps that are no Python functions: each attempt may ask one, and run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.model.task import Assignment
from holdfast.model.workflow.template import tell
from holdfast.worker.waits import Asking

_PLACE = "question "


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

    def told(self, prompt: str) -> str:
        """A prompt with what was asked and answered before, at its end."""
        said = "\n\n".join(f"{tell(asked)}\n{tell(answer)}" for asked, answer in self.answers)
        if not said:
            return prompt
        return f"{prompt.rstrip()}\n\nYou have asked before, and this was answered:\n\n{said}\n"

    def ask(self, question: object) -> Asking:
        """What to raise, so that the step is left until somebody has answered."""
        place = f"{_PLACE}{len(self.asked) + 1:04d}"
        return Asking(question, (place, {"question": question, "feedback": self.feedback}))


def questions_of(assignment: Assignment, effects: Mapping[str, Any]) -> Questions:
    notes = [effects[name] for name in sorted(effects) if name.startswith(_PLACE)]
    return Questions(
        asked=tuple((each["question"], each["feedback"]) for each in notes),
        # An answer may be that there is none, whatever was said of the item around.
        feedback=assignment.own_feedback if notes else assignment.feedback,
    )
