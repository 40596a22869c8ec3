"""The status of one step in a few words, and the command that lets the step go on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.cli.app.session import with_store
from holdfast.cli.app.terminal import escape, format_json, paint, strip_codes_of
from holdfast.cli.render.formats import (
    SECOND,
    advise_spent_run,
    describe_error_line,
    format_count,
    format_money,
    format_span,
    now,
    one_line,
)
from holdfast.model.advice import ANSWER, Action, Advice
from holdfast.model.effect import read_awaited
from holdfast.model.task import VERIFYING
from holdfast.service.queries.command_lines import describe_command
from holdfast.service.queries.run_tree import TaskNode
from holdfast.service.queries.views import View, read_time

# As many characters of a commit as git itself shows at least.
SHORT_COMMIT = 7
SYMBOLS = {
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("⊘", "magenta"),
    "running": ("●", "cyan"),
}


def status_symbol(node: TaskNode) -> tuple[str, str]:
    """A symbol for the status of a step, and its colour."""
    if node.asks_person:
        return ("◆", "yellow")
    if node.is_under_way and node.children:
        return ("▾", "cyan")
    if node.task["skipped"]:
        return ("-", "dim")
    return SYMBOLS.get(node.status, ("○", "dim"))


# The statuses by which steps are counted, those first that a person should see first.
_COUNTED = (
    ("◆", "waiting for you"),
    ("✗", "failed"),
    ("●", "running"),
    ("▾", "under way"),
    ("⊘", "cancelled"),
    ("✓", "done"),
    ("-", "skipped"),
    ("○", "waiting"),
)
_RANKS = {symbol: rank for rank, (symbol, _) in enumerate(_COUNTED)}


def rank_status(node: TaskNode) -> int:
    """The place of a step among others: what asks a person or failed comes first.

    The place of an open group is that of the first step in it.
    """
    inner = [rank_status(each) for each in node.children] if node.is_open else []
    return min([_RANKS[status_symbol(node)[0]], *inner])


def count_by_status(nodes: Sequence[TaskNode]) -> list[str]:
    """How many of some steps have each status: `✓ 12 done`."""
    counts = Counter(map(rank_status, nodes))
    return [
        f"{symbol} {counts[rank]} {word}"
        for rank, (symbol, word) in enumerate(_COUNTED)
        if counts[rank]
    ]


def describe_feedback(node: TaskNode, rounds: int) -> str:
    """The round of a step that is not done, and the feedback that the step was given for it."""
    feedback = node.task.get("feedback")
    if feedback is None or not node.is_open or node.asks_person:
        return ""
    said = json.dumps(strip_codes_of(feedback), ensure_ascii=False)
    return f"{f'round {rounds + 1}' if rounds else 'feedback'}: {one_line(said)}"


def describe_details(node: TaskNode, labels: Mapping[str, str]) -> list[str]:
    """The duration, cost and attempts of a step, and its output, error or reason to wait."""
    task = node.task
    done, total = node.items_done
    parts = [
        f"{done}/{total}" if total and task["kind"] == "group" and node.is_open else "",
        format_span(node.duration_until(now())),
        format_money(node.cost),
        _describe_attempts(task),
        _describe_escalation(task),
        VERIFYING if task["state"] == VERIFYING else "",
    ]
    if node.status == "failed" and task.get("error") is not None and not node.children:
        parts.append(paint(describe_error_line(task["error"]), "red"))
    elif node.status == "done" and task["state"] != VERIFYING:
        parts.append(_describe_skip(task) if task["skipped"] else _describe_output(node))
    elif node.asks_person or (node.is_open and node.status != "running" and not node.is_under_way):
        parts.append(describe_reason(node, labels))
    return [part for part in parts if part]


def _describe_skip(task: View) -> str:
    """That a step was skipped, and the failure that it was skipped for, if there was one."""
    if task.get("error") is None:
        return "skipped"
    return f"skipped after {paint(describe_error_line(task['error']), 'dim')}"


def _describe_attempts(task: View) -> str:
    """The number of the attempt after a failed or lost one; wake-ups are attempts too."""
    told = []
    if task["lost"]:
        told.append(f"{task['lost']} lost")
    if task["failures"] and task["status"] != "failed":
        told.append(f"{task['failures']} failed")
    before = task["failures"] - (task["status"] == "failed")
    if not task["lost"] and before < 1:
        return ""
    return f"attempt {task['attempt']}" + (f" ({', '.join(told)})" if told else "")


def _describe_escalation(task: View) -> str:
    """The agent that a step was handed to after another had failed for good."""
    if "escalated_from" not in task:
        return ""
    return f"{escape(task['agent'])} after {escape(task['escalated_from'])} failed"


def _describe_output(node: TaskNode) -> str:
    """The commit of a completed step, and the verdict, or its output if that is short."""
    commit = paint(_find_commit(node)[:SHORT_COMMIT], "dim")
    return "  ".join(each for each in (commit, _describe_result(node)) if each)


def _find_commit(node: TaskNode) -> str:
    """The commit of a step, or the newest one of an item of a loop."""
    if node.task.get("item") is None or not node.children:
        return str(node.task.get("commit", ""))
    made = [leaf.task["commit"] for leaf in node.leaves if "commit" in leaf.task]
    return str(made[-1]) if made else ""


def _describe_result(node: TaskNode) -> str:
    rounds = max(leaf.task["round"] for leaf in node.leaves)
    judged = f"accepted, round {rounds + 1}" if rounds else ""
    output = node.task.get("output")
    if isinstance(output, dict) and "commit" in output:
        output = _without_commit(output)
    if isinstance(output, dict) and output.get("verdict") == "accept":
        return judged or "accepted"
    if node.children and node.task.get("item") is not None:
        return judged
    if isinstance(output, list):
        return format_count(len(output), "item")
    if output == {}:
        return ""
    if isinstance(output, dict) and len(output) == 1:
        ((name, listed),) = output.items()
        return _count_named(escape(name), listed) if isinstance(listed, list) else ""
    short = isinstance(output, str | int | float) and not isinstance(output, bool)
    return paint(one_line(output, 40), "dim") if short else ""


def _without_commit(output: View) -> View:
    """An output without what Holdfast has added to it for the commit of its step."""
    from holdfast.model.workflow.declarations import RECORDED
    from holdfast.model.workflow.line import is_sha

    if not is_sha(output["commit"]):
        return output
    return {name: each for name, each in output.items() if name not in RECORDED}


def _count_named(name: str, listed: list[object]) -> str:
    """How long a list is that an output has under a name in the plural: `3 stories`."""
    return f"{name}: 1" if len(listed) == 1 else f"{len(listed)} {name}"


def describe_reason(node: TaskNode, labels: Mapping[str, str], *, short: bool = False) -> str:
    """The reason why a step waits."""
    task = node.task
    if node.asks_person or (short and task["kind"] == "approval"):
        return "(you)"
    if held := task if task["holds"] else called_and_held(task):
        return describe_holds(held)
    match task["state"]:
        case "blocked" if not short:
            needs = [labels[each] for each in task["blocked_by"] if each in labels]
            return f"after {escape(', '.join(needs))}" if needs else "blocked"
        case "scheduled":
            return _describe_time(task)
        case "waiting":
            awaited = read_awaited(str(task.get("waits_for", "")))
            names = [*awaited.signals, *(["its children"] if awaited.children else [])]
            return f"waits for {escape(' or '.join(names))}"
        case state:
            told = state in {"stalled", "held"} or node.needs_start
            return state if told and not short else ""


def _describe_time(task: View) -> str:
    """When a scheduled task is due; a task without a time waits for that of its run."""
    due = read_time(task.get("scheduled_for"))
    if due is None:
        return "with its run"
    left = due - now()
    return f"in {format_span(left)}" if left > SECOND else "due now"


def describe_holds(held: View) -> str:
    """The holds of a task or run, when they lift by themselves, and who has its slot."""
    until = read_time(held.get("held_until"))
    lifts = f", lifts in {format_span(until - now())}" if until is not None else ""
    slot = f", {escape(held['slot'])}" if held.get("slot") else ""
    return f"held: {', '.join(held['holds'])}{lifts}{slot}"


def called_and_held(task: View) -> View | None:
    """The run that a step called and waits for, if that run is on hold."""
    child: View = task.get("child", {})
    return child if child.get("holds") and not child.get("superseded") else None


def question_of_task(task: View) -> str:
    """The question of a task to a person, as text."""
    asked = outputs_asked_of(task)
    return asked if isinstance(asked, str) else format_json(strip_codes_of(asked))


def outputs_asked_of(task: View) -> Any:  # noqa: ANN401 - JSON is any value
    """The question of a task to a person: its own, its title, or how to go on after a failure.

    For a task that asks nothing, a sentence on its state until a person lets it go on.
    """
    if task.get("question") is not None:
        return task["question"]
    if task["kind"] == "approval":
        return task["title"]
    if not {"approval", "question"} & {*task["holds"]}:
        return "it is not in the queue" if task["status"] == "idle" else "it is paused"
    error = task.get("error")
    if error is None and not task["failures"]:
        return "it waits for approval"
    problem = "it failed" if error is None else f"it failed with {describe_error_line(error)}"
    return f"{problem}; approve has it tried again, reject has it fail"


def describe_waiting(task: View) -> str:
    """The address and the question of a task that waits for a person."""
    return f"{one_line(task['address'], 60)}  {one_line(outputs_asked_of(task), 120)}"


def advise_settling(task: View, held: Mapping[str, View]) -> str:
    """The command for a task that asks a person; for an approval, also the need of a held run."""
    said = with_store(advise_answer(task))
    run = held.get(task.get("run_id", "")) if task["kind"] == "approval" else None
    return said if run is None else f"{said}   ({_describe_first_need(run)})"


def _describe_first_need(run: View) -> str:
    """The condition under which approvals of a run on hold can be settled."""
    if "paused" in run["holds"]:
        return f"after `{with_store('holdfast resume ' + run['id'])}`"
    if "budget" in run["holds"]:
        return f"after `{with_store(advise_spent_run(run))}`"
    return f"when it is held no more: `{with_store('holdfast why ' + run['id'])}`"


def held_runs(run: View) -> dict[str, View]:
    """A run and the runs that it called, by id, as far as they are running and on hold."""
    own = {run["id"]: run} if run.get("holds") and run["status"] == "running" else {}
    called = [held_runs(task["child"]) for task in run.get("tasks", ()) if "child" in task]
    return own | {each: view for below in called for each, view in below.items()}


def advise_answer(task: View, verb: str = "approve") -> str:
    """The command that answers, approves, enqueues or resumes a task that waits for a person."""
    if "question" in task["holds"]:
        return describe_command(Advice(Action.ANSWER, task["id"], (ANSWER,)))
    if task["kind"] != "approval" and "approval" not in task["holds"]:
        idle = task["status"] == "idle"
        return f"holdfast {'task enqueue' if idle else 'resume'} {task['id']}"
    return f"holdfast {verb} {task['id']}"
