"""What an older store knew, taken over: each task is led along the table to where it stood there.

Nothing of a tree or run is to be seen before all of it is written, so that no worker can take what
was done before. Every end is an attempt of its own by `import`, and comes after what it needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from holdfast.engine import creation, lifecycle, planning
from holdfast.engine.asked import TaskRow
from holdfast.engine.group import Group
from holdfast.engine.operations import Complete, Fail, Import, Past, StartRun
from holdfast.errors import HoldfastError, KeyConflict
from holdfast.model.run import Created
from holdfast.model.text import digest

FENCE = 1
Reply = list[Created] | HoldfastError


@dataclass(frozen=True, kw_only=True, slots=True)
class Led:
    past: Past
    by: Import


def take_over(group: Group, operations: Sequence[Import]) -> list[Reply]:
    """A tree or run of which anything is here already is left as it is."""
    replies = _start_runs(group, operations) | _create_trees(group, operations)
    new = [operation for place, operation in enumerate(operations) if _is_new(replies[place])]
    led = [Led(past=past, by=operation) for operation in new for past in operation.past]
    _plan(group, led)
    for each in led:
        if each.past.enqueue:
            _reach(group, "enqueue_task", each)
    _end(group, led)
    _pass_on(group, new)
    for operation in new:
        if operation.run is not None and operation.cancelled:
            run_id, actor = operation.run.run_id, operation.actor
            group.change_runs("cancel_run", run_id=run_id, actor=actor)
            group.change_tasks("cancel_run_tasks", ids=[run_id], actor=actor)
    return [replies[place] for place in range(len(operations))]


def _is_new(reply: Reply) -> bool:
    return isinstance(reply, list) and all(each.created for each in reply)


def _start_runs(group: Group, operations: Sequence[Import]) -> dict[int, Reply]:
    runs: dict[int, StartRun] = {
        place: each.run for place, each in enumerate(operations) if each.run is not None
    }
    started = creation.start_runs(group, list(runs.values())) if runs else []
    return {
        place: [reply] if isinstance(reply, Created) else reply
        for place, reply in zip(runs, started, strict=True)
    }


def _create_trees(group: Group, operations: Sequence[Import]) -> dict[int, Reply]:
    trees = {place: each for place, each in enumerate(operations) if each.run is None}
    wanted = [task.key for tree in trees.values() for task in tree.tasks]
    keys = creation.Keys(group, "tasks_by_key", wanted)
    replies = {place: _settle_keys(keys, tree.tasks) for place, tree in trees.items()}
    accepted = [
        (task, trees[place].actor)
        for place, reply in replies.items()
        if _is_new(reply)
        for task in trees[place].tasks
    ]
    depths = _depths([task for task, _ in accepted])
    # In one order, because whoever inserts a key waits for whoever has just inserted it; and a
    # parent before its children, which may be written with a later statement.
    accepted.sort(key=lambda each: (depths[each[0].id], each[0].key or ""))
    creation.insert_tasks(group, accepted, {}, run_holds=0)
    return replies


def _depths(tasks: Sequence[TaskRow]) -> dict[str, int]:
    """How far below the top of its tree each task stands."""
    parents = {task.id: task.parent_id for task in tasks}
    depths: dict[str, int] = {}
    for task in tasks:
        above: list[str] = []
        place: str | None = task.id
        while place is not None and place not in depths:
            above.append(place)
            place = parents.get(place)
        first = 0 if place is None else depths[place] + 1
        depths |= {each: number for number, each in enumerate(reversed(above), start=first)}
    return depths


def _settle_keys(keys: creation.Keys, tasks: Sequence[TaskRow]) -> Reply:
    own = [task.id for task in tasks]
    try:
        found = [keys.claim(task.key, task.body_digest, task.id) for task in tasks]
    except KeyConflict as error:
        keys.forget(own)
        return error
    if found == own:
        return [Created(id=each, created=True) for each in own]
    keys.forget(own)
    # Whoever has been deleted here since stays so.
    return [
        Created(id=each, created=False) for each, new in zip(found, own, strict=True) if each != new
    ]


def _plan(group: Group, led: Sequence[Led]) -> None:
    """While all their children are still idle, as in any other plan."""
    for each in led:
        if each.past.phase != "none":
            _reach(group, "start_planning", each)
    for each in led:
        if each.past.phase == "finalized":
            _reach(group, "finalize_plan", each)


def _pass_on(group: Group, new: Sequence[Import]) -> None:
    for operation in new:
        if plans := [past.task_id for past in operation.past if past.phase == "finalized"]:
            planning.pass_on(group, plans, operation.actor)


def _reach(group: Group, query: str, led: Led) -> None:
    past = led.past
    if not group.change_tasks(query, task_id=past.task_id, actor=led.by.actor):
        raise RuntimeError(f"{query} does not move {past.task_id}; nothing of it is imported")


def _end(group: Group, led: Sequence[Led]) -> None:
    """Round by round: whoever ends in one has all that it needed from the rounds before."""
    ended = {each.past.task_id: each for each in led if each.past.ended is not None}
    order = TopologicalSorter({key: ended[key].past.after for key in ended})
    order.prepare()
    while order.is_active():
        names = order.get_ready()
        ready = [ended[name] for name in names]
        _attempt(group, [each for each in ready if not each.past.settled])
        _settle(group, [each.past for each in ready if each.past.settled])
        group.change_tasks("unblock_dependents", ids=names)
        order.done(*names)
    _add_late_needs(group, ended.values())


def _settle(group: Group, plans: Sequence[Past]) -> None:
    for plan in plans:
        told = None if plan.result == "null" else plan.result
        output, error = (told, None) if plan.ended == "done" else (None, told)
        rows = group.change_tasks("settle_plans", ids=[plan.task_id], output=output, error=error)
        if [row["status"] for row in rows] != [plan.ended]:
            raise RuntimeError("a plan does not end as its children did; nothing of it is imported")


def _attempt(group: Group, led: Sequence[Led]) -> None:
    for each in led:
        started = group.change_tasks(
            "claim_task_by_id",
            task_id=each.past.task_id,
            agents=[each.past.agent],
            tags="[]",
            worker=each.by.actor,
            lease=each.by.lease,
        )
        if [row["attempt"] for row in started] != [FENCE]:
            raise RuntimeError(f"{each.past.task_id} cannot start; nothing of it is imported")
    pasts = [each.past for each in led]
    done = [_completed(past) for past in pasts if past.ended == "done"]
    failed = [_failed(past) for past in pasts if past.ended == "failed"]
    answers = lifecycle.complete(group, done) if done else []
    answers += lifecycle.fail(group, failed) if failed else []
    for answer in answers:
        if not answer.ok:
            raise RuntimeError(f"a task cannot end, {answer}; nothing of it is imported")


def _completed(past: Past) -> Complete:
    result = past.result
    return Complete(task_id=past.task_id, fence=FENCE, output=result, digest=digest(result))


def _failed(past: Past) -> Fail:
    return Fail(
        task_id=past.task_id,
        fence=FENCE,
        error=past.result,
        digest=digest(past.result),
        retryable=False,
        jitter=0.0,
    )


def _add_late_needs(group: Group, led: Iterable[Led]) -> None:
    """What ran too early needs from now on what came before it."""
    late = {each.past.task_id: each.past.late for each in led if each.past.late}
    if late:
        found = group.tx.read("tasks_by_id", ids=sorted(late))
        since = {row["id"]: row["version"] for row in found}
        rows = [(task, need, since[task]) for task, needs in late.items() for need in needs]
        group.tx.run("insert_needs", rows=rows)
