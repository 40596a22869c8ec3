"""Groups of what steps of workflow files give, and of the texts that are made from it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Claim, Complete, Operation
from holdfast.model.json_schema import Schema
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Step
from tests.chaos.plans.registry import group_of
from tests.race.worlds import World

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def counting(world: World, outputs: Schema | None) -> None:
    """A step under way whose output an approval and another step tell of."""
    world.run(
        Step(id="count", work=StepWork(outputs=outputs)),
        Step(id="ask", needs=("count",), approval="{{ steps.count.n }}?", work=StepWork()),
        Step(id="tell", needs=("count",), work=StepWork(command=("{{ steps.count.n }}",))),
    )
    world.start("count")


@group_of(Complete, Claim)
def complete_with_what_was_declared(world: World) -> Sequence[Operation]:
    counting(world, NUMBER)
    return [world.complete("count", '{"n":1}'), world.claim("anna")]


@group_of(Complete)
def complete_after_which_a_text_cannot_be_told(world: World) -> Sequence[Operation]:
    counting(world, None)
    return [world.complete("count", '{"m":1}')]
