"""Hooks under every interleaving: whoever ends a run, what follows is there once, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from holdfast.engine.core.operation import AdvanceRun, Complete, Fail, Operation, RetryRun
from holdfast.engine.surroundings.hooks import RegisterHooks
from holdfast.model.hook import hook_step
from holdfast.model.text import digest
from holdfast.model.workflow.graph import Step
from holdfast.store.database import Transaction
from tests.contract import single_statements
from tests.contract.hook_tasks import hook
from tests.race.explorer import Plans, Scenario, Stage, staged
from tests.race.racers import PATIENCE, Gate
from tests.race.worlds import World

SIDES = (Step(id="left", needs=()), Step(id="right", needs=()))


def called(stage: Stage, world: World, name: str = "after", what: str = "run") -> list[str]:
    """The ends of what this world knows by a name that a hook was called for."""
    prefix = f"{hook_step(name)} {world.ids[what]} "
    tasks = stage.engine.tasks.list(limit=1_000)
    keyed = [task for task in tasks if task.key is not None and task.key.startswith(prefix)]
    return [task.payload["event"]["type"] for task in keyed]


def worlds_of(stage: Stage, scenario: Scenario) -> list[World]:
    """Every world that was played in."""
    worlds: list[World] = []

    def remembered(world: World) -> Plans:
        worlds.append(world)
        return scenario(world)

    stage.explore(remembered)
    assert len(worlds) > 2
    return worlds


def both_running(world: World) -> None:
    world.run(*SIDES)
    for name in ("left", "right"):
        world.start(name)


def test_two_processes_that_end_the_last_steps_of_a_run_at_once(stage: Stage) -> None:
    stage.engine.hooks.register([hook("after"), hook("also")])

    def scenario(world: World) -> Plans:
        both_running(world)
        return [world.complete("left")], [world.complete("right")]

    for world in worlds_of(stage, scenario):
        assert called(stage, world) == ["run.completed"]
        assert called(stage, world, "also") == ["run.completed"]


def test_two_processes_that_advance_one_run_at_once(stage: Stage) -> None:
    stage.engine.hooks.register([hook()])

    def scenario(world: World) -> Plans:
        run = world.run(Step(id="only"))
        world.start("only")
        single_statements.complete(stage.engine, world.ids["only"])
        return [AdvanceRun(run_id=run)], [AdvanceRun(run_id=run)]

    for world in worlds_of(stage, scenario):
        assert called(stage, world) == ["run.completed"]


def test_a_cancel_against_the_end_of_the_last_step(stage: Stage) -> None:
    stage.engine.hooks.register([hook()])

    def scenario(world: World) -> Plans:
        world.run(Step(id="only"))
        world.start("only")
        return [world.cancel("run")], [world.complete("only")]

    seen = set()
    for world in worlds_of(stage, scenario):
        (end,) = called(stage, world)
        assert end == f"run.{stage.engine.runs.get(world.ids['run']).status}"
        seen.add(end)
    assert seen == {"run.cancelled", "run.completed"}


def test_two_cancels_of_one_lone_task(stage: Stage) -> None:
    stage.engine.hooks.register([hook()])

    def scenario(world: World) -> Plans:
        world.task("only")
        return [world.cancel("only")], [world.cancel("only")]

    for world in worlds_of(stage, scenario):
        assert called(stage, world, what="only") == ["task.cancelled"]


def test_a_hook_registered_while_a_run_ends_is_called_once_or_never(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="only"))
        world.start("only")
        return [registration(f"hook-{world.number}")], [world.complete("only")]

    seen = set()
    for world in worlds_of(stage, scenario):
        calls = called(stage, world, f"hook-{world.number}")
        assert calls in ([], ["run.completed"])
        seen.add(len(calls))
    assert seen == {0, 1}


def registration(*names: str) -> RegisterHooks:
    template = '{"agent":"hooks","backoff":0,"backoff_max":0,"max_attempts":1,"max_lost":1}'
    return RegisterHooks(hooks=tuple((name, '["run.completed"]', None, template) for name in names))


def test_processes_that_register_the_same_hooks_at_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        one, two = f"one-{world.number}", f"two-{world.number}"
        return [registration(one, two)], [registration(two, one)]

    for world in worlds_of(stage, scenario):
        names = {each.name for each in stage.engine.hooks.list()}
        assert {f"one-{world.number}", f"two-{world.number}"} <= names


def test_a_registration_that_waits_for_one_hook_holds_no_lock_on_the_hooks_behind_it(
    postgres_store_url: str,
) -> None:
    with staged(postgres_store_url) as stage, psycopg.connect(postgres_store_url) as rival:
        stage.third.perform([registration("a", "b")])
        rival.execute("SELECT 1 FROM holdfast_hook WHERE name = 'a' FOR UPDATE")
        waiting = stage.first.start([registration("b", "a")])
        assert stage.first.go_as_far_as_possible(waiting)
        rival.execute("SELECT 1 FROM holdfast_hook WHERE name = 'b' FOR UPDATE NOWAIT")
        rival.rollback()
        assert waiting.result(PATIENCE) == [None]


def test_an_end_that_is_undone_in_its_own_commit_has_been_an_end(stage: Stage) -> None:
    stage.engine.hooks.register([hook()])
    world = stage.world()
    run = world.run(Step(id="only"))
    world.start("only")
    fail = Fail(
        task_id=world.ids["only"],
        fence=1,
        error='"broken"',
        digest=digest("broken"),
        retryable=False,
        jitter=0.5,
    )
    stage.third.perform([fail, RetryRun(run_id=run, actor="user")])
    assert stage.engine.runs.get(run).status == "running"
    assert called(stage, world) == ["run.failed"]
    assert stage.engine.doctor().ok


class Notes(Gate):
    """No gate: takes down the names of the statements that pass."""

    def __init__(self) -> None:
        super().__init__("nowhere")
        self.passed: list[str] = []

    def pass_by(self, query: str, transaction: Transaction) -> None:
        super().pass_by(query, transaction)
        self.passed.append(query)


def statements_of(stage: Stage, operations: Sequence[Operation]) -> list[str]:
    notes = Notes()
    stage.third.start(operations, notes).result()
    return notes.passed


def ending(world: World) -> list[Complete]:
    both_running(world)
    world.task("lone")
    world.start("lone")
    return [world.complete(name) for name in ("left", "right", "lone")]


def test_without_hooks_the_end_of_runs_and_tasks_costs_no_statement_more(stage: Stage) -> None:
    # The first group of a process asks besides whether others parked tasks.
    statements_of(stage, ending(stage.world()))
    bare = statements_of(stage, ending(stage.world()))
    assert "hooks_to_fire" not in bare
    stage.engine.hooks.register([hook("after", "run.failed")])
    idle = statements_of(stage, ending(stage.world()))
    stage.engine.hooks.register([hook("after"), hook("also")])
    full = statements_of(stage, ending(stage.world()))
    at = bare.index("settle_runs") + 1
    assert idle == [*bare[:at], "hooks_to_fire", *bare[at:]]
    fired = ["hooks_to_fire", "insert_tasks", "task_key_holders"]
    assert full == [*bare[:at], *fired, *bare[at:]]
