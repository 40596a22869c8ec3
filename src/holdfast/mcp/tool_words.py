"""Tool words: advice written as calls of tools, for agents, who have no shell."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from holdfast.errors import HoldfastError
from holdfast.model.advice import TITLE, Action, Advice, is_run, message_of, parts_of

_TOOLS = {
    Action.ANSWER: "answer",
    Action.APPROVE: "approve",
    Action.DELETE: "delete_task",
    Action.ENQUEUE: "enqueue",
    Action.FINALIZE_PLAN: "finalize_plan",
    Action.PRINT_WHY: "why",
    Action.REJECT: "reject",
    Action.REOPEN: "reopen",
    Action.RESET: "reset",
    Action.RESUME: "resume",
    Action.RETRY: "retry",
    Action.RUN_NOW: "run_now",
    Action.SIGNAL: "signal",
    Action.START_PLANNING: "start_planning",
    Action.UNBLOCK: "unblock_task",
    Action.WHY: "why",
}
_PHRASES = {
    Action.NAME_STEP: "RUN:step",
    Action.WAIT_LONGER: "try again when it is done",
    Action.WRITE_TIME: (
        "write a time such as 2030-01-31T09:00+01:00, or a duration from now such as 10m"
    ),
}
# The arguments of a tool that an option of advice becomes; others keep the name of the option.
_ARGUMENTS = {"signal": "name", "need": "needs"}
_LISTED = {"need"}
_NUMBERS = {"add_usd", "add_attempts"}
# The tools that stand for commands which a text names in backticks.
_NAMED = (
    (re.compile(r"retry --again (\S+)"), r'reopen(task_id="\1")'),
    (re.compile(r"retry (r_\S+)"), r'retry(run_id="\1")'),
    (re.compile(r"retry (t_\S+)"), r'retry(task_id="\1")'),
    (re.compile(r"why (r_\S+)"), r'why(run_id="\1")'),
    (re.compile(r"why (t_\S+)"), r'why(task_id="\1")'),
    (re.compile(r"run WORKFLOW"), "start_run"),
    (re.compile(r"tasks --status (\w+)"), r'list_tasks(status="\1")'),
    (re.compile(r"workflow add \S+"), "a person has to add it to the store"),
)
_COMMAND = re.compile(r"`holdfast ([^`]*)`")
_FOR_A_PERSON = "a command that a person types"


class ToolWords:
    """Advice in the calls of tools; what no tool does is for a person to do."""

    def describe_text(self, text: str) -> str:
        return "".join(
            self.describe_advice(each)
            if isinstance(each, Advice)
            else _COMMAND.sub(lambda found: _name_tool(found[1]), each)
            for each in parts_of(text)
        )

    def describe_message(self, error: HoldfastError) -> str:
        """The message of an error, with its advice as calls of tools."""
        return self.describe_text(message_of(error))

    def describe_advice(self, advice: Advice, *, app: str | None = None) -> str:
        if advice.action in _PHRASES:
            return _PHRASES[advice.action]
        agents, tags = advice.values("agent"), advice.values("tag")
        if advice.action is Action.START_WORKER:
            return _describe_worker(agents, tags, app)
        if advice.action is Action.CLAIM:
            return _write_call("claim", {"agents": agents, "tags": tags})
        return _write_call(*_choose_call(advice))

    def describe_log(self, task_id: str) -> str:
        return _write_call("logs", {"task_id": task_id})


TOOL_WORDS = ToolWords()


def _choose_call(advice: Advice) -> tuple[str, dict[str, object]]:
    """The tool of advice, and the arguments of its call."""
    target = advice.target
    kind = "run" if is_run(target) else "task"
    match advice.action:
        case Action.LIST_TASKS:
            return "list_tasks", {"run": target}
        case Action.LIST_WORKERS:
            return "list_workers", {}
        case Action.LIFT_LIMIT:
            return "resume", {"agent": target}
        case Action.CANCEL:
            return f"cancel_{kind}", {f"{kind}_id": target}
        case Action.ADD_CHILD:
            return "add_child", {"task_id": target, "title": TITLE}
        case _:
            return _TOOLS[advice.action], {f"{kind}_id": target, **_read_options(advice)}


def _read_options(advice: Advice) -> dict[str, object]:
    """The options as arguments; the kind of a hold is none, because `resume` lifts any."""
    return {
        _ARGUMENTS.get(name, name): _read_value(name, value)
        for name, value in advice.options
        if name != "hold"
    }


def _read_value(name: str, value: str) -> object:
    if name in _NUMBERS and value.replace(".", "", 1).isdigit():
        return float(value) if "." in value else int(value)
    return [value] if name in _LISTED else value


def _write_call(tool: str, arguments: dict[str, object]) -> str:
    """A call as `retry(task_id="t_1")`; an empty list is left out."""
    told = [
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
        if value != []
    ]
    return f"{tool}({', '.join(told)})"


def _describe_worker(agents: Sequence[str], tags: Sequence[str], app: str | None) -> str:
    served = " and ".join(f'"{each}"' for each in agents)
    offered = f" with {', '.join(tags)}" if tags else ""
    program = "" if app is None else " of the program that has its function"
    return f"a person has to start a worker{program} for {served}{offered}"


def _name_tool(command: str) -> str:
    for form, tool in _NAMED:
        if (found := form.fullmatch(command)) is not None:
            return found.expand(tool)
    return _FOR_A_PERSON
