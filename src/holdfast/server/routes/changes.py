"""Change routes: what a run or a task has changed in a repository."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.request_context import Context, RunId, TaskId
from holdfast.server.route_table import VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses

table = RouteTable(tag="tasks")


@table.route("GET", "/tasks/{task_id}/diff", VIEWER_ROLES, answers=responses.TaskDiffResponse)
def show_change_of_task(
    task_id: TaskId,
    context: Context,
    attempt: Annotated[int | None, Query(ge=1, description="By default the newest")] = None,
) -> JsonAnswer:
    """What an attempt of it has changed in the repository of its run, with the patch."""
    return JsonAnswer(context.service.change(task_id, attempt))


@table.route("GET", "/runs/{run_id}/diff", VIEWER_ROLES, answers=responses.RunDiffResponse)
def show_change_of_run(run_id: RunId, context: Context) -> JsonAnswer:
    """What it has changed in its repository from where it began, with the patch."""
    return JsonAnswer(context.service.change(run_id))
