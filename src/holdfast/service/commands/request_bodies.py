"""What is sent, checked as far as its shape goes; the engine judges the rest. Null is absent."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

MAX_ENTRIES = 10_000
MAX_WAIT = 120.0
# A worker that asks is remembered, with all that it offers.
MAX_AGENTS_OR_TAGS = 200

Seconds = Annotated[float, Field(ge=0, le=86_400)]
Count = Annotated[int, Field(ge=1, le=1_000)]


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    def given(self) -> dict[str, Any]:
        """What was sent, without what was null."""
        values = self.__dict__
        return {
            name: value for name in self.model_fields_set if (value := values[name]) is not None
        }


class StartRunBody(RequestBody):
    workflow: Annotated[str, Field(description="A name that the store knows")]
    version: Annotated[str | None, Field(description="Not the newest, but this one")] = None
    input: Any = None
    key: str | None = None
    priority: int | None = None
    deadline: Annotated[
        str | float | None,
        Field(description="Seconds from its start, or `2h`; else its workflow's"),
    ] = None


class ResumeRunBody(RequestBody):
    add_usd: Annotated[float | None, Field(description="Raises what it may use, in dollars")] = None
    add_attempts: Annotated[int | None, Field(description="Raises its budget of attempts")] = None


class RetryRunBody(RequestBody):
    step: Annotated[
        str | None,
        Field(
            validation_alias=AliasChoices("step", "from"),
            description="This step, or build.2.test, and all that needs it; `from` is the same",
        ),
    ] = None


class SignalBody(RequestBody):
    name: str
    payload: Any = None
    key: str | None = None


class NewTaskBody(RequestBody):
    title: str
    step: str | None = None
    agent: str | None = None
    payload: Any = None
    needs: list[str] | None = None
    parent: str | None = None
    scheduled_for: Annotated[
        str | int | None, Field(description="A time in ISO 8601, or `10m` from now")
    ] = None
    priority: int | None = None
    position: int | None = None
    tags: list[str] | None = None
    key: str | None = None
    max_attempts: int | None = None
    max_lost: int | None = None
    timeout: Annotated[str | float | None, Field(description="Seconds, or `30m`")] = None
    enqueue: bool | None = None


class NewScheduleBody(RequestBody):
    """What each tick starts is a `workflow` with its `input`, or a `task`."""

    name: Annotated[str, Field(description="Another of its name is replaced")]
    cron: Annotated[str, Field(description="Minute, hour, day, month, weekday")]
    zone: str | None = None
    missed: Annotated[
        str | None, Field(description="For ticks that nobody was there for: one, all or skip")
    ] = None
    workflow: Annotated[str | None, Field(description="A name that the store knows")] = None
    input: Any = None
    task: NewTaskBody | None = None


class NewTasksBody(RequestBody):
    tasks: Annotated[list[NewTaskBody], Field(max_length=MAX_ENTRIES)]


class EditTaskBody(RequestBody):
    title: str | None = None
    agent: str | None = None
    payload: Any = None
    priority: int | None = None
    position: int | None = None
    tags: list[str] | None = None
    max_attempts: int | None = None
    max_lost: int | None = None
    timeout: str | float | None = None
    scheduled_for: str | int | None = None


class BlockTaskBody(RequestBody):
    needs: Annotated[
        list[str],
        Field(max_length=MAX_ENTRIES, description="Tasks that must be done before it starts"),
    ]


class UnblockTaskBody(RequestBody):
    needs: Annotated[
        list[str] | None,
        Field(
            max_length=MAX_ENTRIES,
            description="Tasks that it was linked to by hand; else all of those",
        ),
    ] = None


class ApproveBody(RequestBody):
    note: Any = None


class RejectBody(RequestBody):
    reason: Any = None


class FollowUpBody(RequestBody):
    message: Annotated[
        Any, Field(description="What is to be done now; the `feedback` of who does it")
    ]


class AnswerBody(RequestBody):
    answer: Any


class FinalizePlanBody(RequestBody):
    graph: Annotated[
        dict[str, list[str]] | None, Field(description="What each child needs; else a chain")
    ] = None


class ReorderPlanBody(RequestBody):
    order: Annotated[list[str], Field(max_length=MAX_ENTRIES)]


class TaskPositionBody(RequestBody):
    id: str
    position: Annotated[int | None, Field(description="Else where it stands in the list")] = None


class ReorderByPositionBody(RequestBody):
    tasks: Annotated[list[TaskPositionBody], Field(max_length=MAX_ENTRIES)]

    @property
    def order(self) -> list[str]:
        places = [
            place if each.position is None else each.position
            for place, each in enumerate(self.tasks)
        ]
        return [
            each.id for _, each in sorted(zip(places, self.tasks, strict=True), key=itemgetter(0))
        ]


class ClaimBody(RequestBody):
    worker: str
    agents: Annotated[
        list[str] | None,
        Field(
            max_length=MAX_AGENTS_OR_TAGS,
            description="The roles it works as, one or more; else `default`",
        ),
    ] = None
    tags: Annotated[list[str] | None, Field(max_length=MAX_AGENTS_OR_TAGS)] = None
    max: Count | None = None
    wait_seconds: Annotated[float, Field(ge=0, le=MAX_WAIT)] | None = None
    lease_seconds: Seconds | None = None
    request_id: Annotated[str | None, Field(description="The same again gives the same")] = None
    task_id: str | None = None
    process: Annotated[
        str | None, Field(description="Another with each start: who was told to go may come back")
    ] = None
    passing: Annotated[
        list[str] | None, Field(max_length=1_000, description="Tasks to leave to others")
    ] = None
    whole: Annotated[
        bool | None,
        Field(description="What Holdfast's own workers could run, with all that they want for it"),
    ] = None


class EffectNoteBody(RequestBody):
    name: str
    value: Any = None


class RenewLeaseBody(RequestBody):
    task_id: str
    token: str
    progress: Any = None
    usage: Any = None


class RenewBody(RequestBody):
    worker: str | None = None
    process: Annotated[str | None, Field(description="As in its claims, if it said one")] = None
    leases: Annotated[list[RenewLeaseBody], Field(max_length=MAX_ENTRIES)]
    lease_seconds: Seconds | None = None


class LeaveBody(RequestBody):
    worker: str
    process: Annotated[
        str | None, Field(description="As in the claims of the one that leaves, if it said one")
    ] = None


class AttemptBody(RequestBody):
    token: str


class CompleteBody(AttemptBody):
    output: Any = None
    usage: Any = None


class TaskResultBody(CompleteBody):
    task_id: str


class CompleteManyBody(RequestBody):
    results: Annotated[list[TaskResultBody], Field(max_length=MAX_ENTRIES)]


class FailBody(AttemptBody):
    error: Any = "failed"
    retryable: bool | None = None
    usage: Any = None
    limit_until: Annotated[
        str | int | None, Field(description="An agent's usage limit: when it lifts; costs nothing")
    ] = None


class ReleaseBody(AttemptBody):
    until: str | int | None = None
    wait_for: Annotated[str | None, Field(description="A signal to its run")] = None
    note: Annotated[EffectNoteBody | None, Field(description="An effect to remember with it")] = (
        None
    )


class AskBody(AttemptBody):
    question: Any
    note: Annotated[EffectNoteBody | None, Field(description="An effect to remember with it")] = (
        None
    )


class NoteStopBody(AttemptBody):
    ended: Annotated[int, Field(ge=0, le=1_000_000_000)]
    left: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


class LogBody(AttemptBody):
    chunk: str


class EffectBody(AttemptBody):
    name: Annotated[str | None, Field(description="Without one, what is remembered")] = None
    value: Any = None
    limit: Annotated[int | None, Field(ge=1, le=MAX_ENTRIES, description="How many at most")] = None
    after: Annotated[str | None, Field(description="The `next` of the page before")] = None


class ArtifactBody(AttemptBody):
    name: str
    content: Annotated[str, Field(description="Text, or base64 where `encoding` says so")]
    encoding: Literal["text", "base64"] | None = None


class SpawnChildrenBody(AttemptBody):
    name: Annotated[str | None, Field(description="Once under one name")] = None
    tasks: Annotated[list[NewTaskBody], Field(max_length=MAX_ENTRIES)]


class NewTokenBody(RequestBody):
    name: str
    role: str
    agents: list[str] | None = None
    expires: str | float | None = None


class ParkedMessageBody(RequestBody):
    handler: Annotated[str, Field(description="As the list says: `GROUP/NAME`")]
    message_id: str
