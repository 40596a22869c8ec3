"""Groups that take over what an older store knew: trees of tasks, and runs in every state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.engine.core.operation import Claim, Import, Operation
from holdfast.model.status import Status
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import ACTOR
from tests.race.imported_history import past, run, tree
from tests.race.worlds import World


@group_of(Import, Claim)
def take_over_a_tree_of_tasks(world: World) -> Sequence[Operation]:
    return [*world.engine.imports.build_operations([tree(world)], ACTOR), world.claim("anna", 2)]


@group_of(Import)
def take_over_runs(world: World) -> Sequence[Operation]:
    early = replace(past(world, "early", Status.DONE), late=("open",))
    going = run(world, "going", [past(world, "open", Status.QUEUED), early])
    failed = [past(world, "one", Status.FAILED), past(world, "two", Status.QUEUED, "one")]
    stopped = run(world, "stopped", failed, cancelled=True)
    return world.engine.imports.build_operations([going, stopped], ACTOR)
