"""Command lines: advice written as commands, for the command line and HTTP.

A command that a text names in backticks is the same for both; the front end only adds the chosen
store, as it does to each command of advice.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.model.advice import TITLE, Action, Advice, message_of, parts_of

# Writes a command as the caller has to type it, with the chosen store where that is needed.
WriteCommand = Callable[[str], str]
# The agents that a worker of the caller's project has commands for; asked only where it matters.
ListAgents = Callable[[], Collection[str]]
ANY_PROGRAM = "MODULE:NAME"
DEFAULT_AGENT = "default"

# A command with one of these options names its store already, or needs none.
_OPTIONS_WITHOUT_STORE = (" --db ", " --server ", " --help")

_COMMANDS = {
    Action.ANSWER: "answer",
    Action.APPROVE: "approve",
    Action.CANCEL: "cancel",
    Action.DELETE: "task delete",
    Action.ENQUEUE: "task enqueue",
    Action.FINALIZE_PLAN: "plan finalize",
    Action.LIFT_LIMIT: "resume --agent",
    Action.LIST_TASKS: "tasks --run",
    Action.LIST_WORKERS: "workers",
    Action.PRINT_WHY: "why",
    Action.REJECT: "reject",
    Action.REOPEN: "retry --again",
    Action.RESET: "task reset",
    Action.RESUME: "resume",
    Action.RETRY: "retry",
    Action.RUN_NOW: "task run-now",
    Action.SIGNAL: "signal",
    Action.START_PLANNING: "plan start",
    Action.UNBLOCK: "task unblock",
    Action.WHY: "why",
}
_PHRASES = {
    Action.NAME_STEP: "RUN:step",
    Action.WAIT_LONGER: "try again when it is done",
    Action.WRITE_TIME: (
        "write a time such as 2030-01-31T09:00+01:00, or a duration from now such as 10m"
    ),
}


class AdviceWords(Protocol):
    """The words in which a front end writes advice."""

    def describe_text(self, text: str) -> str:
        """A text with its advice in these words."""

    def describe_advice(self, advice: Advice, *, app: str | None = None) -> str:
        """One piece of advice; with an `app`, a worker is one of that program."""

    def describe_log(self, task_id: str) -> str:
        """The advice to read the log of a task."""


@dataclass(frozen=True, slots=True)
class CommandWords:
    """Advice in commands, each written by `typed`; a worker runs the agents of `commanded`."""

    typed: WriteCommand = str
    commanded: ListAgents = tuple

    def describe_text(self, text: str) -> str:
        return describe_text(text, self.typed, self.commanded)

    def describe_advice(self, advice: Advice, *, app: str | None = None) -> str:
        return describe_command(advice, self.typed, app=app, commanded=self.commanded)

    def describe_log(self, task_id: str) -> str:
        return self.typed(f"holdfast logs {task_id}")


def describe_text(text: str, typed: WriteCommand = str, commanded: ListAgents = tuple) -> str:
    """A text with its advice as commands, each written by `typed`."""
    return "".join(
        describe_command(each, typed, commanded=commanded)
        if isinstance(each, Advice)
        else _write_named_commands(each, typed)
        for each in parts_of(text)
    )


def describe_message(error: HoldfastError, typed: WriteCommand = str) -> str:
    """The message of an error, with its advice as commands."""
    return describe_text(message_of(error), typed)


def describe_command(
    advice: Advice,
    typed: WriteCommand = str,
    *,
    app: str | None = None,
    commanded: ListAgents = tuple,
) -> str:
    """The command of advice, or a phrase where there is none; with an `app`, its own worker.

    What an agent of `commanded` does is not to be claimed by hand: a worker does it.
    """
    match advice.action:
        case Action.NAME_STEP | Action.WAIT_LONGER | Action.WRITE_TIME:
            return _PHRASES[advice.action]
        case Action.START_WORKER:
            return typed(describe_worker(advice.values("agent"), advice.values("tag"), app))
        case Action.CLAIM:
            agents, tags = advice.values("agent"), advice.values("tag")
            if agents and {*agents} <= {*commanded()}:
                return typed(describe_worker(agents, tags))
            return typed(" ".join(["holdfast work claim", *_describe_offer(agents, tags)]))
        case Action.ADD_CHILD:
            return typed(f"holdfast plan add {advice.target} {shlex.quote(TITLE)}")
        case _:
            words = ["holdfast", _COMMANDS[advice.action]]
    words += [advice.target] if advice.target else []
    words += [word for option in advice.options if (word := _describe_option(*option))]
    return typed(" ".join(words))


def describe_worker(agents: Sequence[str], tags: Sequence[str], app: str | None = None) -> str:
    """The command that starts a worker, with the program whose functions the worker is to run."""
    # The worker of a program serves the default agent unless the command names another.
    named = [] if app is not None and {*agents} == {DEFAULT_AGENT} else agents
    return " ".join(["holdfast worker", *([app] if app else []), *_describe_offer(named, tags)])


def _describe_offer(agents: Sequence[str], tags: Sequence[str]) -> list[str]:
    return [f"--agent {agent}" for agent in agents] + [f"--tag {tag}" for tag in tags]


def _describe_option(name: str, value: str) -> str:
    match name:
        case "step":
            return f"--from {shlex.quote(value)}"
        case "add_usd" | "add_attempts":
            return f"--{name.replace('_', '-')} {value}"
        case "need":
            return f"--needs {value}"
        case "hold":
            return ""
        case _:
            return shlex.quote(value)


def find_named_commands(text: str) -> list[str]:
    """The commands that a text names in backticks."""
    # A piece without a closing backtick is no command.
    return [each for each in text.split("`")[1:-1:2] if each.startswith("holdfast ")]


def _write_named_commands(text: str, typed: WriteCommand) -> str:
    """A plain text, in which `typed` has written each command in backticks."""
    for command in dict.fromkeys(find_named_commands(text)):
        if not any(each in command for each in _OPTIONS_WITHOUT_STORE):
            text = text.replace(f"`{command}`", f"`{typed(command)}`")
    return text
