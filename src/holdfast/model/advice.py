"""Advice: what a user may do next, as data that each front end puts into its own words.

A text that holds advice is a `str` for programs, in which each piece of advice is a Python call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, groupby
from typing import Self, TypeAlias

from holdfast.errors import HoldfastError
from holdfast.model.placeholder import make_placeholder


class Action(StrEnum):
    """All that users are advised to do; targets are ids of runs or tasks where nothing is noted."""

    ADD_CHILD = "add_child"
    ANSWER = "answer"
    APPROVE = "approve"
    CANCEL = "cancel"
    CLAIM = "claim"  # with the options agent and tag, each as often as wanted
    DELETE = "delete"
    ENQUEUE = "enqueue"
    FINALIZE_PLAN = "finalize_plan"
    LIFT_LIMIT = "lift_limit"  # of an agent
    LIST_TASKS = "list_tasks"
    LIST_WORKERS = "list_workers"  # without a target
    NAME_STEP = "name_step"  # without a target: one of a run's own
    PRINT_WHY = "print_why"
    REJECT = "reject"
    REOPEN = "reopen"
    RESET = "reset"
    RESUME = "resume"  # with the options hold, add_usd and add_attempts
    RETRY = "retry"  # with the option step
    RUN_NOW = "run_now"
    SIGNAL = "signal"  # with the options signal and payload
    START_PLANNING = "start_planning"
    START_WORKER = "start_worker"  # with the options agent and tag, each as often as wanted
    UNBLOCK = "unblock"  # with the option need
    WAIT_LONGER = "wait_longer"  # without a target
    WHY = "why"
    WRITE_TIME = "write_time"  # without a target

    @property
    def looks(self) -> bool:
        """Whether the action changes nothing, and only tells more."""
        return self in _LOOKS


_LOOKS = frozenset({Action.LIST_TASKS, Action.LIST_WORKERS, Action.PRINT_WHY, Action.WHY})

Option: TypeAlias = tuple[str, str]
# Values that only the user knows.
ANSWER: Option = ("answer", make_placeholder("answer"))
PAYLOAD: Option = ("payload", make_placeholder("payload"))
TITLE = make_placeholder("title")


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do: the action, what it is done to, and options as pairs of name and value."""

    action: Action
    target: str = ""
    options: tuple[Option, ...] = ()

    def values(self, name: str) -> list[str]:
        """The values of an option, in their order."""
        return [value for each, value in self.options if each == name]


Part: TypeAlias = str | Advice


class AdviceText(str):
    """Text whose `parts` are plain texts and advice; as a `str` it is what a program reads."""

    __slots__ = ("parts",)

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Self:
        flat = [each for part in parts for each in parts_of(part)]
        made = super().__new__(cls, "".join(map(_describe_part, flat)))
        made.parts = tuple(_merge_texts(flat))
        return made

    def __add__(self, other: str) -> AdviceText:
        return AdviceText(self, other)

    def __radd__(self, other: str) -> AdviceText:
        return AdviceText(other, self)

    @property
    def advice(self) -> tuple[Advice, ...]:
        return tuple(each for each in self.parts if isinstance(each, Advice))


def _describe_part(part: Part) -> str:
    return part if isinstance(part, str) else describe_call(part)


def _merge_texts(parts: Iterable[Part]) -> Iterator[Part]:
    """The same parts, of which no two plain texts follow each other and none is empty."""
    for is_text, group in groupby(parts, key=lambda each: isinstance(each, str)):
        if not is_text:
            yield from group
        elif text := "".join(map(_describe_part, group)):
            yield text


def advise(action: Action, target: str = "", *options: Option) -> AdviceText:
    """A text that is one piece of advice and nothing else."""
    return AdviceText(Advice(action, target, options))


def parts_of(text: Part) -> tuple[Part, ...]:
    """The parts of a text; one without advice is its only part."""
    return text.parts if isinstance(text, AdviceText) else (text,)


def advice_of(text: str) -> tuple[Advice, ...]:
    return text.advice if isinstance(text, AdviceText) else ()


def message_of(error: HoldfastError) -> str:
    """The message of an error with the advice that it carries; `str(error)` is plain text."""
    message = error.args[0] if error.args else None
    return message if isinstance(message, AdviceText) else str(error)


def join_texts(separator: str, texts: Iterable[str]) -> str:
    """As `separator.join`, but the advice in the texts is kept."""
    found = list(texts)
    if not any(isinstance(each, AdviceText) for each in found):
        return separator.join(found)
    between = chain.from_iterable((separator, each) for each in found)
    return AdviceText(*list(between)[1:])


# The names of the calls that take a target and options, for tasks; {} is `runs` for a run.
_CALLS = {
    Action.ANSWER: "hf.answer",
    Action.APPROVE: "hf.approve",
    Action.CANCEL: "hf.{}.cancel",
    Action.DELETE: "hf.tasks.delete",
    Action.ENQUEUE: "hf.tasks.enqueue",
    Action.FINALIZE_PLAN: "hf.tasks.finalize_plan",
    Action.LIFT_LIMIT: "hf.tasks.lift_limit",
    Action.LIST_TASKS: "hf.runs.tasks",
    Action.LIST_WORKERS: "hf.workers.list",
    Action.REJECT: "hf.reject",
    Action.REOPEN: "hf.tasks.reopen",
    Action.RESET: "hf.tasks.reset",
    Action.RETRY: "hf.{}.retry",
    Action.RUN_NOW: "hf.tasks.run_now",
    Action.SIGNAL: "hf.signal",
    Action.START_PLANNING: "hf.tasks.start_planning",
    Action.UNBLOCK: "hf.tasks.unblock",
    Action.WHY: "hf.why",
}
_PHRASES = {
    Action.NAME_STEP: 'run.task("…")',
    Action.WAIT_LONGER: "raise the setting 'patience'",
    Action.WRITE_TIME: (
        "pass a datetime with a time zone, or its text such as '2030-01-31T09:00+01:00', "
        "microseconds since 1970, or a duration from now such as '2s' or a timedelta"
    ),
}


def describe_call(advice: Advice) -> str:
    """Advice as a Python program is given it: a call, or a phrase where there is no call."""
    target = advice.target
    match advice.action:
        case Action.NAME_STEP | Action.WAIT_LONGER | Action.WRITE_TIME:
            return _PHRASES[advice.action]
        case Action.PRINT_WHY:
            return f'print(hf.why("{target}"))'
        case Action.ADD_CHILD:
            title = _quote(TITLE)
            return f'hf.tasks.create(NewTask(title={title}, parent="{target}", enqueue=False))'
        case Action.START_WORKER:
            return f"hf.worker({_describe_offer(advice)}).run()"
        case Action.CLAIM:
            return f'hf.work.claim("worker", {_describe_offer(advice)})'
        case Action.RESUME:
            name = "hf.runs.resume" if is_run(target) else "hf.tasks.unhold"
        case _:
            name = _CALLS[advice.action].format("runs" if is_run(target) else "tasks")
    arguments = [_quote(target)] if target else []
    return f"{name}({', '.join([*arguments, *map(_describe_option, advice.options)])})"


def is_run(target: str) -> bool:
    return target.startswith("r_")


def _describe_offer(advice: Advice) -> str:
    tags = advice.values("tag")
    agents = f"agents={json.dumps(advice.values('agent'))}"
    return f"{agents}, tags={json.dumps(tags)}" if tags else agents


def _describe_option(option: Option) -> str:
    name, value = option
    match name:
        case "need":
            return f"[{_quote(value)}]"
        case "step":
            return f"{name}={_quote(value)}"
        case "add_usd" | "add_attempts":
            return f"{name}={value}"
        case _:
            return _quote(value)


def _quote(value: str) -> str:
    return f'"{value}"'


_ACTIONS = {
    name.format(kind): action for action, name in _CALLS.items() for kind in ("runs", "tasks")
} | {"hf.runs.resume": Action.RESUME, "hf.tasks.unhold": Action.RESUME}
_OPTIONS = {
    Action.ANSWER: ("answer",),
    Action.RESUME: ("hold",),
    Action.SIGNAL: ("signal", "payload"),
    Action.UNBLOCK: ("need",),
}
_PHRASE_ACTIONS = {phrase: action for action, phrase in _PHRASES.items()}
_DESCRIBED = re.compile(
    "|".join(
        [
            r'print\(hf\.why\("([^"]*)"\)\)',
            r"(hf\.[a-z_.]+)\(([^()]*)\)",
            *map(re.escape, _PHRASE_ACTIONS),
        ]
    )
)


def read_stored(text: str) -> str:
    """A text with advice, from one that was kept as a program reads it: the error of an attempt.

    The store keeps such a text alone. What does not describe advice to the letter stays as it is.
    """
    parts: list[Part] = []
    end = 0
    for found in _DESCRIBED.finditer(text):
        advice = _read_call(found)
        if advice is not None and describe_call(advice) == found[0]:
            parts += [text[end : found.start()], advice]
            end = found.end()
    return AdviceText(*parts, text[end:]) if parts else text


def _read_call(found: re.Match[str]) -> Advice | None:
    printed, name, given = found.groups()
    if printed is not None:
        return Advice(Action.PRINT_WHY, printed)
    if name is None:
        return Advice(_PHRASE_ACTIONS[found[0]])
    if name not in _ACTIONS:
        return None
    action = _ACTIONS[name]
    target, *arguments = [each.strip('[]"') for each in given.split(", ")]
    names = iter(_OPTIONS.get(action, ()))
    return Advice(action, target, tuple(_read_option(each, next(names, "")) for each in arguments))


def _read_option(argument: str, name: str) -> Option:
    """An option by its own name, or by that of its place."""
    own, given, value = argument.partition("=")
    return (own, value.strip('"')) if given else (name, argument)
