"""Responses: a schema with its example for each response, for the OpenAPI document.

The schema of a record is made from its shape in the service. The other schemas are described here,
each field with its example, and the example of the whole is made from those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, RootModel, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from holdfast.model.result import Refusal
from holdfast.service.admin.tokens import TOKEN
from holdfast.service.queries.shapes import ExampleOf, Shape
from holdfast.service.queries.views import EVENT, RUN, SCHEDULE, TASK
from holdfast.worker.problem import problem

D = TypeVar("D", bound="DescribedResponse")


class DescribedResponse(BaseModel):
    """An object that may hold more fields than are described; null fields are absent."""

    model_config = ConfigDict(extra="allow")
    # Fields of the example that are not described.
    shown_too: ClassVar[dict[str, Any]] = {}

    @classmethod
    def example(cls) -> dict[str, Any]:
        found = {name: _example(field) for name, field in cls.model_fields.items()}
        return {name: each for name, each in found.items() if each is not None} | cls.shown_too

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        whole = handler.resolve_ref_schema(schema)
        for each in whole["properties"].values():
            each.pop("examples", None)
        whole["examples"] = [cls.example()]
        return schema


def _example(field: FieldInfo) -> object:
    """The example of a field, or of the schema that is its type."""
    if field.examples:
        return field.examples[0]
    kind = field.annotation
    inner = get_args(kind)[0] if get_origin(kind) is list else kind
    if not (isinstance(inner, type) and issubclass(inner, DescribedResponse)):
        return None
    return [inner.example()] if get_origin(kind) is list else inner.example()


def described_by(shape: Shape) -> Callable[[type[D]], type[D]]:
    """Have a schema describe all fields with a kind of a shape, and show its example."""

    def describe(named: type[D]) -> type[D]:
        fields: dict[str, Any] = {
            each.name: (
                each.kind,
                Field(
                    description=each.description,
                    examples=None if each.example is None else [each.example],
                ),
            )
            for each in shape.fields.values()
            if each.kind is not None
        }
        if named.model_fields:
            raise TypeError(f"{named.__name__} describes fields that its shape is to describe")
        made = create_model(named.__name__, __base__=named, __module__=named.__module__, **fields)
        made.shown_too = {
            name: each for name, each in shape.example().items() if name not in fields
        }
        return made

    return describe


class ProblemResponse(DescribedResponse):
    type: str = Field(examples=["urn:holdfast:problem:stale_token"])
    title: str = Field(examples=["Conflict"])
    status: int = Field(examples=[409])
    code: str = Field(
        description="Does not change: `stale_token`, `key_conflict`, …", examples=["stale_token"]
    )
    detail: str = Field(examples=["attempt 2 has the task by now"])


@described_by(TASK)
class TaskResponse(DescribedResponse):
    pass


@described_by(RUN)
class RunResponse(DescribedResponse):
    pass


@described_by(EVENT)
class EventResponse(DescribedResponse):
    pass


@described_by(SCHEDULE)
class ScheduleResponse(DescribedResponse):
    pass


@described_by(TOKEN)
class TokenResponse(DescribedResponse):
    pass


class PageResponse(DescribedResponse):
    items: list[dict[str, Any]] = Field(
        examples=[[{"name": "python-1", "agents": ["writer"], "seen_at": ExampleOf.TIME}]]
    )
    next: str | int | None = None


class GroupPageResponse(DescribedResponse):
    items: list[dict[str, Any]] = Field(
        examples=[
            [
                {
                    "channel": "workflow.events",
                    "group": "accounting",
                    "lag": 0,
                    "waiting": 0,
                    "parked": 0,
                    "readers": [
                        {"name": "accounting-web1-0", "since": ExampleOf.TIME, "partitions": 16}
                    ],
                }
            ]
        ]
    )


class TaskPageResponse(DescribedResponse):
    items: list[TaskResponse]
    next: str | None = Field(None, examples=[ExampleOf.TASK_ID])


class NewTasksResponse(RootModel[TaskResponse | TaskPageResponse]):
    """The task itself, or several as `{items}`."""

    model_config = ConfigDict(json_schema_extra={"examples": [TaskResponse.example()]})


class RunPageResponse(DescribedResponse):
    items: list[RunResponse]
    next: str | None = Field(None, examples=[ExampleOf.RUN_ID])


class RunCountsResponse(DescribedResponse):
    total: int = Field(examples=[3])
    statuses: dict[str, int] = Field(
        examples=[{"running": 1, "completed": 2, "failed": 0, "cancelled": 0}]
    )


class EventPageResponse(DescribedResponse):
    items: list[EventResponse]
    next: str | None = Field(None, examples=["2"])


class RepeatableResponse(DescribedResponse):
    ok: bool = Field(examples=[True])
    repeated: bool = Field(examples=[False])


class ChangeResponse(RepeatableResponse):
    """A transition that happened; `repeated` when it had happened before."""

    shown_too = {"task": TaskResponse.example()}
    detail: str | None = Field(
        default=None,
        description="What happened besides, in words: that a sleep was cut short",
        examples=["its sleep was cut short, and it goes on from there"],
    )


class PreviewResponse(DescribedResponse):
    """What a command would change, in a dry run; nothing was changed."""

    dry_run: bool = Field(examples=[True])
    id: str = Field(examples=[ExampleOf.TASK_ID])
    tasks: list[dict[str, Any]] = Field(
        description="The tasks that would change, as they are, each with its `address` and the "
        "state that it `becomes`",
        examples=[
            [
                TaskResponse.example()
                | {"address": f"{ExampleOf.RUN_ID}:write", "becomes": "cancelled"}
            ]
        ],
    )
    made: list[dict[str, Any]] | None = Field(
        default=None, description="The tasks that would be created, which have no id yet"
    )
    indirect: int | None = Field(
        default=None,
        description="How many of the tasks would change only because others do",
        examples=[1],
    )


class SteeringResponse(RootModel[ChangeResponse | PreviewResponse]):
    """A transition that happened or, with `dry_run`, what it would change."""

    model_config = ConfigDict(json_schema_extra={"examples": [ChangeResponse.example()]})


class BulkResponse(DescribedResponse):
    id: str = Field(examples=["b_01m7grt6wxarbfxftyf2"])
    verb: str = Field(examples=["cancel"])
    filters: dict[str, Any] = Field(
        description="Which runs it is about",
        examples=[{"labels": {"customer": "7"}, "status": "running"}],
    )
    state: str = Field(
        description="`waiting`, `running`, `done`, `stopped` or, with an `error`, `failed`",
        examples=["running"],
    )
    matched: int = Field(description="How many runs fitted when it began", examples=[41])
    changed: int = Field(examples=[20])
    unchanged: int = Field(description="They were so before", examples=[0])
    refused: int = Field(examples=[1])
    refusals: list[dict[str, Any]] = Field(
        description="Some of the runs that were refused, with the code and the reason",
        examples=[[{"id": ExampleOf.RUN_ID, "code": "already_terminal", "detail": "…"}]],
    )
    started_at: str = Field(examples=[ExampleOf.TIME])
    finished_at: str | None = None
    error: str | None = None


class BulkPageResponse(DescribedResponse):
    items: list[BulkResponse]


class BulkPreviewResponse(DescribedResponse):
    dry_run: bool = Field(examples=[True])
    verb: str = Field(examples=["cancel"])
    matched: int = Field(description="How many runs fit", examples=[41])
    examples: list[dict[str, Any]] = Field(
        description="The newest of them",
        examples=[[{"id": ExampleOf.RUN_ID, "workflow": "letters", "status": "running"}]],
    )


class AwaitedSignalResponse(DescribedResponse):
    target: str = Field(
        description="A run, or a task without one, that the signal is for",
        examples=[ExampleOf.RUN_ID],
    )
    name: str = Field(examples=["courier.arrived"])


class SignalResponse(RepeatableResponse):
    """A signal that was kept; one sent again under its key is told of as `repeated` alone."""

    shown_too = {"run": RunResponse.example()}
    waited_for: bool | None = Field(
        default=None,
        description="Whether something waited for it; it is kept until something does",
        examples=[True],
    )
    awaited: list[AwaitedSignalResponse] | None = Field(
        default=None,
        description="What was waited for, also in the runs that this one has called",
        examples=[[AwaitedSignalResponse.example()]],
    )


class WorkflowResponse(DescribedResponse):
    shown_too = {"created": True}
    name: str = Field(examples=["letters"])
    version: str = Field(examples=[ExampleOf.VERSION])


class AssignmentResponse(DescribedResponse):
    task: TaskResponse = Field(
        examples=[
            TaskResponse.example()
            | {"status": "running", "state": "running", "attempt": 1, "version": 2}
        ]
    )
    attempt: int = Field(examples=[1])
    token: str = Field(
        description="The secret of this attempt: every report carries it",
        examples=[ExampleOf.TOKEN],
    )
    lease_expires_at: str = Field(examples=[ExampleOf.LATER])


class ClaimResponse(DescribedResponse):
    assignments: list[AssignmentResponse]
    told: str | None = Field(None, description="To go: `drain`, `evict`")


class ReportResponse(DescribedResponse):
    task_id: str = Field(examples=[ExampleOf.TASK_ID])
    ok: bool = Field(examples=[True])
    reason: str | None = None
    detail: str | None = None


class RenewResponse(DescribedResponse):
    leases: list[ReportResponse] = Field(
        examples=[[ReportResponse.example() | {"ok": False, "reason": "stale_token"}]]
    )
    told: str | None = Field(None, description="To go: `drain`, `evict`")


class WatchResponse(DescribedResponse):
    ended: list[str] = Field(
        description="The tasks whose attempts are over", examples=[[ExampleOf.TASK_ID]]
    )


class HeadResponse(DescribedResponse):
    line: str = Field(examples=[ExampleOf.RUN_ID])
    number: int = Field(examples=[2])
    sha: str = Field(examples=[ExampleOf.COMMIT])


class DraftResponse(DescribedResponse):
    base: str = Field(examples=[ExampleOf.BASE])
    sha: str = Field(examples=[ExampleOf.COMMIT])


class LineResponse(DescribedResponse):
    """A line of commits: it begins at `base`, and is at `head`, which is its `number`th."""

    id: str = Field(examples=[ExampleOf.RUN_ID])
    run_id: str = Field(examples=[ExampleOf.RUN_ID])
    base: str = Field(examples=[ExampleOf.BASE])
    head: str = Field(examples=[ExampleOf.COMMIT])
    number: int = Field(examples=[2])
    branch: str = Field(examples=["holdfast/add-sso-9z4k2m"])
    repository: str | None = None
    host: str | None = None
    draft: DraftResponse | None = Field(None, description="What the attempt goes on from")
    subject: str | None = Field(None, description="The commit that a verifier judges")
    around: HeadResponse | None = Field(None, description="The head around the items of a loop")


class OpenedLineResponse(DescribedResponse):
    ok: bool = Field(examples=[True])
    line: LineResponse | None = None


class HostLineResponse(DescribedResponse):
    run_id: str = Field(examples=[ExampleOf.RUN_ID])
    repository: str = Field(examples=["/work/shop"])
    branch: str = Field(examples=["holdfast/add-sso-9z4k2m"])
    base: str = Field(examples=[ExampleOf.BASE])
    head: str = Field(examples=[ExampleOf.COMMIT])
    number: int = Field(examples=[2])
    keep: float = Field(examples=[259200.0])
    ended_at: int | None = Field(None, description="Microseconds since 1970, if it has ended")


class HostLinesResponse(DescribedResponse):
    items: list[HostLineResponse]


class CompleteManyResponse(DescribedResponse):
    results: list[ReportResponse] = Field(
        examples=[[ReportResponse.example() | {"repeated": False}]]
    )


class LinkResponse(DescribedResponse):
    path: str = Field(
        description="To be opened on this server, by one browser, once",
        examples=["/enter?code=8J1c"],
    )
    expires_at: str = Field(examples=[ExampleOf.LATER])


class SessionResponse(DescribedResponse):
    name: str = Field(examples=["ada"])
    role: str = Field(examples=["operator"])
    csrf: str | None = Field(
        None, description="To be sent as X-Holdfast-CSRF with each change", examples=["5f1d"]
    )
    expires_at: str | None = Field(None, examples=[ExampleOf.LATER])


class WhyResponse(DescribedResponse):
    """Of a task, its `clauses`; of a run, its `tasks`."""

    shown_too = {
        "state": "ready",
        "claimable": True,
        "clauses": [{"name": "needs", "ok": True, "detail": ""}],
    }
    id: str = Field(examples=[ExampleOf.TASK_ID])
    status: str = Field(examples=["queued"])
    summary: str = Field(examples=["Write the letter is ready"])
    fixes: list[str] = Field(
        description="What would change it: commands to type",
        examples=[["holdfast worker --agent writer"]],
    )
    looks: list[str] = Field(
        description="What tells more and changes nothing: commands to type",
        examples=[["holdfast logs t_01…"]],
    )


class LogTextResponse(DescribedResponse):
    attempt: int = Field(examples=[1])
    text: str = Field(examples=["on it\n"])
    next: int = Field(description="Where to `start` for what comes later", examples=[6])


class LogWriteResponse(DescribedResponse):
    ok: bool = Field(examples=[True])
    bytes: int = Field(description="How long the log is now", examples=[6])


class EffectPageResponse(DescribedResponse):
    effects: dict[str, Any] = Field(
        description="What is remembered, by name", examples=[{"mail": {"id": 7}}]
    )
    next: str | None = Field(default=None, description="What to pass as `after` for more")
    signals: dict[str, Any] | None = Field(
        default=None, description="To its worker: what the signals said that it waited for"
    )


class EffectResponse(RepeatableResponse):
    """What is remembered under a name, which is what came first."""

    name: str = Field(examples=["mail"])
    value: Any = Field(None, examples=[{"id": 7}])


class SpawnResponse(EffectResponse):
    name: str = Field(examples=["children"])
    value: Any = Field(None, examples=[[ExampleOf.TASK_ID]])
    items: list[TaskResponse] = Field(description="The children, in the order they were sent")


class EffectOrPageResponse(RootModel[EffectResponse | EffectPageResponse]):
    """What is remembered under the name, or all of it."""

    model_config = ConfigDict(json_schema_extra={"examples": [EffectResponse.example()]})


class ArtifactResponse(RepeatableResponse):
    name: str = Field(examples=["letter.txt"])
    bytes: int = Field(examples=[8])
    digest: str = Field(description="SHA-256 of the content", examples=["8f43"])


class KeptArtifactResponse(DescribedResponse):
    name: str = Field(examples=["letter.txt"])
    bytes: int = Field(examples=[8])
    digest: str = Field(description="SHA-256 of the content", examples=["8f43"])
    attempt: int = Field(description="The attempt that kept it", examples=[1])
    kept_at: str = Field(examples=[ExampleOf.TIME])


class ArtifactPageResponse(DescribedResponse):
    items: list[KeptArtifactResponse] = Field(description="The files that it has kept, by name")
    next: str | None = Field(None, description="What to pass as `after` for more")


class ChangedFileResponse(DescribedResponse):
    path: str = Field(examples=["src/login.ts"])
    change: str = Field(
        description="added, changed, removed, renamed or copied", examples=["changed"]
    )
    added: int = Field(description="How many lines came", examples=[12])
    removed: int = Field(description="How many lines went", examples=[4])
    binary: bool | None = Field(None, description="A file without lines")


class DiffResponse(DescribedResponse):
    base: str = Field(description="The commit before", examples=[ExampleOf.COMMIT])
    commit: str = Field(description="The commit after", examples=[ExampleOf.COMMIT])
    files: list[ChangedFileResponse] = Field(description="The files that differ")
    added: int = Field(examples=[12])
    removed: int = Field(examples=[4])
    patch: str = Field(description="The change as `git apply` takes it", examples=[""])
    truncated: bool | None = Field(None, description="The patch was longer than is kept")


class TaskDiffResponse(DiffResponse):
    task_id: str = Field(examples=[ExampleOf.TASK_ID])
    attempt: int = Field(examples=[1])
    kind: str = Field(
        description="head: it became part of the run; draft: unfinished; left: of a failed attempt",
        examples=["head"],
    )


class RunDiffResponse(DiffResponse):
    run_id: str = Field(examples=[ExampleOf.RUN_ID])
    branch: str | None = Field(None, examples=["holdfast/add-sso-ftyf2"])


class StatisticsResponse(DescribedResponse):
    agents: dict[str, dict[str, int]] = Field(
        description="Open tasks by agent and state",
        examples=[{"writer": {"ready": 3, "running": 1}}],
    )
    runs: dict[str, int] = Field(examples=[{"running": 2}])
    workers: int = Field(examples=[1])
    conflicts: int = Field(description="Commands and edits refused for their version", examples=[0])


class HourResponse(DescribedResponse):
    hour: str = Field(examples=[ExampleOf.TIME])
    runs: dict[str, int] = Field(
        examples=[{"started": 3, "completed": 2, "failed": 0, "cancelled": 0}]
    )
    tasks: dict[str, int] = Field(examples=[{"done": 9, "failed": 0, "retried": 1, "lost": 0}])
    dispatch: dict[str, float] = Field(
        description="How long tasks were ready before an attempt began: how many `attempts`, and "
        "the seconds of the middle one (`p50`) and of one in twenty (`p95`)",
        examples=[{"attempts": 10, "p50": 0.004, "p95": 0.9}],
    )


class ActivityResponse(DescribedResponse):
    items: list[HourResponse]


class DayResponse(DescribedResponse):
    day: str = Field(examples=["2026-03-02"])
    usd: float = Field(examples=[1.12])
    attempts: int = Field(description="Those that told what they used", examples=[4])
    workflows: dict[str, float] = Field(examples=[{"letters": 1.12}])


class CostsResponse(DescribedResponse):
    items: list[DayResponse]
    usd: float = Field(description="Of all these days", examples=[1.12])


class ValidationResponse(DescribedResponse):
    ok: bool = Field(examples=[False])
    mistakes: list[dict[str, Any]] = Field(
        examples=[
            [
                {
                    "line": 3,
                    "column": 5,
                    "message": "step has no key 'rum'",
                    "hint": "did you mean 'run'?",
                }
            ]
        ]
    )
    name: str | None = None
    version: str | None = None
    definition: dict[str, Any] | None = None


class VersionResponse(DescribedResponse):
    version: str = Field(examples=[ExampleOf.VERSION])
    created_at: str = Field(examples=[ExampleOf.TIME])


class VersionPageResponse(DescribedResponse):
    items: list[VersionResponse]


class AliveResponse(DescribedResponse):
    ok: bool = Field(examples=[True])


class DocumentResponse(DescribedResponse):
    openapi: str = Field(examples=["3.1.0"])
    paths: dict[str, Any] = Field(examples=[{}])


class JsonRpcResponse(DescribedResponse):
    """What MCP answers, as JSON-RPC."""

    shown_too = {"id": 1, "result": {"tools": []}}
    jsonrpc: str = Field(examples=["2.0"])


def _describe_problem(status: int, code: str, description: str, detail: str) -> dict[str, Any]:
    example = problem(status, code, detail).body
    shape = {"schema": {"$ref": "#/components/schemas/ProblemResponse"}, "example": example}
    return {"description": description, "content": {"application/problem+json": shape}}


_CONFLICTS = ", ".join(f"`{each}`" for each in (*Refusal, "key_conflict") if each != "not_found")

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _describe_problem(
        400, "invalid_json", "The body is no JSON: `invalid_json`", "the body is no JSON"
    ),
    401: _describe_problem(
        401,
        "unauthorized",
        "No token, or one that is unknown, revoked or expired: `unauthorized`",
        "a good token is needed: Authorization: Bearer …; `holdfast token` tells yours",
    ),
    403: _describe_problem(
        403,
        "forbidden",
        "A good token, but not for this; a page that proves nothing; a foreign host or origin: "
        "`forbidden`, `csrf`, `foreign_host`, `foreign_origin`",
        "this is for admin, operator; the token is for others; `holdfast token create NAME "
        "--role operator` makes one that may",
    ),
    404: _describe_problem(
        404,
        "not_found",
        "There is no such thing: `not_found`",
        "t_0: there is no such task in this store",
    ),
    409: _describe_problem(
        409,
        "stale_token",
        f"Refused as it stands, with the code of the reason: {_CONFLICTS}",
        "attempt 2 has the task by now",
    ),
    413: _describe_problem(
        413,
        "too_large",
        "The body is too long: `too_large`; an attempt or its run keeps enough: `too_much_kept`",
        "a body may have 16777216 bytes at most",
    ),
    415: _describe_problem(
        415,
        "unsupported_media_type",
        "The body is not of a kind that is read here: `unsupported_media_type`",
        "send the header Content-Type: application/json; there is none",
    ),
    422: _describe_problem(
        422,
        "invalid_input",
        "What was sent cannot be accepted, with the `field` and all `mistakes`: `invalid_input`, "
        "of a definition `invalid_workflow`",
        "max: must be 1 or more, not 0",
    ),
    429: _describe_problem(
        429,
        "too_many_requests",
        "Too many at once: `too_many_requests`, with `Retry-After`; `too_many_streams`",
        "this token asks too often; ask again in 1 s",
    ),
    503: _describe_problem(
        503,
        "store_unavailable",
        "Ask again, after `Retry-After`: `store_unavailable`, `store_unwritable` where its disk is "
        "full, or `shutting_down` where the server is going; `store_gone` where the store's file "
        "was removed, and it ends",
        "the store does not answer; ask again",
    ),
}
# Problems of requests that reach no route.
UNROUTED_PROBLEMS: dict[int | str, dict[str, Any]] = {
    405: _describe_problem(
        405,
        "method_not_allowed",
        "The path takes other methods, which `Allow` lists: `method_not_allowed`",
        "this path takes GET, POST; /openapi.json tells what each does",
    )
}
