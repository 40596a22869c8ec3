"""Trees: a run with its steps, or a task with its attempts, drawn as lines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from holdfast.cli.app.session import with_store
from holdfast.cli.app.terminal import cut, escape, paint, terminal_width, width_of
from holdfast.cli.render.formats import (
    SECOND,
    cost_of,
    describe_error_line,
    describe_start,
    draw_traceback,
    format_ago,
    format_money,
    format_span,
    format_state,
    now,
    one_line,
    state_of_run,
    time_since_start,
)
from holdfast.cli.render.step_status import (
    advise_answer,
    advise_settling,
    called_and_held,
    describe_details,
    describe_holds,
    describe_reason,
    held_runs,
    outputs_asked_of,
    status_symbol,
)
from holdfast.service.queries.run_tree import TaskNode, build_task_trees
from holdfast.service.queries.views import View, read_cost, read_time

LINES_KEPT = 4
LastLines = Mapping[str, tuple[str, float]]


def draw_run(
    run: View, last_lines: LastLines | None = None, *, unfolded: bool = False
) -> list[str]:
    """The lines of a run: its head, its steps, and the last log line of each running step.

    What is done is folded, unless everything is to be `unfolded`.
    """
    nodes = build_task_trees(run.get("tasks", ()))
    return [draw_head(run), *_draw_nodes(run, nodes, last_lines or {}, unfolded=unfolded)]


def draw_part(run: View, task_id: str) -> list[str]:
    """The tree below one task of a run, with all that is done in it; no lines if there is none."""
    nodes = _all_nodes(build_task_trees(run.get("tasks", ())))
    below = [child for node in nodes if node.task["id"] == task_id for child in node.children]
    return [f"  {line}" for line in _draw_nodes(run, below, {}, unfolded=True)]


def _draw_nodes(
    run: View, nodes: Sequence[TaskNode], last_lines: LastLines, *, unfolded: bool
) -> list[str]:
    labels = {node.task["id"]: node.label for node in _all_nodes(nodes)}
    return _TreeDrawing(labels, last_lines, held_runs(run), unfolded=unfolded).draw(nodes, 0)


def draw_head(run: View) -> str:
    ended = read_time(run.get("finished_at"))
    due = read_time(run.get("deadline"))
    caller = run.get("caller")
    parts = [
        f"{paint(escape(run['workflow']), 'bold')} {run['id']}",
        f"called by {escape(caller['step'])} of {caller['run_id']}" if caller else "",
        _describe_status(run),
        cost_of(run),
        time_since_start(run),
        f"{format_span(due - now())} left" if due is not None and ended is None else "",
    ]
    if run.get("error") is not None:
        parts.append(paint(describe_error_line(run["error"]), "red"))
    return " · ".join(part for part in parts if part)


def _describe_status(run: View) -> str:
    """The status of a run with its holds, and when it starts."""
    later = state_of_run(run) == "scheduled"
    held = (
        [each for each in run["holds"] if each != "scheduled"] if "finished_at" not in run else []
    )
    starts = f" {describe_start(run)}" if later else ""
    return format_state(state_of_run(run)) + starts + (f" ({', '.join(held)})" if held else "")


def _all_nodes(nodes: Sequence[TaskNode]) -> list[TaskNode]:
    return [each for node in nodes for each in (node, *_all_nodes(node.children))]


class _TreeDrawing:
    def __init__(
        self,
        labels: Mapping[str, str],
        last_lines: LastLines,
        held: Mapping[str, View],
        *,
        unfolded: bool,
    ) -> None:
        self._unfolded = unfolded
        self._labels = labels
        self._last_lines = last_lines
        self._held = held

    def draw(self, nodes: Sequence[TaskNode], depth: int) -> list[str]:
        shown = nodes if self._unfolded else _leave_out_done(nodes)
        # The waiting steps at the end of a run share lines.
        waiting = _count_waiting_at_end(shown) if depth == 0 and not self._unfolded else 0
        first, last = shown[: len(shown) - waiting], shown[len(shown) - waiting :]
        wide = max((width_of(escape(node.label)) for node in first), default=0)
        lines = [line for node in first for line in self._draw_node(node, depth, wide)]
        if len(shown) < len(nodes):
            lines.insert(0, f"{'  ' * depth}{paint(f'✓ … {len(nodes) - len(shown)} done', 'dim')}")
        return lines + self._draw_waiting(last)

    def _draw_waiting(self, nodes: Sequence[TaskNode]) -> list[str]:
        """The lines of waiting steps, as many steps in a line as fit."""
        edge = terminal_width() or 100
        rows: list[str] = []
        for node in nodes:
            why = describe_reason(node, self._labels, short=True)
            said = f"{paint(*status_symbol(node))} {escape(node.label)}{' ' + why if why else ''}"
            if rows and width_of(rows[-1]) + width_of(said) + 3 <= edge:
                rows[-1] += f"   {said}"
            else:
                rows.append(said)
        return rows

    def _draw_node(self, node: TaskNode, depth: int, wide: int) -> list[str]:
        indent, label = "  " * depth, escape(node.label)
        padded = label + " " * (wide - width_of(label))
        told = "  ".join(describe_details(node, self._labels))
        lines = [f"{indent}{paint(*status_symbol(node))} {padded}  {told}".rstrip()]
        room = None if (edge := terminal_width()) is None else edge - len(indent) - 4
        below = [f"└ {cut(said, room)}" for said in self._lines_below(node)]
        lines += [f"{indent}  {paint(said, 'dim')}" for said in below]
        opened = self._unfolded or node.is_under_way or node.status in {"failed", "cancelled"}
        return lines + (self.draw(node.children, depth + 1) if opened else [])

    def _lines_below(self, node: TaskNode) -> list[str]:
        """The lines below a step: its progress, or a question and the command to answer it."""
        task = node.task
        if node.asks_person:
            return [one_line(outputs_asked_of(task)), advise_settling(task, self._held)]
        if node.needs_start:
            return [with_store(advise_answer(task))]
        if node.status != "running" or node.children:
            return []
        progress = _draw_progress(task)
        if task["id"] not in self._last_lines:
            return progress
        line, when = self._last_lines[task["id"]]
        said = f"{one_line(line)}  {format_span((time.time() - when) * SECOND)} ago"
        return [said] if _has_log(task) else [*progress, said]


def _draw_progress(task: View) -> list[str]:
    if "progress" not in task:
        return []
    return [one_line(task["progress"]["log"] if _has_log(task) else task["progress"])]


def _has_log(task: View) -> bool:
    """Whether the progress of a task is only the last line of its log, as that of commands is."""
    progress = task.get("progress")
    return isinstance(progress, dict) and progress.keys() == {"log"}


def _leave_out_done(nodes: Sequence[TaskNode]) -> list[TaskNode]:
    """The nodes without completed groups, of which only the last few are kept."""
    done = [node for node in nodes if node.status == "done" and node.task["kind"] == "group"]
    hidden = {id(node) for node in done[:-LINES_KEPT]}
    return [node for node in nodes if id(node) not in hidden]


def _count_waiting_at_end(nodes: Sequence[TaskNode]) -> int:
    count = 0
    for node in reversed(nodes):
        stands = node.asks_person or node.needs_start
        if node.status not in {"queued", "idle"} or node.is_under_way or stands:
            break
        count += 1
    return count


def draw_task(task: View) -> list[str]:
    """The lines of a task: its state, its fields, its children and its attempts."""
    took = format_span(TaskNode(task=task, address="", label="").duration_until(now()))
    head = [
        f"{paint(escape(task['title']), 'bold')} {task['id']}",
        format_state(task["state"]),
        took,
    ]
    lines = [" · ".join(part for part in head if part)]
    place = [
        f"run {task['run_id']}" if "run_id" in task else "",
        f"step {escape(task['step'])}" if "step" in task else "",
        f"calls {escape(task['calls'])}" if "calls" in task else f"agent {escape(task['agent'])}",
        f"handed over by {escape(task['escalated_from'])}" if "escalated_from" in task else "",
        task["waits_for"] if "calls" in task and "waits_for" in task else "",
        f"tags {escape(', '.join(task['tags']))}" if task["tags"] else "",
        f"key {escape(task['key'])}" if "key" in task else "",
        f"priority {task['priority']}" if task["priority"] else "",
    ]
    lines.append("  " + " · ".join(part for part in place if part))
    if task["holds"]:
        lines.append(f"  {describe_holds(task)}")
    if (called := called_and_held(task)) is not None:
        lines.append(f"  its run is {describe_holds(called)}")
    if task["blocked_by"]:
        lines.append(f"  after {', '.join(task['blocked_by'])}")
    told = ("payload", "question", "feedback", "progress", "output")
    shown = task | ({"progress": task["progress"]["log"]} if _has_log(task) else {})
    lines += [f"  {name:<9} {one_line(shown[name], 1_000)}" for name in told if name in task]
    lines += _draw_error(task)
    lines += [_draw_child(each) for each in task.get("children", ())]
    return lines + [draw_attempt(each) for each in task["attempts"]]


def _draw_error(task: View) -> list[str]:
    if task.get("error") is None:
        return []
    ended = task["status"] in {"done", "failed", "cancelled"}
    name, colour = ("error", "red") if ended else ("earlier", "dim")
    error = task["error"]
    return [f"  {name:<9} {paint(describe_error_line(error), colour)}", *draw_traceback(error)]


def _draw_child(task: View) -> str:
    failed = task["status"] == "failed" and task.get("error") is not None
    error = f"  {describe_error_line(task['error'])}" if failed else ""
    return f"  {task['id']}  {escape(task['title'])} · {format_state(task['state'])}{error}"


def draw_attempt(attempt: View) -> str:
    begun, ended = read_time(attempt["claimed_at"]), read_time(attempt.get("ended_at"))
    took = format_span((ended or now()) - (begun or 0))
    outcome = attempt.get("outcome", "running")
    error = f"  {describe_error_line(attempt['error'])}" if attempt.get("error") is not None else ""
    cost = format_money(read_cost(attempt.get("usage")))
    parts = (format_state(outcome), took, cost, f"by {escape(attempt['owner'])}", format_ago(begun))
    told = "  ".join(part for part in parts if part)
    return f"  attempt {attempt['attempt']}  {told}{error}{_describe_stop(attempt)}"


def _describe_stop(attempt: View) -> str:
    """The numbers of processes of the command that were stopped, and that could not be."""
    if "stopped_at" not in attempt:
        return ""
    left = f", {attempt['left']} could not be" if attempt["left"] else ""
    processes = "process" if attempt["stopped"] == 1 else "processes"
    return f"  {attempt['stopped']} {processes} stopped{left}"
