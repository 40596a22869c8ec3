"""Imports under every interleaving: one of each, and never a part of one."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Import
from holdfast.model.status import Status
from tests.race.explorer import Plans, Stage
from tests.race.imported_history import past, run, tree
from tests.race.worlds import World

ACTOR = "import"


def take_over(world: World) -> Sequence[Import]:
    """The same tree and run, as another process would ask for them, with ids of its own."""
    steps = [past(world, "first", Status.DONE), past(world, "second", Status.QUEUED, "first")]
    asked = world.engine.imports.build_operations([tree(world), run(world, "run", steps)], ACTOR)
    for row in asked[0].tasks:
        world.know(row.title, row.id)
    if asked[1].run is not None:
        world.know("run", asked[1].run.run_id)
        for row in asked[1].run.tasks:
            world.know(str(row.step), row.id)
    return asked


def test_two_imports_of_one_file_at_once_make_each_of_it_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        return take_over(world), take_over(world)

    for outcome in stage.explore(scenario):
        assert outcome.history("only") == ["task.created", "task.running", "task.done"]
        assert outcome.history("first").count("task.created") == 1
        assert outcome.statuses["next"] == "queued"


def test_a_worker_sees_all_of_an_import_or_nothing(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        return take_over(world), [world.claim("anna", 9)]

    for outcome in stage.explore(scenario):
        for name in ("only", "first"):
            assert outcome.history(name).count("task.running") == 1
        assert {name for name, _ in outcome.second[0]} <= {"next", "second"}
