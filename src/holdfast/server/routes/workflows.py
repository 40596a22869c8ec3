"""Workflow routes: reading workflows, and defining them, which only an admin may do."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Path, Request

from holdfast.definition.workflow_file import read_workflow_text
from holdfast.server.exception_handlers import JSON, JsonAnswer, Problem, refuse_content_type
from holdfast.server.request_context import Context, in_thread
from holdfast.server.route_table import ADMIN_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.queries.views import View, without_nulls

table = RouteTable(tag="workflows")
YAML = "application/yaml"
_JSON_DEFINITION = {
    "schema": {"type": "object"},
    "example": {"name": "hello", "steps": [{"id": "a"}]},
}
_DEFINITION_BODY = {
    "requestBody": {"required": True, "content": {JSON: _JSON_DEFINITION, YAML: {"schema": {}}}}
}


@table.route(
    "POST",
    "/workflows",
    ADMIN_ROLES,
    answers=responses.WorkflowResponse,
    status=201,
    also={200: {"description": "It was known", "model": responses.WorkflowResponse}},
    extra=_DEFINITION_BODY,
)
async def add_workflow(request: Request, context: Context) -> JsonAnswer:
    """Keep a workflow, its definition as YAML or JSON: what its name means from now on."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {JSON, YAML, "application/x-yaml", "text/yaml"}:
        return refuse_content_type(request, YAML, JSON)
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "invalid_encoding", "the definition is not UTF-8") from error
    name = "body.json" if kind == JSON else "body.yaml"
    workflow = await in_thread(lambda: read_workflow_text(text, name=name))
    context.note(workflow.name, workflow.version)
    told = await in_thread(context.service.commands.add_workflow, workflow)
    return JsonAnswer(told, 201 if told["created"] else 200)


@table.route("GET", "/workflows", VIEWER_ROLES, answers=responses.PageResponse)
def list_workflows(context: Context) -> JsonAnswer:
    """Every workflow that the store knows."""
    return JsonAnswer(context.service.queries.workflows())


@table.route("GET", "/workflows/{name}", VIEWER_ROLES, answers=responses.WorkflowResponse)
def show_workflow(
    name: Annotated[str, Path()], context: Context, version: str | None = None
) -> JsonAnswer:
    """The definition of the newest version, or of the one asked for."""
    known = context.service.commands.find_workflow(name, version)
    return JsonAnswer({"version": known.version, **_leave_out_nulls(json.loads(known.definition))})


def _leave_out_nulls(part: View) -> View:
    """A definition, or a step of one, without what it leaves open; values in it may be null."""
    told = without_nulls(**part)
    if "steps" in told:
        told["steps"] = [_leave_out_nulls(each) for each in told["steps"]]
    return told
