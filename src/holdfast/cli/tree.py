"""A run drawn as a tree: what is done, what runs, what waits and for whom."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.session import with_store
from holdfast.cli.terminal import columns, cut, escape, paint, width_of
from holdfast.cli.words import SECOND, ago, coloured, error_line, money, now, one_line, span
from holdfast.service.outline import Node, outline
from holdfast.service.usage import usd
from holdfast.service.views import View, read_time

KEPT = 4
MARKS = {
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("⊘", "magenta"),
    "running": ("●", "cyan"),
}
WAITS = ("○", "dim")
PERSON = ("◆", "yellow")


def draw_run(run: View, note: str = "") -> list[str]:
    """The lines of a run: itself first, then its steps."""
    nodes = outline(run.get("tasks", ()))
    return [draw_head(run), *_draw(nodes, 0, {node.task["id"]: node for node in _all(nodes)}, note)]


def draw_head(run: View) -> str:
    begun = read_time(run["created_at"]) or 0
    ended = read_time(run.get("finished_at"))
    held = run["holds"] and ended is None
    parts = [
        f"{paint(escape(run['workflow']), 'bold')} {run['id']}",
        coloured(run["status"]) + (f" ({', '.join(run['holds'])})" if held else ""),
        money(usd(run.get("usage"))),
        span((ended or now()) - begun),
    ]
    if run.get("error") is not None:
        parts.append(paint(error_line(run["error"]), "red"))
    return " · ".join(part for part in parts if part)


def _all(nodes: Sequence[Node]) -> list[Node]:
    return [each for node in nodes for each in (node, *_all(node.children))]


def _draw(nodes: Sequence[Node], depth: int, known: dict[str, Node], note: str) -> list[str]:
    lines: list[str] = []
    wait: list[Node] = []
    wide = max((len(escape(node.label)) for node in nodes if not _waits(node)), default=0)
    for node in _shown(nodes):
        if node is None:
            lines.append("  " * depth + paint("✓ …", "dim"))
        elif _waits(node) and depth == 0:
            wait.append(node)
        else:
            lines += [*_waiting(wait, known), *_one(node, depth, wide, known, note)]
            wait = []
    return [*lines, *_waiting(wait, known)]


def _shown(nodes: Sequence[Node]) -> list[Node | None]:
    """Of a long list of items the last that are done, after a mark for those before."""
    done = [node for node in nodes if node.status == "done" and node.task["kind"] == "group"]
    hidden = {id(node) for node in done[:-KEPT]}
    shown: list[Node | None] = [node for node in nodes if id(node) not in hidden]
    return [None, *shown] if hidden else shown


def _waits(node: Node) -> bool:
    return node.status in {"queued", "idle"} and not node.under_way and not _person(node)


def _person(node: Node) -> bool:
    task = node.task
    asked = task["kind"] == "approval" or bool({"approval", "question"} & {*task["holds"]})
    return asked and node.open and task["state"] not in {"blocked", "stalled"}


def _waiting(nodes: Sequence[Node], known: dict[str, Node]) -> list[str]:
    """Steps that wait, side by side as far as they fit."""
    edge = columns() or 100
    lines: list[str] = []
    row = ""
    for node in nodes:
        said = f"{paint(*WAITS)} {escape(node.label)}{_reason(node, known, short=True)}"
        if row and width_of(row) + width_of(said) + 3 > edge:
            lines.append(row)
            row = ""
        row = f"{row}   {said}" if row else said
    return [*lines, row] if row else lines


def _one(node: Node, depth: int, wide: int, known: dict[str, Node], note: str) -> list[str]:
    under = node.under_way and bool(node.children)
    mark, style = ("▾", "cyan") if under else PERSON if _person(node) else _mark(node)
    indent = "  " * depth
    label = escape(node.label).ljust(wide)
    line = f"{indent}{paint(mark, style)} {label}  {'  '.join(_details(node, known))}".rstrip()
    lines = [line]
    for said in _below(node, note):
        room = (columns() or 1_000) - len(indent) - 4
        lines.append(f"{indent}  {paint('└ ' + cut(said, room), 'dim')}")
    if under or node.status in {"failed", "cancelled"}:
        lines += _draw(node.children, depth + 1, known, note)
    return lines


def _mark(node: Node) -> tuple[str, str]:
    if node.task["skipped"]:
        return ("-", "dim")
    return MARKS.get(node.status, WAITS)


def _details(node: Node, known: dict[str, Node]) -> list[str]:
    task = node.task
    done, total = node.items
    parts = [
        f"{done}/{total}" if total and task["kind"] == "group" and node.open else "",
        span(node.took(now())),
        money(usd(task.get("usage"))),
        _tried(task),
    ]
    if node.status == "failed" and task.get("error") is not None and task["kind"] != "group":
        parts.append(paint(error_line(task["error"]), "red"))
    elif node.status == "done":
        parts.append("skipped" if task["skipped"] else _given(node))
    elif node.open and node.status != "running" and not node.under_way:
        parts.append(_reason(node, known).strip())
    return [part for part in parts if part]


def _tried(task: View) -> str:
    told = []
    if task["lost"]:
        told.append(f"{task['lost']} lost")
    if task["failures"] and task["status"] != "failed":
        told.append(f"{task['failures']} failed")
    rounds = f"round {task['round'] + 1}" if task["round"] else ""
    attempts = ""
    if task["attempt"] > 1 or told:
        attempts = f"attempt {task['attempt']}" + (f" ({', '.join(told)})" if told else "")
    return "  ".join(each for each in (attempts, rounds) if each)


def _given(node: Node) -> str:
    output = node.task.get("output")
    if isinstance(output, list):
        return f"{len(output)} items"
    if isinstance(output, dict) and output.get("verdict") == "accept":
        return "accepted"
    return paint(one_line(output, 40), "dim") if isinstance(output, str | int | float) else ""


def _below(node: Node, note: str) -> list[str]:
    """What a running step says of itself, and what a person is asked."""
    task = node.task
    if _person(node):
        asked = task.get("question") or (task["title"] if task["kind"] == "approval" else None)
        said = [] if asked is None else [one_line(asked)]
        return [*said, with_store(what_to_say(task))]
    if node.status != "running" or node.children:
        return []
    return [one_line(each) for each in (task.get("progress"), note or None) if each is not None]


def what_to_say(task: View) -> str:
    """The command that gives a task the word of a person it waits for."""
    if "question" in task["holds"]:
        return f"holdfast answer {task['id']} …"
    return f"holdfast approve {task['id']}"


def _reason(node: Node, known: dict[str, Node], *, short: bool = False) -> str:
    task = node.task
    if _person(node) or (short and task["kind"] == "approval"):
        return " (you)"
    if task["holds"]:
        return f" held: {', '.join(task['holds'])}"
    said = {"scheduled": _time, "waiting": _awaited}
    if not short:
        said |= {"blocked": lambda task: _needs(task, known)}
    told = said.get(task["state"])
    if told is not None:
        return f" {told(task)}"
    return f" {task['state']}" if task["state"] in {"stalled", "held"} and not short else ""


def _needs(task: View, known: dict[str, Node]) -> str:
    needs = [known[each].label for each in task["blocked_by"] if each in known]
    return f"after {escape(', '.join(needs))}" if needs else "blocked"


def _time(task: View) -> str:
    left = (read_time(task.get("scheduled_for")) or 0) - now()
    return f"in {span(left)}" if left > SECOND else "due now"


def _awaited(task: View) -> str:
    return f"waits for {escape(str(task.get('waits_for', '')).partition(' ')[2] or 'its children')}"


def draw_task(task: View, attempts: Sequence[View]) -> list[str]:
    """A task alone: how it stands, and every attempt it had."""
    title = escape(task["title"])
    lines = [f"{paint(title, 'bold')} {task['id']} · {coloured(task['state'])}"]
    place = [
        f"run {task['run_id']}" if "run_id" in task else "",
        f"step {escape(task['step'])}" if "step" in task else "",
        f"agent {escape(task['agent'])}",
        f"tags {escape(', '.join(task['tags']))}" if task["tags"] else "",
        f"key {escape(task['key'])}" if "key" in task else "",
        f"priority {task['priority']}" if task["priority"] else "",
    ]
    lines.append("  " + " · ".join(part for part in place if part))
    if task["holds"]:
        lines.append(f"  held: {', '.join(task['holds'])}")
    if task["blocked_by"]:
        lines.append(f"  after {', '.join(task['blocked_by'])}")
    told = ("payload", "question", "feedback", "progress", "output")
    lines += [f"  {name:<9} {one_line(task[name], 1_000)}" for name in told if name in task]
    if task.get("error") is not None:
        lines.append(f"  error     {paint(error_line(task['error']), 'red')}")
    return lines + [draw_attempt(each) for each in attempts]


def draw_attempt(attempt: View) -> str:
    begun, ended = read_time(attempt["claimed_at"]), read_time(attempt.get("ended_at"))
    took = span((ended or now()) - (begun or 0))
    outcome = attempt.get("outcome", "running")
    error = f"  {error_line(attempt['error'])}" if attempt.get("error") is not None else ""
    cost = money(usd(attempt.get("usage")))
    parts = (coloured(outcome), took, cost, f"by {escape(attempt['owner'])}", ago(begun))
    told = "  ".join(part for part in parts if part)
    return f"  attempt {attempt['attempt']}  {told}{error}"
