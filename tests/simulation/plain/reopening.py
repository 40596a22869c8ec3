"""The plain model of ways back from an end: retry, re-open, and the run that comes with them."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.model.status import Hold
from tests.simulation.plain.places import admit
from tests.simulation.plain.world import BROKEN, NONE, TERMINAL, Answer, Task, World


def retry(world: World, task_id: str) -> Answer:
    task = world.tasks.get(task_id)
    if task is None:
        return ("not_found", None)
    if task.status not in BROKEN:
        return ("invalid_transition", task.status)
    if task.run is not None:
        return retry_run(world, task.run)
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
    found = [task for task in world.of_run(run_id) if task.step == step]
    if not found:
        return ("unknown_step", None)
    answer = reopen(world, found[0].id, TERMINAL | {"queued", "running"})
    return ("ok", "running") if answer[0] == "ok" else answer


def reopen(world: World, task_id: str, leaving: Collection[str] = TERMINAL) -> Answer:
    """Do a task again, and whatever needs it, in a new epoch."""
    named = world.tasks.get(task_id)
    if named is None:
        return ("not_found", None)
    if named.status not in leaving:
        return ("invalid_transition", named.status)
    for identifier in world.dependents(task_id):
        _reopen_alone(world, world.tasks[identifier])
    if named.run is not None:
        bring_back(world, named.run, whole=True)
    else:
        _retry_tree(world, task_id)
    return ("ok", "queued")


def reopen_subject(world: World, verifier: Task, feedback: object) -> None:
    """Do again what was verified, and what stands between that and its verifier."""
    assert verifier.verifies is not None
    subject = world.tasks[verifier.verifies]
    if subject.status == "idle":
        return
    between = world.dependents(subject.id) & world.needed(verifier.id)
    for identifier in (between | {subject.id}) - {verifier.id}:
        _reopen_alone(world, world.tasks[identifier], feedback)


def go_to(world: World, source: Task, step: str, feedback: object) -> None:
    """Begin again at a step further up, and with all that needs it but who goes back."""
    (target,) = (each for each in world.of_run(str(source.run)) if each.step == step)
    if target.status == "idle":
        return
    for identifier in world.dependents(target.id) - {source.id}:
        _reopen_alone(world, world.tasks[identifier], feedback)


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
                _retry_alone(task)
    if ended and run.slot is not None:
        admit(world, run.slot, 1)


def _retry_tree(world: World, task_id: str) -> None:
    for identifier in world.tree(task_id):
        if world.tasks[identifier].status in BROKEN:
            _retry_alone(world.tasks[identifier])


def _retry_round(world: World, verifier: Task) -> None:
    reopen_subject(world, verifier, last_feedback(verifier))
    verifier.epoch += 1


def last_feedback(verifier: Task) -> object:
    return verifier.error.get("feedback") if isinstance(verifier.error, dict) else None


def _retry_alone(task: Task) -> None:
    task.status = "queued"
    task.generation += 1
    task.failures = task.lost = task.round = 0
    task.decided = False
    task.scheduled_for, task.run_now, task.error = None, False, None


def _reopen_alone(world: World, task: Task, feedback: object = None) -> None:
    if task.status == "running" and task.slot is not None:
        world.freed[task.slot] += 1
    task.leave_running("superseded")
    if task.status != "idle":
        task.status = "queued"
    task.generation += 1
    task.epoch += 1
    task.failures = task.lost = task.round = 0
    task.decided = task.skipped = False
    task.scheduled_for, task.run_now = None, False
    task.output = task.error = None
    task.feedback = feedback
