"""What is answered, for the OpenAPI document; the service makes it, and these describe it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, RootModel

from holdfast.model.result import Refusal
from holdfast.server.schemas.examples import problem_example


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


class Awaited(Described):
    target: str = Field(description="A run, or a task without one, that the signal is for")
    name: str


class Signalled(Changed):
    """A signal that was kept; one sent again under its key is told of as `repeated` alone."""

    waited_for: bool | None = Field(
        default=None, description="Whether something waited for it; it is kept until something does"
    )
    awaited: list[Awaited] | None = Field(
        default=None, description="What was waited for, also in the runs that this one has called"
    )


class Schedule(Described):
    name: str
    cron: str
    zone: str


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
    detail: str | None = None


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


class Why(Described):
    """Of a task, its `clauses`; of a run, its `tasks`."""

    id: str
    status: str
    summary: str
    fixes: list[str] = Field(description="What would change it: commands to type")


class LogText(Described):
    attempt: int
    text: str
    next: int = Field(description="Where to `start` for what comes later")


class Written(Described):
    ok: bool
    bytes: int = Field(description="How long the log is now")


class Effects(Described):
    effects: dict[str, Any] = Field(description="What is remembered, by name")
    next: str | None = Field(default=None, description="What to pass as `after` for more")
    signals: dict[str, Any] | None = Field(
        default=None, description="To its worker: what the signals said that it waited for"
    )


class Remembered(Described):
    """What is remembered under a name, which is what came first."""

    ok: bool
    repeated: bool
    name: str
    value: Any = None


class Spawned(Remembered):
    items: list[Task] = Field(description="The children, in the order they were sent")


class Recalled(RootModel[Remembered | Effects]):
    """What is remembered under the name, or all of it."""


class File(Described):
    ok: bool
    repeated: bool
    name: str
    bytes: int
    digest: str = Field(description="SHA-256 of the content")


class Statistics(Described):
    agents: dict[str, dict[str, int]] = Field(description="Open tasks by agent and state")
    runs: dict[str, int]
    workers: int
    conflicts: int = Field(description="Commands and edits refused for their version")


class Alive(Described):
    ok: bool


class Document(Described):
    openapi: str
    paths: dict[str, Any]


class Reply(Described):
    """What MCP answers, as JSON-RPC."""

    jsonrpc: str


def _problem(status: int, code: str, description: str, detail: str) -> dict[str, Any]:
    example = problem_example(status, code, HTTPStatus(status).phrase, detail)
    shape = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
    return {"description": description, "content": {"application/problem+json": shape}}


_CONFLICTS = ", ".join(f"`{each}`" for each in (*Refusal, "key_conflict") if each != "not_found")

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _problem(
        400, "invalid_json", "The body is no JSON: `invalid_json`", "the body is no JSON"
    ),
    401: _problem(
        401,
        "unauthorized",
        "No token, or one that is unknown, revoked or expired: `unauthorized`",
        "a good token is needed: Authorization: Bearer …; `holdfast token` tells yours",
    ),
    403: _problem(
        403,
        "forbidden",
        "A good token, but not for this; a page that proves nothing; a foreign host or origin: "
        "`forbidden`, `csrf`, `foreign_host`, `foreign_origin`",
        "this is for admin, operator; the token is for others; `holdfast token create NAME "
        "--role operator` makes one that may",
    ),
    404: _problem(
        404,
        "not_found",
        "There is no such thing: `not_found`",
        "t_0: there is no such task in this store",
    ),
    409: _problem(
        409,
        "stale_token",
        f"Refused as it stands, with the code of the reason: {_CONFLICTS}",
        "attempt 2 has the task by now",
    ),
    413: _problem(
        413,
        "too_large",
        "The body is too long: `too_large`; an attempt or its run keeps enough: `too_much_kept`",
        "a body may have 16777216 bytes at most",
    ),
    415: _problem(
        415,
        "unsupported_media_type",
        "The body is not of a kind that is read here: `unsupported_media_type`",
        "send the header Content-Type: application/json; there is none",
    ),
    422: _problem(
        422,
        "invalid_input",
        "What was sent cannot be accepted, with the `field` and all `mistakes`: `invalid_input`, "
        "of a definition `invalid_workflow`",
        "max: must be 1 or more, not 0",
    ),
    429: _problem(
        429,
        "too_many_requests",
        "Too many at once: `too_many_requests`, with `Retry-After`; `too_many_streams`",
        "this token asks too often; ask again in 1 s",
    ),
    503: _problem(
        503,
        "store_unavailable",
        "Ask again, after `Retry-After`: `store_unavailable`, `store_unwritable` where its disk is "
        "full, or `shutting_down` where the server is going; `store_gone` where the store's file "
        "was removed, and it ends",
        "the store does not answer; ask again",
    ),
}
# What no route answers that is called as the document says.
UNROUTED: dict[int | str, dict[str, Any]] = {
    405: _problem(
        405,
        "method_not_allowed",
        "The path takes other methods, which `Allow` lists: `method_not_allowed`",
        "this path takes GET, POST; /openapi.json tells what each does",
    )
}
