"""Request bodies: the shapes of what callers send; the engine checks the rest. Null is absent."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from holdfast.service.queries.shapes import ExampleOf

MAX_ENTRIES = 10_000
MAX_WAIT = 120.0
# The agents and tags of a worker that claims are remembered, so their number is limited.
MAX_AGENTS_OR_TAGS = 200

_DRAFT = "In a workspace: the work in progress, which the next attempt goes on from"
Seconds = Annotated[float, Field(ge=0, le=86_400)]
Count = Annotated[int, Field(ge=1, le=1_000)]


# The value of a label is text, or stands for it.
LabelsBody = dict[str, str | int | float | bool]


def _example(**fields: Any) -> ConfigDict:
    """The example of a body, for the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    def without_nulls(self) -> dict[str, Any]:
        """The fields that were sent and are not null."""
        values = self.__dict__
        return {
            name: value for name in self.model_fields_set if (value := values[name]) is not None
        }


class ConcurrencyBody(RequestBody):
    model_config = _example(key="customer-7", limit=2)
    key: str
    limit: int = 1


class StartRunBody(RequestBody):
    model_config = _example(workflow="letters", input={"to": "Ada"}, key="monday")
    workflow: Annotated[str, Field(description="A name that the store knows")]
    version: Annotated[str | None, Field(description="Not the newest, but this one")] = None
    input: Any = None
    key: str | None = None
    priority: int | None = None
    deadline: Annotated[
        str | float | None,
        Field(description="Seconds from its start, or `2h`; else its workflow's"),
    ] = None
    scheduled_for: Annotated[
        str | int | None,
        Field(description="Nothing of it starts before: a time in ISO 8601, or `10m` from now"),
    ] = None
    concurrency: Annotated[
        str | ConcurrencyBody | None,
        Field(description="A key for one run at a time, or a key and its limit"),
    ] = None
    labels: Annotated[
        LabelsBody | None, Field(description="Names and values by which it is found again")
    ] = None


class ResumeRunBody(RequestBody):
    model_config = _example(add_usd=2.5, add_attempts=5)
    add_usd: Annotated[float | None, Field(description="Raises what it may use, in dollars")] = None
    add_attempts: Annotated[int | None, Field(description="Raises its budget of attempts")] = None


class RetryRunBody(RequestBody):
    model_config = _example(step="write")
    step: Annotated[
        str | None,
        Field(
            validation_alias=AliasChoices("step", "from"),
            description="This step, or build.2.test, and all that needs it; `from` is the same",
        ),
    ] = None


class BulkBody(RequestBody):
    """Which runs: those that fit all that is given. Without any filter, `all` has to be true."""

    model_config = _example(workflow="letters", labels={"customer": "7"})
    status: Annotated[
        str | None, Field(description="For retry: `failed`, unless said, or `cancelled`")
    ] = None
    workflow: str | None = None
    step: Annotated[str | None, Field(description="With a task of this step")] = None
    agent: Annotated[str | None, Field(description="With a task for this agent")] = None
    key: str | None = None
    labels: Annotated[LabelsBody | None, Field(description="With all of these labels")] = None
    since: Annotated[str | None, Field(description="Started since: ISO 8601, or `24h` ago")] = None
    until: Annotated[str | None, Field(description="Started before: ISO 8601, or `24h` ago")] = None
    error: Annotated[
        str | None, Field(description="Whose error, or that of a task, has this text")
    ] = None
    name: Annotated[str | None, Field(description="Whose workflow or key has this text")] = None
    held: Annotated[str | None, Field(description="On hold for this reason, as `paused`")] = None
    all: Annotated[bool | None, Field(description="Every run, where there is no filter")] = None


class SignalBody(RequestBody):
    model_config = _example(name="courier.arrived", payload={"at": "noon"}, key="parcel-7")
    name: str
    payload: Any = None
    key: str | None = None


class NewTaskBody(RequestBody):
    model_config = _example(
        title="Write the letter",
        agent="writer",
        payload={"prompt": "Write three lines"},
        needs=[],
        scheduled_for="10m",
        tags=["gpu"],
        key="letter-1",
        timeout="30m",
    )
    title: str
    step: str | None = None
    agent: str | None = None
    prompt: Annotated[
        str | None,
        Field(description="What its agent is asked to do; it becomes `prompt` in the payload"),
    ] = None
    payload: Any = None
    workflow: Annotated[
        str | None,
        Field(description="A name that the store knows: the task is a run of it, and ends with it"),
    ] = None
    input: Annotated[Any, Field(description="What that workflow is started with")] = None
    needs: Annotated[
        list[str] | None, Field(description="Tasks that must be done before: ids or keys")
    ] = None
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
    labels: Annotated[
        LabelsBody | None, Field(description="Names and values by which it is found again")
    ] = None
    enqueue: bool | None = None


class NewScheduleBody(RequestBody):
    """What each tick starts is a `workflow` with its `input`, or a `task`."""

    model_config = _example(name="nightly", cron="30 2 * * *", workflow="letters")
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
    model_config = _example(tasks=[{"title": "Write the letter"}, {"title": "Post it"}])
    tasks: Annotated[list[NewTaskBody], Field(max_length=MAX_ENTRIES)]


class EditTaskBody(RequestBody):
    model_config = _example(title="Write a longer letter", priority=5)
    title: str | None = None
    agent: str | None = None
    prompt: Annotated[
        str | None, Field(description="A new payload with this prompt, beside `payload`")
    ] = None
    payload: Any = None
    priority: int | None = None
    position: int | None = None
    tags: list[str] | None = None
    max_attempts: int | None = None
    max_lost: int | None = None
    timeout: str | float | None = None
    scheduled_for: str | int | None = None


class BlockTaskBody(RequestBody):
    model_config = _example(needs=[ExampleOf.TASK_ID])
    needs: Annotated[
        list[str],
        Field(max_length=MAX_ENTRIES, description="Tasks that must be done before it starts"),
    ]


class UnblockTaskBody(RequestBody):
    model_config = _example(needs=[ExampleOf.TASK_ID])
    needs: Annotated[
        list[str] | None,
        Field(
            max_length=MAX_ENTRIES,
            description="Tasks that it was linked to by hand; else all of those",
        ),
    ] = None


class ApproveBody(RequestBody):
    model_config = _example(note="Looks good")
    note: Any = None


class CommentBody(RequestBody):
    model_config = _example(file="src/saml.ts", line=12, text="This leaks the token")
    file: str
    line: Annotated[int | None, Field(description="Without one it is about the file")] = None
    text: str


class RejectBody(RequestBody):
    model_config = _example(reason="Not before Friday")
    reason: Any = None
    comments: Annotated[
        list[CommentBody] | None, Field(description="On files, for who does it again")
    ] = None


class FollowUpBody(RequestBody):
    model_config = _example(message="Also update the docs")
    message: Annotated[
        Any, Field(description="What is to be done now; the `feedback` of who does it")
    ] = None
    comments: Annotated[list[CommentBody] | None, Field(description="On files")] = None


class AnswerBody(RequestBody):
    model_config = _example(answer="Use the new API")
    answer: Any


class FinalizePlanBody(RequestBody):
    model_config = _example(graph={ExampleOf.TASK_ID: []})
    graph: Annotated[
        dict[str, list[str]] | None, Field(description="What each child needs; else a chain")
    ] = None


class ReorderPlanBody(RequestBody):
    model_config = _example(order=[ExampleOf.TASK_ID])
    order: Annotated[list[str], Field(max_length=MAX_ENTRIES)]


class TaskPositionBody(RequestBody):
    model_config = _example(id=ExampleOf.TASK_ID, position=0)
    id: str
    position: Annotated[int | None, Field(description="Else where it stands in the list")] = None


class ReorderByPositionBody(RequestBody):
    model_config = _example(tasks=[{"id": ExampleOf.TASK_ID, "position": 0}])
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
    model_config = _example(
        worker="python-1",
        agents=["writer"],
        max=4,
        wait_seconds=30,
        lease_seconds=60,
        request_id="1",
    )
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
    equipped: Annotated[
        list[str] | None,
        Field(
            max_length=MAX_AGENTS_OR_TAGS,
            description="With `whole`: agents for which the worker has a command of its own",
        ),
    ] = None
    whole: Annotated[
        bool | None,
        Field(description="What Holdfast's own workers could run, with all that they want for it"),
    ] = None


class EffectNoteBody(RequestBody):
    model_config = _example(name="asked", value={"id": 7})
    name: str
    value: Any = None


class RenewLeaseBody(RequestBody):
    model_config = _example(task_id=ExampleOf.TASK_ID, token=ExampleOf.TOKEN, progress="half")
    task_id: str
    token: str
    progress: Any = None
    usage: Any = None


class RenewBody(RequestBody):
    model_config = _example(
        worker="python-1", leases=[{"task_id": ExampleOf.TASK_ID, "token": ExampleOf.TOKEN}]
    )
    worker: str | None = None
    process: Annotated[str | None, Field(description="As in its claims, if it said one")] = None
    leases: Annotated[list[RenewLeaseBody], Field(max_length=MAX_ENTRIES)]
    lease_seconds: Seconds | None = None


class WatchedLeaseBody(RequestBody):
    model_config = _example(task_id=ExampleOf.TASK_ID, token=ExampleOf.TOKEN)
    task_id: str
    token: str


class WatchBody(RequestBody):
    model_config = _example(
        leases=[{"task_id": ExampleOf.TASK_ID, "token": ExampleOf.TOKEN}], wait_seconds=20
    )
    leases: Annotated[list[WatchedLeaseBody], Field(max_length=MAX_ENTRIES)]
    wait_seconds: Annotated[float, Field(ge=0, le=MAX_WAIT)] | None = None


class LeaveBody(RequestBody):
    model_config = _example(worker="python-1", process="start-7")
    worker: str
    process: Annotated[
        str | None, Field(description="As in the claims of the one that leaves, if it said one")
    ] = None


class AttemptBody(RequestBody):
    model_config = _example(token=ExampleOf.TOKEN)
    token: str


class DraftBody(RequestBody):
    """A commit beside the line, of what was in progress or was left."""

    model_config = _example(base=ExampleOf.BASE, sha=ExampleOf.COMMIT)
    base: Annotated[str, Field(description="The commit that the attempt began at")]
    sha: str


class NewHeadBody(RequestBody):
    """A commit that becomes the head of a line."""

    model_config = _example(
        line=ExampleOf.RUN_ID, number=2, base=ExampleOf.BASE, sha=ExampleOf.COMMIT
    )
    line: str
    number: Annotated[int, Field(description="Of the head of the line that it descends from")]
    base: Annotated[str, Field(description="The commit that the attempt began at")]
    sha: str


class CompleteBody(AttemptBody):
    model_config = _example(token=ExampleOf.TOKEN, output={"lines": 3}, usage={"usd": 0.08})
    output: Any = None
    usage: Any = None
    commit: Annotated[
        NewHeadBody | None,
        Field(description="In a workspace: what its line gets, if that has not moved on"),
    ] = None


class TaskResultBody(CompleteBody):
    model_config = _example(task_id=ExampleOf.TASK_ID, token=ExampleOf.TOKEN, output={"lines": 3})
    task_id: str


class CompleteManyBody(RequestBody):
    model_config = _example(
        results=[{"task_id": ExampleOf.TASK_ID, "token": ExampleOf.TOKEN, "output": {"lines": 3}}]
    )
    results: Annotated[list[TaskResultBody], Field(max_length=MAX_ENTRIES)]


class FailBody(AttemptBody):
    model_config = _example(token=ExampleOf.TOKEN, error="the printer is on fire", retryable=True)
    error: Any = "failed"
    retryable: bool | None = None
    usage: Any = None
    limit_until: Annotated[
        str | int | None, Field(description="An agent's usage limit: when it lifts; costs nothing")
    ] = None
    draft: Annotated[DraftBody | None, Field(description=_DRAFT)] = None
    left: Annotated[
        DraftBody | None, Field(description="In a workspace: what is kept aside for people")
    ] = None
    anew: Annotated[
        bool | None,
        Field(description="A landing met a conflict: the line of its item begins again"),
    ] = None


class ReleaseBody(AttemptBody):
    model_config = _example(token=ExampleOf.TOKEN, until="10m")
    until: str | int | None = None
    wait_for: Annotated[str | None, Field(description="A signal to its run")] = None
    draft: Annotated[DraftBody | None, Field(description=_DRAFT)] = None
    note: Annotated[EffectNoteBody | None, Field(description="An effect to remember with it")] = (
        None
    )


class AskBody(AttemptBody):
    model_config = _example(token=ExampleOf.TOKEN, question="Which colour?")
    question: Any
    draft: Annotated[DraftBody | None, Field(description=_DRAFT)] = None
    note: Annotated[EffectNoteBody | None, Field(description="An effect to remember with it")] = (
        None
    )


class NoteStopBody(AttemptBody):
    model_config = _example(token=ExampleOf.TOKEN, ended=2, left=0)
    ended: Annotated[int, Field(ge=0, le=1_000_000_000)]
    left: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


class OpenLineBody(AttemptBody):
    model_config = _example(
        token=ExampleOf.TOKEN, base=ExampleOf.BASE, repository="/work/shop", host="laptop"
    )
    base: Annotated[
        str | None, Field(description="Where the line of the run begins, if it is new")
    ] = None
    repository: Annotated[str | None, Field(description="A folder of its host, or a URL")] = None
    host: Annotated[str | None, Field(description="The machine that has the folder")] = None


class KeepAsideBody(AttemptBody):
    model_config = _example(
        token=ExampleOf.TOKEN, attempt=1, base=ExampleOf.BASE, sha=ExampleOf.COMMIT
    )
    attempt: Annotated[int, Field(description="The former attempt that left it")]
    base: str
    sha: str


class HostLinesBody(RequestBody):
    model_config = _example(host="laptop")
    host: str


class LogBody(AttemptBody):
    model_config = _example(token=ExampleOf.TOKEN, chunk="on it\n")
    chunk: str


class EffectBody(AttemptBody):
    model_config = _example(token=ExampleOf.TOKEN, name="mail", value={"id": 7})
    name: Annotated[str | None, Field(description="Without one, what is remembered")] = None
    value: Any = None
    limit: Annotated[int | None, Field(ge=1, le=MAX_ENTRIES, description="How many at most")] = None
    after: Annotated[str | None, Field(description="The `next` of the page before")] = None


class ArtifactBody(AttemptBody):
    model_config = _example(
        token=ExampleOf.TOKEN, name="letter.txt", content="Dear Ada", encoding="text"
    )
    name: str
    content: Annotated[str, Field(description="Text, or base64 where `encoding` says so")]
    encoding: Literal["text", "base64"] | None = None


class SpawnChildrenBody(AttemptBody):
    model_config = _example(token=ExampleOf.TOKEN, name="parts", tasks=[{"title": "The envelope"}])
    name: Annotated[str | None, Field(description="Once under one name")] = None
    tasks: Annotated[list[NewTaskBody], Field(max_length=MAX_ENTRIES)]


class NewTokenBody(RequestBody):
    model_config = _example(name="ci", role="worker", agents=["builder"], expires="30d")
    name: str
    role: str
    agents: list[str] | None = None
    expires: str | float | None = None


class ParkedMessageBody(RequestBody):
    model_config = _example(handler="accounting/note_end", message_id=f"{ExampleOf.TASK_ID}.3")
    handler: Annotated[str, Field(description="As the list says: `GROUP/NAME`")]
    message_id: str
