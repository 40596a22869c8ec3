"""The plain model of ways back from an end: retry, re-open, and the run that comes with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from holdfast.model.status import Hold
from tests.simulation.plain import groups
from tests.simulation.plain.concurrency import admit
from tests.simulation.plain.world import BROKEN, NONE, TERMINAL, Answer, Task, World

STARTED = TERMINAL | {"queued", "running"}


@dataclass(frozen=True, kw_only=True)
class Again:
    """What is said to those who begin again, and who of all that are reached does.

    What a person begins again may go back as often as at first: it is `renewed`.
    """

    feedback: object = None
    within: Collection[str] | None = None
    apart: str | None = None
    renewed: bool = False

    def of(self, ids: set[str]) -> set[str]:
        return {each for each in ids if self.within is None or each in self.within} - {self.apart}


WHOLE = Again()


def retry(world: World, task_id: str) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    if task.status not in BROKEN:
        return ("invalid_transition", task.status)
    if task.run is not None:
        status = task.status
        reason, _ = retry_run(world, task.run)
        return (reason, "queued" if reason == "ok" else status)
    _retry_tree(world, task_id)
    return ("ok", "queued")


def retry_run(world: World, run_id: str) -> Answer:
    run = world.runs.get(run_id)
    if run is None:
        return ("not_found", None)
    if run.status == "completed" or not (
        run.status in BROKEN or any(task.status in BROKEN for task in world.of_run(run_id))
    ):
        return ("invalid_transition", run.status)
    bring_back(world, run_id, whole=True)
    return ("ok", "running")


def retry_from(world: World, run_id: str, step: str) -> Answer:
    if run_id not in world.runs:
        return ("not_found", None)
    named = _at(world, run_id, step)
    if named is None:
        return ("unknown_step", None)
    reason, _ = reopen(world, named.id, STARTED)
    return (reason, "running" if reason == "ok" else world.runs[run_id].status)


def _at(world: World, run_id: str, address: str) -> Task | None:
    """The task at an address: a step, `build.2` an item, `build.2.make` a step of that."""
    first, *parts = address.split(".")
    there = [task for task in world.of_run(run_id) if task.parent is None and task.step == first]
    for part in parts:
        below = world.children(there[0]) if there else []
        place = int(part) - 1 if part.isdigit() else None
        there = [
            task
            for task in below
            if (task.step == part if place is None else task.is_item and task.item == place)
        ]
    return there[0] if there else None


def reopen(world: World, task_id: str, leaving: Collection[str] = TERMINAL) -> Answer:
    """Do a task again, and whatever needs it, in a new epoch."""
    named = world.tasks.get(task_id)
    if named is None:
        return ("not_found", None)
    if named.status not in leaving or named.superseded:
        return ("invalid_transition", named.status)
    _reopen_all(world, world.dependents(task_id), Again(renewed=True))
    if named.run is not None:
        bring_back(world, named.run, whole=True)
    else:
        _retry_tree(world, task_id)
    return ("ok", named.status)


def reopen_subject(
    world: World, verifier: Task, feedback: object, items: Collection[int] = ()
) -> None:
    """Do again what was verified, and what stands between that and its verifier."""
    assert verifier.verifies is not None
    subject = world.tasks[verifier.verifies]
    again = Again(feedback=feedback, within=world.needed(verifier.id) - {verifier.id})
    meant = [
        item
        for item in world.children(subject)
        if item.is_item and item.status in TERMINAL and (not items or item.item in items)
    ]
    if meant:
        for item in meant:
            _reopen_item(world, item, feedback)
        groups.bring_back_around(world, meant[0])
        _reopen_all(world, again.of(_needing(world, [subject, *meant])), again)
    elif subject.status != "idle":
        _reopen_all(world, again.of(world.dependents(subject.id)) | {subject.id}, again)


def reopen_left_out(world: World, verifier: Task) -> None:
    """Do again what gives nothing because this verifier, which begins again, was skipped."""
    subject = world.tasks.get(verifier.verifies or "")
    if subject is not None and subject.status == "done" and subject.left_out:
        reopen_subject(world, verifier, None)


def _reopen_item(world: World, item: Task, feedback: object) -> None:
    """An item begins again in its turn, with other steps."""
    groups.supersede(world, item)
    item.status, item.feedback = "idle", feedback
    item.generation += 1
    item.epoch += 1
    item.output = item.error = None


def go_to(world: World, source: Task, step: str, feedback: object) -> None:
    """Begin again at a step further up, and with all that needs it but who goes back."""
    beside = [each for each in world.of_run(source.run) if each.parent == source.parent]
    (target,) = (each for each in beside if each.step == step and not each.is_item)
    if target.status != "idle":
        again = Again(feedback=feedback, apart=source.id)
        _reopen_all(world, again.of(world.dependents(target.id)), again)


def _needing(world: World, tasks: Collection[Task]) -> set[str]:
    """Who needs some tasks, directly or through others."""
    return set().union(*(world.dependents(task.id) - {task.id} for task in tasks))


def _reopen_all(world: World, ids: Collection[str], again: Again = WHOLE) -> None:
    """Do tasks again; the groups around all of them come back, and so does what needs those."""
    reopened: list[Task] = []
    while ids:
        tasks = [world.tasks[each] for each in sorted(ids) if not world.tasks[each].superseded]
        for task in tasks:
            task.detours = 0 if again.renewed else task.detours
            _reopen_alone(world, task, again.feedback)
        for task in tasks:
            groups.supersede(world, task)
        reopened += tasks
        around = [group for task in tasks for group in groups.bring_back_around(world, task)]
        ids = again.of(_needing(world, around))
    for task in reopened:
        reopen_left_out(world, task)


def bring_back(world: World, run_id: str, *, whole: bool) -> None:
    """Let a run go on after its end; `whole` also retries everything that ended badly in it."""
    run = world.runs[run_id]
    ended = run.status != "running"
    if ended:
        run.status = "running"
        run.generation += 1
        run.error = None
        run.holds &= ~(Hold.FAILING | Hold.SLOT)
        run.holds |= NONE if run.slot is None else Hold.SLOT
    if whole:
        for task in world.of_run(run_id):
            if task.status in BROKEN and task.out_of_rounds:
                _retry_round(world, task)
        for task in world.of_run(run_id):
            if task.status in BROKEN:
                _retry_alone(world, task)
    if ended and run.slot is not None:
        admit(world, run.slot, 1)


def _retry_tree(world: World, task_id: str) -> None:
    for identifier in world.tree(task_id):
        if world.tasks[identifier].status in BROKEN:
            _retry_alone(world, world.tasks[identifier])


def _retry_round(world: World, verifier: Task) -> None:
    reopen_rejected(world, verifier)
    verifier.epoch += 1


def reopen_rejected(world: World, verifier: Task) -> None:
    """Do again what the last round rejected; a loop that has begun anew is meant as a whole."""
    assert verifier.verifies is not None
    said = verifier.said
    known = said.get("epoch") == world.tasks[verifier.verifies].epoch
    reopen_subject(world, verifier, said.get("feedback"), said.get("items", ()) if known else ())


def _retry_alone(world: World, task: Task) -> None:
    # An item that had not begun waits for its turn again.
    task.status = "idle" if task.is_item and not world.children(task) else "queued"
    task.generation += 1
    task.failures = task.lost = task.round = task.detours = 0
    task.decided = False
    task.scheduled_for, task.run_now = None, False
    task.begin_again()


def _reopen_alone(world: World, task: Task, feedback: object = None) -> None:
    if task.status == "running" and task.slot is not None:
        world.freed[task.slot] += 1
    task.leave_running("superseded")
    task.status = "idle" if task.is_item or task.status == "idle" else "queued"
    task.total = None
    task.generation += 1
    task.epoch += 1
    task.failures = task.lost = task.round = 0
    task.decided = task.skipped = task.left_out = False
    task.scheduled_for, task.run_now = None, False
    task.forget()
    task.feedback = feedback
