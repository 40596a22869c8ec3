"""Workflow routes: reading workflows, and defining them, which only an admin may do."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Path, Request

from holdfast.definition.workflow_file import read_workflow_text
from holdfast.errors import InvalidWorkflowFile
from holdfast.server.exception_handlers import JSON, JsonAnswer, Problem, refuse_content_type
from holdfast.server.request_context import Context, in_thread
from holdfast.server.route_table import ADMIN_ROLES, OPERATOR_ROLES, VIEWER_ROLES, RouteTable
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
    name = _name_of_body(request)
    if name is None:
        return refuse_content_type(request, YAML, JSON)
    text = await _read_text(request)
    workflow = await in_thread(lambda: read_workflow_text(text, name=name))
    context.note(workflow.name, workflow.version)
    told = await in_thread(context.service.commands.add_workflow, workflow)
    return JsonAnswer(told, 201 if told["created"] else 200)


@table.route(
    "POST",
    "/workflows/validate",
    OPERATOR_ROLES,
    answers=responses.ValidationResponse,
    extra=_DEFINITION_BODY,
)
async def validate_workflow(request: Request, context: Context) -> JsonAnswer:
    """Check a definition, as YAML or JSON: every mistake with its line; nothing is kept."""
    name = _name_of_body(request)
    if name is None:
        return refuse_content_type(request, YAML, JSON)
    text = await _read_text(request)
    told = await in_thread(_validate, text, name)
    context.leave_out_of_audit()
    return JsonAnswer(told)


def _validate(text: str, name: str) -> View:
    try:
        workflow = read_workflow_text(text, name=name)
    except InvalidWorkflowFile as error:
        return {"ok": False, "mistakes": [each.told() for each in error.found]}
    return {
        "ok": True,
        "mistakes": [],
        "name": workflow.name,
        "version": workflow.version,
        "definition": _leave_out_nulls(json.loads(workflow.definition)),
    }


def _name_of_body(request: Request) -> str | None:
    """The name of a definition in its mistakes, by its kind; None for a kind that is not read."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON:
        return "body.json"
    return "body.yaml" if kind in {YAML, "application/x-yaml", "text/yaml"} else None


async def _read_text(request: Request) -> str:
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "invalid_encoding", "the definition is not UTF-8") from error


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


@table.route(
    "GET", "/workflows/{name}/versions", VIEWER_ROLES, answers=responses.VersionPageResponse
)
def list_versions(name: Annotated[str, Path()], context: Context) -> JsonAnswer:
    """Every version of a workflow, the newest first; `?version=` of the workflow has its graph."""
    return JsonAnswer(context.service.queries.workflow_versions(name))


def _leave_out_nulls(part: View) -> View:
    """A definition, or a step of one, without what it leaves open; values in it may be null."""
    told = without_nulls(**part)
    if "steps" in told:
        told["steps"] = [_leave_out_nulls(each) for each in told["steps"]]
    return told
