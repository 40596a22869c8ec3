"""Workflows over HTTP; to define one is to have code run, and needs the admin."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Path, Request

from holdfast.definition.workflow_file import read_workflow_text
from holdfast.server.problems import JSON, Answer, Problem, not_json
from holdfast.server.request_context import AsksAs, in_thread
from holdfast.server.route_table import ADMINS, LOOKERS, Table
from holdfast.server.schemas import responses
from holdfast.service.queries.views import View, without_nulls

table = Table(tag="workflows")
YAML = "application/yaml"
_BODY = {"schema": {"type": "object"}, "example": {"name": "hello", "steps": [{"id": "a"}]}}
_WRITTEN = {"requestBody": {"required": True, "content": {JSON: _BODY, YAML: {"schema": {}}}}}


@table.route(
    "POST",
    "/workflows",
    ADMINS,
    answers=responses.Workflow,
    status=201,
    also={200: {"description": "It was known", "model": responses.Workflow}},
    extra=_WRITTEN,
)
async def add_workflow(request: Request, asks: AsksAs) -> Answer:
    """Keep a workflow, its definition as YAML or JSON: what its name means from now on."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {JSON, YAML, "application/x-yaml", "text/yaml"}:
        return not_json(request, YAML, JSON)
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "invalid_encoding", "the definition is not UTF-8") from error
    name = "body.json" if kind == JSON else "body.yaml"
    workflow = await in_thread(lambda: read_workflow_text(text, name=name))
    asks.note(workflow.name, workflow.version)
    told = await in_thread(asks.service.commands.add_workflow, workflow)
    return Answer(told, 201 if told["created"] else 200)


@table.route("GET", "/workflows", LOOKERS, answers=responses.Page)
def list_workflows(asks: AsksAs) -> Answer:
    """Every workflow that the store knows."""
    return Answer(asks.service.queries.workflows())


@table.route("GET", "/workflows/{name}", LOOKERS, answers=responses.Workflow)
def show_workflow(name: Annotated[str, Path()], asks: AsksAs, version: str | None = None) -> Answer:
    """The definition of the newest version, or of the one asked for."""
    known = asks.service.commands.find_workflow(name, version)
    return Answer({"version": known.version, **_said(json.loads(known.definition))})


def _said(part: View) -> View:
    """A definition, or a step of one, without what it leaves open; values in it may be null."""
    told = without_nulls(**part)
    if "steps" in told:
        told["steps"] = [_said(each) for each in told["steps"]]
    return told
