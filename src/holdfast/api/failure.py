"""What becomes of a step that has failed for good, as a decorator says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from holdfast.api.options import check_count, nearest
from holdfast.errors import InvalidInput
from holdfast.model.workflow.graph import OnFailure
from holdfast.model.workflow.step import Action


@dataclass(frozen=True, slots=True)
class Goto:
    step: Any
    max_rounds: int = 1


def goto(step: Any, *, max_rounds: int = 1) -> Goto:  # noqa: ANN401 - a step, a loop, or a name
    """Begin again at a step further up, at most `max_rounds` times: `on_failure=goto(build)`.

    That step, and all that follow it, run again; the error is their `feedback`.
    """
    return Goto(step, check_count("max_rounds", max_rounds))


def read_failure(given: object, name: Callable[[Any], str]) -> OnFailure:
    """Read `on_failure="skip"` or `on_failure=goto(build)`."""
    if isinstance(given, Goto):
        return OnFailure(action="goto", step=name(given.step), max_rounds=given.max_rounds)
    words: dict[str, Action] = {word: word for word in get_args(Action)}
    if isinstance(given, str) and given in words and given != "goto":
        return OnFailure(action=words[given])
    known = [word for word in words if word != "goto"]
    hint = nearest(given, known) if isinstance(given, str) else ""
    reason = f"{given!r} is neither {', '.join(map(repr, known))} nor goto(step){hint}"
    raise InvalidInput("on_failure", reason)
