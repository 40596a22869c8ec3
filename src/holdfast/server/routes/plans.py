"""Plans over HTTP: children are added, put in order, and let go."""

from __future__ import annotations

from holdfast.server import answers
from holdfast.server.door import AsksAs, TaskId
from holdfast.server.problems import Answer
from holdfast.server.routes.tasks import make
from holdfast.server.routing import STEERERS, Table
from holdfast.service.commands import request_bodies

table = Table(tag="plans")


@table.route(
    "POST",
    "/tasks/{task_id}/plan/children",
    STEERERS,
    answers=answers.Made,
    status=201,
    also={200: {"description": "The same key and body again", "model": answers.Task}},
)
async def add_children(
    task_id: TaskId, body: request_bodies.NewTask | request_bodies.NewTasks, asks: AsksAs
) -> Answer:
    """Add one child, or `{tasks: […]}`, to a plan that is not finalized."""
    return await make(asks, body, task_id)


@table.route("PATCH", "/tasks/{task_id}/plan/children", STEERERS, answers=answers.Changed)
def reorder_children(
    task_id: TaskId, body: request_bodies.Reorder | request_bodies.Reordered, asks: AsksAs
) -> Answer:
    """Put the children in this order, or each at its position; name all of them."""
    return Answer(asks.service.commands.reorder_plan(task_id, body.order))


@table.route("POST", "/tasks/{task_id}/plan/finalize", STEERERS, answers=answers.Changed)
def finalize_plan(
    task_id: TaskId, asks: AsksAs, body: request_bodies.Finalize | None = None
) -> Answer:
    """Queue the children, as a chain in their order, or by what each needs."""
    return Answer(asks.service.commands.finalize_plan(task_id, body.graph if body else None))
