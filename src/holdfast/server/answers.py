"""What is answered, for the OpenAPI document; the service makes it, and these describe it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, RootModel


class Described(BaseModel):
    """An object that may hold more than is told of it here; what is null is absent."""

    model_config = ConfigDict(extra="allow")


class Problem(Described):
    type: str
    title: str
    status: int
    code: str = Field(description="Does not change: `stale_token`, `key_conflict`, …")
    detail: str


class Lease(Described):
    owner: str
    expires_at: str


class Task(Described):
    id: str
    kind: str
    title: str
    agent: str
    status: str
    state: str = Field(description="What a person sees: `ready`, `blocked`, `in progress 2/5`, …")
    planning_phase: str
    blocked_by: list[str]
    holds: list[str]
    skipped: bool
    attempt: int
    failures: int
    max_attempts: int
    lost: int
    max_lost: int
    generation: int
    priority: int
    position: int
    tags: list[str]
    version: int
    created_at: str


class Run(Described):
    id: str
    workflow: str
    workflow_version: str
    status: str
    holds: list[str]
    version: int
    generation: int
    created_at: str


class Event(Described):
    seq: int
    type: str
    version: int
    attempt: int
    actor: str
    at: str


class Page(Described):
    items: list[dict[str, Any]]
    next: str | int | None = None


class Tasks(Described):
    items: list[Task]
    next: str | None = None


class Made(RootModel[Task | Tasks]):
    """The task itself, or several as `{items}`."""


class Runs(Described):
    items: list[Run]
    next: str | None = None


class Events(Described):
    items: list[Event]
    next: str | None = None


class Changed(Described):
    """A transition that happened; `repeated` when it had happened before."""

    ok: bool
    repeated: bool


class Workflow(Described):
    name: str
    version: str


class Assignment(Described):
    task: Task
    attempt: int
    token: str = Field(description="The secret of this attempt: every report carries it")
    lease_expires_at: str


class Assignments(Described):
    assignments: list[Assignment]
    told: str | None = Field(None, description="To go: `drain`, `evict`")


class Kept(Described):
    task_id: str
    ok: bool
    reason: str | None = None


class Leases(Described):
    leases: list[Kept]
    told: str | None = Field(None, description="To go: `drain`, `evict`")


class Results(Described):
    results: list[Kept]


class Token(Described):
    name: str
    role: str


class Link(Described):
    path: str = Field(description="To be opened on this server, by one browser, once")
    expires_at: str


class Session(Described):
    name: str
    role: str
    csrf: str | None = Field(None, description="To be sent as X-Holdfast-CSRF with each change")
    expires_at: str | None = None


def _problem(description: str) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": description, "content": content}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _problem("The body is no JSON: `invalid_json`"),
    401: _problem("No token, or one that is not good: `unauthorized`"),
    403: _problem(
        "A good token, but not for this; a page that proves nothing; a foreign host or origin: "
        "`forbidden`, `csrf`, `foreign_host`, `foreign_origin`"
    ),
    404: _problem("There is no such thing: `not_found`"),
    409: _problem("Refused as it stands, with the code of the reason: `stale_token`, …"),
    413: _problem("The body is too long: `too_large`"),
    415: _problem("The body is not of a kind that is read here: `unsupported_media_type`"),
    422: _problem("What was sent cannot be accepted: `invalid_input`, with the `field`"),
    429: _problem("Too many at once: `too_many_requests`, with `Retry-After`"),
    503: _problem("The store does not answer, or the server is going: ask again"),
}
