"""Removal of what ended long ago, while others start, retry and need it."""

from __future__ import annotations

from holdfast.engine.core.operation import RetryRun, RetryTask
from holdfast.engine.surroundings.removal import RUNS, TASKS, Removal, RemoveRuns, RemoveTasks
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Plans, Stage
from tests.race.worlds import World

YEAR = 366 * 86_400.0


def _ended(world: World) -> int:
    """A moment before which all that has ended here has ended."""
    world.day.advance(YEAR)
    return world.day.now() - 1_000_000


def remove(world: World, kind: str) -> Removal:
    """Remove all of this world that has ended."""
    before = _ended(world)
    found = world.engine.removals.find(kind, before, count=1_000)
    own = set(world.ids.values())
    members = tuple(each for each in found if each[1] in own)
    make = RemoveRuns if kind == RUNS else RemoveTasks
    return make(members=members, before=before)


def test_a_key_that_comes_free_by_removal_stays_taken(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        key = f"key-{world.number}"
        begun = world.start_run(Step(id="only"), key=key, name="old")
        assert world.engine.commits.submit(begun).result().created
        world.finish("only")
        removal = remove(world, RUNS)
        return [removal], [world.start_run(Step(id="only"), key=key, name="new")]

    for outcome in stage.explore(scenario):
        assert (outcome.first, outcome.second) == ((("old",),), (("old", False),))


def test_a_key_of_a_task_that_comes_free_by_removal_stays_taken(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        key = f"key-{world.number}"
        world.engine.commits.submit(world.create("only", key=key)).result()
        world.finish("only")
        removal = remove(world, TASKS)
        return [removal], [world.create("only", key=key)]

    for outcome in stage.explore(scenario):
        assert (outcome.first, outcome.second) == ((("only",),), ((("only", False),),))


def test_a_key_that_two_processes_enqueue_at_once_is_of_one_task(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        key = f"key-{world.number}"
        return [world.create("only", key=key)], [world.create("only", key=key)]

    first, second = stage.explore(scenario)
    made, found = ((("only", True),),), ((("only", False),),)
    assert (first.first, first.second) == (made, found)
    assert (second.first, second.second) == (found, made)


def test_removal_of_a_task_against_its_retry(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        world.engine.tasks.cancel(task)
        return [remove(world, TASKS)], [RetryTask(task_id=task, actor="user")]

    gone, retried = stage.explore(scenario)
    assert (gone.first, gone.statuses) == ((("only",),), {})
    assert (retried.first, retried.statuses) == (((),), {"only": "queued"})


def test_removal_of_a_run_against_its_retry(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(Step(id="only"))
        world.engine.runs.cancel(run)
        return [remove(world, RUNS)], [RetryRun(run_id=run, actor="user")]

    gone, retried = stage.explore(scenario)
    assert (gone.first, gone.statuses) == ((("run",),), {})
    assert (retried.first, retried.statuses["run"]) == (((),), "running")


def test_removal_of_a_task_against_a_new_one_that_needs_it(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("needed")
        world.finish("needed")
        return [remove(world, TASKS)], [world.create("new", "needed")]

    gone, kept = stage.explore(scenario)
    assert (gone.first, gone.second, gone.statuses) == ((("needed",),), ("InvalidInput",), {})
    assert (kept.first, kept.statuses) == (((),), {"needed": "done", "new": "queued"})
