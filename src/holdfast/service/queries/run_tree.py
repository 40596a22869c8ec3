"""Run trees: the tasks of a run as the tree that a person sees, built from its view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.engine.read.task_state import number_of_item
from holdfast.service.queries.views import View, read_cost, read_time

_TITLES = ("title", "name", "id", "key")


@dataclass(kw_only=True)
class TaskNode:
    """One task, its address in its run, and the tasks below it."""

    task: View
    address: str
    label: str
    children: list[TaskNode] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The address and the title of the task."""
        return name_task(self.task, self.address)

    @property
    def status(self) -> str:
        return str(self.task["status"])

    @property
    def is_open(self) -> bool:
        return self.status in {"idle", "queued", "running"}

    @property
    def leaves(self) -> list[TaskNode]:
        if not self.children:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves]

    @property
    def frontier(self) -> list[TaskNode]:
        """The tasks at which the tree goes on or stops: leaves, and tasks that ask a person."""
        if not self.children or self.asks_person:
            return [self]
        return [front for child in self.children for front in child.frontier]

    @property
    def is_under_way(self) -> bool:
        """Whether a part of the task has begun, and a part is still to come."""
        if not self.children:
            return self.status == "running"
        statuses = {leaf.status for leaf in self.leaves}
        return bool(statuses - {"queued", "idle"}) and self.is_open

    @property
    def asks_person(self) -> bool:
        """Whether the task goes on only after an approval or an answer."""
        held = {"approval", "question"} & {*self.task["holds"]}
        asked = self.task["kind"] == "approval" or bool(held)
        return asked and self.is_open and self.task["state"] not in {"blocked", "stalled"}

    @property
    def needs_start(self) -> bool:
        """Whether the task goes on only when a person enqueues it, or resumes this task alone."""
        item = self.task["kind"] == "group" and self.task.get("item") is not None
        idle = self.task["state"] == "idle" and not self.task["blocked_by"] and not item
        paused = self.task["state"] == "held" and "paused" in self.task["holds"]
        return (idle or paused) and not self.asks_person

    @property
    def is_moving(self) -> bool:
        """Whether the task runs, or will run without an action of a person."""
        still = {"blocked", "stalled", "held", "idle"}
        lifts = self.task["holds"] == ["limit"] and "held_until" in self.task
        return self.is_open and not self.asks_person and (lifts or self.task["state"] not in still)

    @property
    def cost(self) -> float | None:
        """The cost of the task and of all tasks below it, as far as it is known."""
        known = [
            cost for leaf in self.leaves if (cost := read_cost(leaf.task.get("usage"))) is not None
        ]
        return sum(known) if known else None

    @property
    def items_done(self) -> tuple[int, int]:
        """How many of the tasks right below are done, and how many there are."""
        return sum(child.status == "done" for child in self.children), len(self.children)

    @property
    def first_started_at(self) -> int | None:
        """The first start of the task or of a task below it: no worker starts a group."""
        started = [
            read_time(self.task.get("started_at")),
            *(each.first_started_at for each in self.children),
        ]
        return min((each for each in started if each is not None), default=None)

    def duration_until(self, now: int) -> int | None:
        """Microseconds from the first start to the end, or to now; waits count."""
        if (begun := self.first_started_at) is None:
            return None
        ended = read_time(self.task.get("finished_at"))
        return (now if ended is None else ended) - begun


def build_task_trees(tasks: Sequence[View]) -> list[TaskNode]:
    """The trees of some tasks, in the order of their steps and items, without superseded tasks.

    Below a step that calls a workflow are the steps of that workflow.
    """
    return _build_trees_below(tasks, "")


def _build_trees_below(tasks: Sequence[View], prefix: str) -> list[TaskNode]:
    counted = [task for task in tasks if not task.get("superseded")]
    known = {task["id"] for task in counted}
    below: dict[str | None, list[View]] = {}
    for task in counted:
        parent = task.get("parent_id")
        below.setdefault(parent if parent in known else None, []).append(task)
    return _build_nodes(below, None, prefix)


def _build_nodes(
    below: dict[str | None, list[View]], parent: str | None, prefix: str
) -> list[TaskNode]:
    ordered = sorted(below.get(parent, ()), key=lambda task: (task["position"], task["id"]))
    return [_build_node(below, task, prefix) for task in ordered]


def _build_node(below: dict[str | None, list[View]], task: View, prefix: str) -> TaskNode:
    item, own = _item_of_group(task), _name_own_place(task)
    address = _join_address(prefix, own)
    title = read_own_title(task) or ("" if item is None else name_item(task.get("payload")))
    label = f"{own} {title}".rstrip()
    children = _build_nodes(below, task["id"], address)
    if "child" in task and not task["child"].get("superseded"):
        children += _build_trees_below(task["child"]["tasks"], address)
    return TaskNode(task=task, address=address, label=label, children=children)


def order_tasks(tasks: Sequence[View]) -> list[View]:
    """Order tasks run by run, in the order of their trees; tasks outside of a tree come last."""
    runs: dict[str, list[View]] = {}
    for task in tasks:
        runs.setdefault(task.get("run_id", ""), []).append(task)
    ordered: dict[str, View] = {}
    for _, own in sorted(runs.items()):
        waiting = build_task_trees(own)[::-1]
        while waiting:
            node = waiting.pop()
            ordered[node.task["id"]] = node.task
            waiting += node.children[::-1]
    return [*ordered.values(), *(each for each in tasks if each["id"] not in ordered)]


def read_own_title(task: View) -> str:
    """The title that a task has besides its step; the question of an approval is no title."""
    step = task.get("step")
    made_up = {step, *(f"{step}.{number}" for number in _item_numbers(task))}
    nameless = step is None or task["kind"] == "approval" or task["title"] in made_up
    return "" if nameless else str(task["title"])


def _item_numbers(task: View) -> tuple[str | int, ...]:
    item = task.get("item")
    # Older releases counted items from 0 in titles.
    return () if item is None else (number_of_item(item), item)


def name_task(task: View, address: str | None = None) -> str:
    """The name of a task: in a run its address or step, with its title; else its title alone."""
    if address is not None and "run_id" in task:
        return f"{address} {read_own_title(task)}".rstrip()
    step, title = task.get("step"), read_own_title(task)
    if step is None or (title and "run_id" not in task):
        return str(task["title"])
    return f"{step} {title}".rstrip()


def name_item(value: Any) -> str:  # noqa: ANN401 - JSON is any value
    """The name of an item of a loop: its title, or the item itself where it is short."""
    if isinstance(value, dict):
        value = next((value[name] for name in _TITLES if isinstance(value.get(name), str)), "")
    return str(value) if isinstance(value, str | int | float) else ""


def name_steps(tasks: Sequence[View]) -> dict[str, str]:
    """The name of each task by its id: its address and its title.

    A called run has the address of its caller; a superseded task keeps the address that it had.
    """
    named: dict[str, str] = {}
    waiting: list[tuple[Sequence[View], str]] = [(tasks, "")]
    while waiting:
        own, prefix = waiting.pop()
        known = {task["id"]: task for task in own}
        for task in own:
            address = _build_address(known, task, prefix)
            named[task["id"]] = name_task(task, address)
            if "child" in task:
                named[task["child"]["id"]] = address
                waiting.append((task["child"]["tasks"], address))
    return named


def _build_address(known: Mapping[str, View], task: View, prefix: str) -> str:
    """The address of a task from the tasks around it, below the address of what called its run."""
    above = known.get(task.get("parent_id", ""))
    around = prefix if above is None else _build_address(known, above, prefix)
    return _join_address(around, _name_own_place(task))


def _join_address(around: str, own: str) -> str:
    return f"{around}.{own}" if around else own


def _name_own_place(task: View) -> str:
    """The last part of the address of a task: its step, or the number of an item."""
    item = _item_of_group(task)
    return str(task.get("step") or task["title"]) if item is None else number_of_item(item)


def _item_of_group(task: View) -> int | None:
    item: int | None = task.get("item") if task["kind"] == "group" else None
    return item


def walk_tasks(tasks: Sequence[View]) -> Iterator[View]:
    """Walk through some tasks and the tasks of the runs that they have called."""
    for task in tasks:
        yield task
        if "child" in task:
            yield from walk_tasks(task["child"]["tasks"])
