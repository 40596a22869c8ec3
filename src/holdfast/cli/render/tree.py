"""Trees: a run with its steps, or a task with its attempts, drawn as lines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import NamedTuple

from holdfast.cli.app.session import with_store
from holdfast.cli.app.terminal import cut, escape, paint, terminal_width, width_of
from holdfast.cli.render.formats import (
    SECOND,
    cost_of,
    describe_error_line,
    describe_start,
    draw_traceback,
    format_ago,
    format_bytes,
    format_money,
    format_span,
    format_state,
    now,
    one_line,
    state_of_run,
    time_since_start,
)
from holdfast.cli.render.patch import summarize_change
from holdfast.cli.render.step_status import (
    SHORT_COMMIT,
    advise_answer,
    advise_settling,
    called_and_held,
    count_by_status,
    describe_details,
    describe_feedback,
    describe_holds,
    describe_reason,
    held_runs,
    outputs_asked_of,
    rank_status,
    status_symbol,
)
from holdfast.cli.render.tree_layout import (
    FORMS,
    UNFOLDED,
    WHOLE,
    Screen,
    TreeForm,
    TreeRow,
    lay_out_rows,
)
from holdfast.service.queries.run_tree import TaskNode, build_task_trees
from holdfast.service.queries.views import View, read_cost, read_time

GROUPS_KEPT = 4
LastLines = Mapping[str, tuple[str, float]]


def draw_run(
    run: View,
    last_lines: LastLines | None = None,
    screen: Screen | None = None,
    *,
    unfolded: bool = False,
) -> list[str]:
    """The lines of a run: its head, its steps, and the last log line of each running step.

    On a screen no line is too long, and a tree that is too long is drawn in a form that fits. What
    is done is folded, unless everything is to be `unfolded`.
    """
    nodes = build_task_trees(run.get("tasks", ()))
    rows = _fit_rows(nodes, _tell_run(run, nodes, last_lines, screen), screen, unfolded=unfolded)
    columns = None if screen is None else screen.columns
    return [cut(draw_head(run), columns), *lay_out_rows(rows, columns)]


def draw_part(run: View, task_id: str) -> list[str]:
    """The tree below one task of a run, with all that is done in it; no lines if there is none."""
    nodes = _all_nodes(build_task_trees(run.get("tasks", ())))
    below = [child for node in nodes if node.task["id"] == task_id for child in node.children]
    rows = _TreeDrawing(_tell_run(run, below), UNFOLDED).draw(below)
    return [f"  {line}" for line in lay_out_rows(rows, None)]


def _tell_run(
    run: View,
    nodes: Sequence[TaskNode],
    last_lines: LastLines | None = None,
    screen: Screen | None = None,
) -> _RunTexts:
    return _RunTexts(
        labels={node.task["id"]: node.label for node in _all_nodes(nodes)},
        last_lines=last_lines or {},
        held=held_runs(run),
        change=_describe_change(run),
        columns=terminal_width() if screen is None else screen.columns,
    )


def _fit_rows(
    nodes: Sequence[TaskNode], told: _RunTexts, screen: Screen | None, *, unfolded: bool
) -> list[TreeRow]:
    """The rows in the first form that fits on the screen below the head of the run."""
    whole = UNFOLDED if unfolded else WHOLE
    if screen is None or screen.rows is None:
        return _TreeDrawing(told, whole).draw(nodes)
    most = screen.rows - 1

    def draw(form: TreeForm) -> list[TreeRow]:
        return _TreeDrawing(told, form, most).draw(nodes)

    for form in (whole, *FORMS):
        rows = draw(form)
        if len(rows) <= most:
            return rows
    # The most rows of each list with which the tree still fits.
    fitting, over = 1, most
    while over - fitting > 1:
        tried = (fitting + over) // 2
        if len(draw(replace(FORMS[-1], most=tried))) <= most:
            fitting = tried
        else:
            over = tried
    rows = draw(replace(FORMS[-1], most=fitting))
    if len(rows) <= most:
        return rows
    left = paint(f"… {len(rows) - most + 1} more rows", "dim")
    return [*rows[: most - 1], TreeRow(depth=0, details=left)]


def _describe_change(run: View) -> str:
    """What a run has changed in one line, and the command that shows it."""
    if "change" not in run:
        return ""
    command = with_store(f"holdfast diff {run['id']}")
    return f"{summarize_change(run['change'])}: {command}"


def _describe_caller(caller: View) -> str:
    if "run_id" not in caller:
        return f"called by {caller['task_id']}"
    return f"called by {escape(caller['step'])} of {caller['run_id']}"


def draw_head(run: View) -> str:
    ended = read_time(run.get("finished_at"))
    due = read_time(run.get("deadline"))
    caller = run.get("caller")
    parts = [
        f"{paint(escape(run['workflow']), 'bold')} {run['id']}",
        _describe_caller(caller) if caller else "",
        _describe_status(run),
        escape(run.get("branch", "")),
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _RunTexts:
    """What the rows of a run say besides the tasks themselves."""

    labels: Mapping[str, str]
    last_lines: LastLines
    held: Mapping[str, View]
    columns: int | None
    # What the run has changed, for the person who is asked to approve it.
    change: str = ""
    ranks: dict[str, int] = field(default_factory=dict)

    def rank(self, node: TaskNode) -> int:
        """The place of a step among others, found once for all forms of a tree."""
        found = self.ranks.get(node.task["id"])
        if found is None:
            found = self.ranks[node.task["id"]] = rank_status(node)
        return found


class _TreeDrawing:
    """The rows of a tree in one form."""

    def __init__(self, told: _RunTexts, form: TreeForm, enough: int | None = None) -> None:
        self._told = told
        self._form = form
        # A tree of more rows is not drawn to its end: it does not fit.
        self._enough = enough

    def draw(self, nodes: Sequence[TaskNode], depth: int = 0, rounds: int = 0) -> list[TreeRow]:
        """The rows of some steps; `rounds` is how often what they are a part of was rejected."""
        # The waiting steps at the end of a run share rows.
        shared = depth == 0 and not self._form.unfolded
        waiting = _count_waiting_at_end(nodes) if shared else 0
        first, last = nodes[: len(nodes) - waiting], nodes[len(nodes) - waiting :]
        shown = self._choose_shown(first)
        hidden = [node for node in first if id(node) not in shown]
        rejected = _count_rejections(nodes, rounds)
        rows: list[TreeRow] = []
        for node in first:
            if self._enough is not None and len(rows) > self._enough:
                break
            if id(node) in shown:
                rows += self._draw_node(node, depth, rejected[id(node)])
        if hidden and not self._form.folds:
            rows.insert(0, _draw_count(depth, f"✓ … {len(hidden)} done"))
        elif hidden:
            rows.append(_draw_count(depth, "   ".join(count_by_status(hidden))))
        return rows + self._draw_waiting(last)

    def _choose_shown(self, nodes: Sequence[TaskNode]) -> set[int]:
        """The steps that have a row of their own, by identity."""
        form = self._form
        done, waiting, others = list[TaskNode](), list[TaskNode](), list[TaskNode]()
        for node in nodes:
            kind = done if node.status == "done" else waiting if _is_waiting(node) else others
            kind.append(node)
        if form.unfolded:
            kept = list(nodes)
        elif not form.folds:
            done = [node for node in done if node.task["kind"] == "group"]
            hidden = {id(node) for node in done[:-GROUPS_KEPT]}
            kept = [node for node in nodes if id(node) not in hidden]
        else:
            if form.most is not None:
                others.sort(key=self._told.rank)
            kept = [*others[: form.most], *waiting[: form.waiting]]
            kept += done[len(done) - form.done :] if form.done else []
        # A single hidden step has as many rows as its count.
        return {id(node) for node in (kept if len(nodes) - len(kept) > 1 else nodes)}

    def _draw_waiting(self, nodes: Sequence[TaskNode]) -> list[TreeRow]:
        """The rows of waiting steps, as many steps in a row as fit; folded, only the first row."""
        edge = self._told.columns or 100
        rows: list[str] = []
        for place, node in enumerate(nodes):
            why = describe_reason(node, self._told.labels, short=True)
            said = f"{paint(*status_symbol(node))} {escape(node.label)}{' ' + why if why else ''}"
            if rows and width_of(rows[-1]) + width_of(said) + 3 <= edge:
                rows[-1] += f"   {said}"
            elif rows and self._form.folds:
                left = f"   … {len(nodes) - place} more"
                rows[-1] = cut(rows[-1], edge - len(left)) + paint(left, "dim")
                break
            else:
                rows.append(said)
        return [TreeRow(depth=0, details=row) for row in rows]

    def _draw_node(self, node: TaskNode, depth: int, rounds: int) -> list[TreeRow]:
        path = [node]
        if self._form.joined and depth:
            while (following := _find_only_active(path[-1])) is not None:
                path.append(following)
        last = path[-1]
        if last is not node:
            rounds = max(rounds, *(each.task["round"] for each in node.leaves))
        closed = last.status == "done" or _is_waiting(last)
        opened = bool(last.children) and (self._form.unfolded or not closed)
        details = [*describe_details(last, self._told.labels), describe_feedback(last, rounds)]
        said = self._lines_below(last)
        age = ""
        if not self._form.below and said:
            details.append(paint(said[0].details, "dim"))
            age, said = said[0].age, []
        row = TreeRow(
            depth=depth,
            symbol=status_symbol(last),
            label=tuple(escape(each.label) for each in path),
            details="  ".join(part for part in details if part),
            aligned=not (opened and last.is_under_way),
            age=age,
        )
        inner = self.draw(last.children, depth + 1, rounds) if opened else []
        return [row, *(self._draw_below(each, depth + 1) for each in said), *inner]

    def _draw_below(self, said: _Said, depth: int) -> TreeRow:
        edge = self._told.columns
        line = cut(f"└ {said.details}", None if edge is None else edge - 2 * depth)
        return TreeRow(depth=depth, details=paint(line, "dim"), age=said.age)

    def _lines_below(self, node: TaskNode) -> list[_Said]:
        """The lines below a step: its progress, or a question and the command to answer it."""
        task = node.task
        if node.asks_person:
            asked = one_line(outputs_asked_of(task))
            change = self._told.change if task["kind"] == "approval" else ""
            lines = (asked, change, advise_settling(task, self._told.held))
            return [_Said(each) for each in lines if each]
        if node.needs_start:
            return [_Said(with_store(advise_answer(task)))]
        if node.status != "running" or node.children:
            return []
        progress = _draw_progress(task)
        if task["id"] not in self._told.last_lines:
            return [_Said(each) for each in progress]
        line, when = self._told.last_lines[task["id"]]
        ago = format_span((time.time() - when) * SECOND)
        said = _Said(one_line(line), f"{ago} ago")
        return [said] if _has_log(task) else [*(_Said(each) for each in progress), said]


class _Said(NamedTuple):
    """A line below a step, and how long ago it was said."""

    details: str
    age: str = ""


def _draw_count(depth: int, text: str) -> TreeRow:
    return TreeRow(depth=depth, details=paint(text, "dim"))


def _is_waiting(node: TaskNode) -> bool:
    """Whether nothing in an open step has begun, and no person can have it begin."""
    idle = node.status in {"queued", "idle"} and not node.is_under_way
    return idle and not any(each.asks_person or each.needs_start for each in node.frontier)


def _find_only_active(node: TaskNode) -> TaskNode | None:
    """The only step of a group under way that stands for the whole of it."""
    if not node.children or node.status == "done" or _is_waiting(node) or node.asks_person:
        return None
    active = [each for each in node.children if each.status != "done" and not _is_waiting(each)]
    if not active:
        active = [each for each in node.children if _is_waiting(each)][:1]
    return active[0] if len(active) == 1 else None


def _count_rejections(nodes: Sequence[TaskNode], rounds: int) -> dict[int, int]:
    """How often each of some steps was rejected, by the verifier that is next after the step."""
    found: dict[int, int] = {}
    for node in reversed(nodes):
        found[id(node)] = rounds
        rounds = node.task["round"] or rounds
    return found


def _draw_progress(task: View) -> list[str]:
    if "progress" not in task:
        return []
    return [one_line(task["progress"]["log"] if _has_log(task) else task["progress"])]


def _has_log(task: View) -> bool:
    """Whether the progress of a task is only the last line of its log, as that of commands is."""
    progress = task.get("progress")
    return isinstance(progress, dict) and progress.keys() == {"log"}


def _count_waiting_at_end(nodes: Sequence[TaskNode]) -> int:
    return sum(1 for _ in takewhile(_is_waiting, reversed(nodes)))


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
    lines += [_draw_artifact(task["id"], each) for each in task.get("artifacts", ())]
    lines += [_draw_child(each) for each in task.get("children", ())]
    return lines + [draw_attempt(each) for each in task["attempts"]]


def _draw_error(task: View) -> list[str]:
    if task.get("error") is None:
        return []
    ended = task["status"] in {"done", "failed", "cancelled"}
    name, colour = ("error", "red") if ended else ("earlier", "dim")
    error = task["error"]
    return [f"  {name:<9} {paint(describe_error_line(error), colour)}", *draw_traceback(error)]


def _draw_artifact(task_id: str, artifact: View) -> str:
    command = with_store(f"holdfast artifacts {task_id} {artifact['name']}")
    return f"  artifact  {artifact['name']} · {format_bytes(artifact['bytes'])} · {command}"


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
    stopped = _describe_stop(attempt)
    return f"  attempt {attempt['attempt']}  {told}{error}{stopped}{_describe_commits(attempt)}"


def _describe_commits(attempt: View) -> str:
    """The commits of an attempt; what it left is named whole, because nothing leads to it."""
    words = {"head": "commit", "anew": "began its line anew at", "draft": "draft", "left": "left"}
    whole = {"draft", "left"}
    return "".join(
        f"  {words[each['kind']]} {each['sha'][: None if each['kind'] in whole else SHORT_COMMIT]}"
        for each in attempt.get("commits", ())
    )


def _describe_stop(attempt: View) -> str:
    """The numbers of processes of the command that were stopped, and that could not be."""
    if "stopped_at" not in attempt:
        return ""
    left = f", {attempt['left']} could not be" if attempt["left"] else ""
    processes = "process" if attempt["stopped"] == 1 else "processes"
    return f"  {attempt['stopped']} {processes} stopped{left}"
