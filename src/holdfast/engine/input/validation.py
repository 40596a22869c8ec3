"""Validation: what callers pass is checked completely before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from holdfast.engine.core.operation import RunLimits, StartRun
from holdfast.engine.core.task_rows import RUN_PREFIX, TASK_DEFAULTS, TaskRow
from holdfast.engine.input.blueprint import TaskContainer, encode_limits, make_run_rows, write_tags
from holdfast.engine.input.host_tags import choose_host_tag
from holdfast.engine.read import pages
from holdfast.engine.read.step_texts import build_run_variables
from holdfast.errors import InvalidInput
from holdfast.ids import Ids, TaskIdSource, id_of
from holdfast.model.budget import Budget, to_millionths
from holdfast.model.frozen_record import make_record
from holdfast.model.hook import HOOK_PREFIX
from holdfast.model.labels import clean_labels, write_labels
from holdfast.model.placeholder import refuse_placeholder
from holdfast.model.retry import MAX_COUNT, RetryPolicy, positive_microseconds
from holdfast.model.run import NewRun
from holdfast.model.schedule import SCHEDULE_PREFIX
from holdfast.model.status import Hold
from holdfast.model.task import Completion, NewTask, Renewal
from holdfast.model.text import clean_key, clean_name, clean_text, digest, encode_json
from holdfast.model.trace import Trace, clean_trace
from holdfast.model.units import parse_moment
from holdfast.model.worker import EVERY_AGENT
from holdfast.model.workflow.graph import Concurrency, Workflow
from holdfast.model.workflow.run_input import (
    check_texts,
    fill_input,
    render_run_key,
    render_run_labels,
)
from holdfast.model.workflow.template import Variables
from holdfast.settings import MEBIBYTE

MAX_TITLE = 500
# How the actor of an event begins when a worker acted by itself.
WORKER_PREFIX = "worker:"
MAX_BATCH = 10_000
MAX_BATCH_BYTES = 64 * MEBIBYTE
MAX_INTEGER = pages.MAX_INTEGER
JSON_SCALAR_LIMIT = 64 * 1024
NO_RUN_LIMITS = RunLimits()

T = TypeVar("T")

task_id = pages.task_id
run_id = pages.run_id
number = pages.number


def target(value: object) -> str:
    """The id of the run, or of the task without a run, that a signal is for."""
    text = clean_text("target", id_of(value))
    return task_id(text, "target") if text.startswith("t_") else run_id(text, "target")


def names(field: str, values: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean_name(field, value) for value in listed(field, values)))


def agents(values: object) -> tuple[str, ...]:
    """The agents that a worker serves: one or more, or every agent."""
    if isinstance(values, list | tuple) and EVERY_AGENT in values:
        if len(values) > 1:
            raise InvalidInput("agents", f"{EVERY_AGENT!r} is every agent, and stands alone")
        return (EVERY_AGENT,)
    return named_agents(values)


def named_agents(values: object) -> tuple[str, ...]:
    chosen = names("agents", values)
    if not chosen:
        raise InvalidInput("agents", 'must name at least one, as ["default"], or be left out')
    return chosen


def needs(values: object) -> tuple[str, ...]:
    if values == ():
        return ()
    return tuple(dict.fromkeys(task_id(value, "needs") for value in listed("needs", values)))


def tags(values: object) -> str:
    if values == ():
        return "[]"
    return write_tags(names("tags", values))


def renewals(values: object) -> list[Renewal]:
    return [instance("renewals", value, Renewal) for value in listed("renewals", values)]


def results(values: object) -> list[Completion]:
    return [instance("results", value, Completion) for value in listed("results", values)]


def hold(value: object) -> Hold:
    """A hold of a task; `scheduled` is of runs alone."""
    return _read_hold(value, [each for each in Hold if each is not Hold.SCHEDULED])


def _read_hold(value: object, known: Iterable[Hold]) -> Hold:
    names = [str(each.name).lower() for each in known]
    if not isinstance(value, str) or value not in names:
        raise InvalidInput("hold", f"{value!r} is not one of {', '.join(names)}")
    return Hold[value.upper()]


def actor(value: object, field: str = "actor") -> str:
    """The name of an actor; names of workers are refused: a worker lifts holds for itself."""
    name = clean_name(field, value)
    if name.startswith(WORKER_PREFIX):
        reason = (
            f"{name!r} begins with {WORKER_PREFIX!r}, as workers are called; choose another name"
        )
        raise InvalidInput(field, reason)
    return name


def title(value: object) -> str:
    text = clean_text("title", value, limit=MAX_TITLE)
    if not text.strip():
        raise InvalidInput("title", "is empty; say what is to be done")
    refuse_placeholder("title", text)
    return text


def said(field: str, value: object) -> str:
    """What a person says to a task, as JSON."""
    refuse_placeholder(field, value)
    return encode_json(field, value, limit=JSON_SCALAR_LIMIT)


def said_with_comments(field: str, value: object, comments: object) -> str | None:
    """What a person says, with comments on files, as JSON; None where there is neither."""
    given = [_comment(f"comments.{n}", each) for n, each in enumerate(listed("comments", comments))]
    if not given:
        return None if value is None else said(field, value)
    return said(field, {"reason": value, "comments": given})


def _comment(field: str, given: object) -> dict[str, Any]:
    if not isinstance(given, dict) or given.keys() - {"file", "line", "text"}:
        raise InvalidInput(field, "must hold `file`, `text`, and `line` where it is of one line")
    line = given.get("line")
    return {
        "file": clean_text(f"{field}.file", given.get("file")),
        **({} if line is None else {"line": number(f"{field}.line", line, least=1)}),
        "text": clean_text(f"{field}.text", given.get("text")),
    }


def new_task(
    task: NewTask, ids: TaskIdSource, *, max_payload: int, now: Callable[[], int]
) -> TaskRow:
    instance("task", task, NewTask)
    payload = encode_json("payload", task.payload, limit=max_payload)
    parent = _parent(task)
    later = task.scheduled_for
    scheduled = None if later is None else parse_moment("scheduled_for", later, now)
    key = None if task.key is None else caller_key(task.key)
    row = make_record(
        TaskRow,
        {
            **TASK_DEFAULTS,
            "id": ids.task(),
            "parent_id": parent,
            "scheduled_for": scheduled,
            "key": key,
            "payload": payload,
            **_described_fields(task),
        },
    )
    return row if key is None else replace(row, body_digest=body_digest(row))


def shared_fields(task: NewTask) -> dict[str, Any]:
    """The columns that tasks have in common which differ only in id, payload, key and trace."""
    instance("task", task, NewTask)
    return {**TASK_DEFAULTS, "parent_id": _parent(task), **_described_fields(task)}


def _parent(task: NewTask) -> str | None:
    return None if task.parent is None else task_id(task.parent, "parent")


def _described_fields(task: NewTask) -> dict[str, Any]:
    return {
        "step": None if task.step is None else clean_name("step", task.step),
        "title": title(task.title),
        "agent": clean_name("agent", task.agent),
        "status": "queued" if _queued(task) else "idle",
        "needs": needs(task.needs),
        "priority": signed("priority", task.priority),
        "position": signed("position", 0 if task.position is None else task.position),
        "placed": task.position is not None,
        "tags": tags(task.tags),
        "labels": write_labels(clean_labels("labels", task.labels)),
        "plan": task.plan,
        "part": flag("part", task.part),
        "trace": _trace(task.trace),
        **_called(task),
        **_limits(task),
    }


def _called(task: NewTask) -> dict[str, Any]:
    """The columns of a task that is a run of a workflow: no worker claims it."""
    if task.workflow is None:
        return {}
    for field, given in (
        ("step", task.step),
        ("plan", task.plan),
        ("tags", task.tags),
        ("scheduled_for", task.scheduled_for),
        ("concurrency", task.concurrency),
        ("timeout", task.timeout),
    ):
        if given:
            raise InvalidInput(field, "is not for a task that is a run of a workflow")
    return {"kind": "group", "calls": clean_name("workflow", task.workflow)}


def _queued(task: NewTask) -> bool:
    return flag("enqueue", task.enqueue) and not flag("plan", task.plan)


def caller_key(value: object) -> str:
    """A key of the caller; the prefixes of keys that hooks and ticks make are refused."""
    key = clean_key("key", value)
    for prefix, maker in ((HOOK_PREFIX, "hooks"), (SCHEDULE_PREFIX, "schedules")):
        if key.startswith(prefix):
            reason = f"keys that begin with {prefix!r} are those of what {maker} make"
            raise InvalidInput("key", reason)
    return key


def refuse_inherited_fields(row: TaskRow) -> None:
    """Refuse fields that a child gets from the running task that makes it."""
    for field, given in (("needs", row.needs), ("parent", row.parent_id), ("key", row.key)):
        if given:
            reason = "a child has none of its own: it belongs to the task that makes it, once under"
            raise InvalidInput(field, f"{reason} one name; leave {field} out")
    if row.calls is not None:
        reason = "a child of a running task is no run of a workflow; leave it out"
        raise InvalidInput("workflow", reason)


def bounded_batch(rows: Iterable[TaskRow]) -> tuple[TaskRow, ...]:
    """The tasks of one commit, all or none; refused if they are too large for one."""
    kept: list[TaskRow] = []
    size = 0
    for row in rows:
        size += row.size
        if size > MAX_BATCH_BYTES:
            reason = f"are more than {MAX_BATCH_BYTES} bytes together; create them in several calls"
            raise InvalidInput("tasks", reason)
        kept.append(row)
    return tuple(kept)


def new_run(  # noqa: PLR0913 - what a run is made of, and what the engine adds
    run: NewRun,
    ids: Ids,
    *,
    max_payload: int,
    actor_name: str,
    tick: str | None = None,
    now: Callable[[], int] | None = None,
) -> StartRun:
    """The operation that starts a run; the run of a tick has the key of the tick.

    Without `now` the run is of this moment: its time is not read.
    """
    instance("run", run, NewRun)
    workflow = instance("workflow", run.workflow, Workflow)
    filled = fill_input(workflow, run.input)
    given = encode_json("input", filled, limit=max_payload)
    key = tick if run.key is None else caller_key(run.key)
    priority = signed("priority", run.priority)
    identifier = ids.run()
    concurrency = _choose_concurrency(run)
    slot = render_run_key(workflow, concurrency, filled)

    def variables() -> Variables:
        return build_run_variables(identifier, workflow.name, key, filled, workflow.workspace)

    if workflow.steps_known_at_start or workflow.workspace is not None:
        check_texts(workflow, variables)
    container = make_record(
        TaskContainer,
        {
            "run_id": identifier,
            "priority": priority,
            "host_tag": None
            if workflow.workspace is None
            else choose_host_tag(workflow.workspace, variables(), run.host),
            "variables": variables,
        },
    )
    return make_record(
        StartRun,
        {
            "run_id": identifier,
            "workflow": workflow.name,
            "workflow_version": workflow.version,
            "definition": workflow.definition,
            "key": key,
            # A key may be used again only with the same workflow and input.
            "body_digest": "" if key is None else digest(workflow.name, given),
            "input": given,
            "priority": priority,
            "concurrency_key": None if slot is None else RUN_PREFIX + slot,
            "capacity": 1 if concurrency is None else concurrency.limit,
            "tasks": make_run_rows(workflow.steps, container, ids),
            "actor": actor_name,
            "called": workflow.definitions,
            "trace": _trace(run.trace),
            "bounds": _run_limits(run),
            "scheduled_for": None if now is None else _read_later_moment(run, now),
            "labels": _labels_of_run(run, filled),
        },
    )


def _labels_of_run(run: NewRun, filled: object) -> str | None:
    """The labels that the workflow gives to a run with this input, and those of its start."""
    own = clean_labels("labels", run.labels)
    return write_labels(clean_labels("labels", {**render_run_labels(run.workflow, filled), **own}))


def _choose_concurrency(run: NewRun) -> Concurrency | None:
    """The limit of the run itself, else that of its workflow."""
    if run.concurrency is None:
        return run.workflow.concurrency
    return instance("concurrency", run.concurrency, Concurrency)


def _read_later_moment(run: NewRun, now: Callable[[], int]) -> int | None:
    """The moment that a run is scheduled for; None where the run starts now."""
    if run.scheduled_for is None:
        return None
    later = parse_moment("scheduled_for", run.scheduled_for, now)
    return later if later > now() else None


def _trace(given: object) -> Trace | None:
    return None if given is None else clean_trace("trace", given)


def _run_limits(run: NewRun) -> RunLimits:
    workflow = run.workflow
    if workflow.declared is None and workflow.deadline is None and run.deadline is None:
        return NO_RUN_LIMITS
    declared = Budget() if workflow.declared is None else workflow.declared.budget or Budget()
    usd, each, most = declared.usd, declared.usd_per_attempt, declared.attempts
    seconds = workflow.deadline if run.deadline is None else run.deadline
    return RunLimits(
        usd=None if usd is None else to_millionths("budget.usd", usd),
        usd_per_attempt=None if each is None else to_millionths("budget.usd_per_attempt", each),
        attempts=None if most is None else count("budget.attempts", most),
        time=None if seconds is None else positive_microseconds("deadline", seconds),
    )


def _limits(task: NewTask) -> dict[str, Any]:
    retry = instance("retry", task.retry, RetryPolicy)
    if task.concurrency is not None:
        limit = instance("concurrency", task.concurrency, Concurrency)
        if limit.has_variables:
            reason = "names variables, which only steps and functions have; write the key itself"
            raise InvalidInput("concurrency", reason)
    return encode_limits(retry, task.timeout, task.concurrency)


def edits(changes: object, *, max_payload: int, now: Callable[[], int]) -> dict[str, object]:
    """The fields of an edit as columns of the store; an unknown field is refused by name."""
    readers: dict[str, Callable[[object], object]] = {
        "title": title,
        "agent": lambda value: clean_name("agent", value),
        "payload": lambda value: encode_json("payload", value, limit=max_payload),
        "priority": lambda value: signed("priority", value),
        "position": lambda value: signed("position", value),
        "tags": tags,
        "max_attempts": partial(count, "max_attempts"),
        "max_lost": partial(count, "max_lost"),
        "timeout": lambda value: positive_microseconds("timeout", _float("timeout", value)),
        "scheduled_for": lambda value: (
            None if value is None else parse_moment("scheduled_for", value, now)
        ),
    }
    if not isinstance(changes, Mapping) or not all(isinstance(name, str) for name in changes):
        raise InvalidInput("changes", "must be a mapping of the names of fields to their values")
    for name in changes:
        if name not in readers:
            raise InvalidInput(name, f"cannot be edited; one of {', '.join(readers)} can")
    return {name: readers[name](value) for name, value in changes.items()}


def need_pairs(
    field: str, graph: object, find: Callable[[object, str], str]
) -> tuple[tuple[str, str], ...]:
    """Pairs of a task and a need of it, from a mapping of tasks to their needs.

    `find` finds the id of the task that an entry of a field means.
    """
    if not isinstance(graph, Mapping):
        raise InvalidInput(field, f"must be a mapping, not {type(graph).__name__}")
    return tuple(
        (find(child, field), find(need, field))
        for child, needed in graph.items()
        for need in listed(field, needed)
    )


def body_digest(row: TaskRow) -> str:
    """The digest of what a task is to do: its arguments and its function, not its options."""
    return digest(row.payload, *describe_function(row))


def describe_function(row: TaskRow) -> tuple[str, str]:
    """The function of a task, and whether the task is a plan, for the digest of its body."""
    if row.calls is not None:
        return row.calls, "calls"
    return row.step or "", "plan" if row.plan else ""


def count(field: str, value: object) -> int:
    return number(field, value, least=1, most=MAX_COUNT)


def signed(field: str, value: object) -> int:
    return number(field, value, least=-MAX_INTEGER // 2, most=MAX_INTEGER // 2)


def _float(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, "must be a number of seconds")
    return value


def listed(field: str, value: object) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise InvalidInput(field, f"must be a list, not {type(value).__name__}")
    return tuple(value)


def flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, f"must be true or false, not {type(value).__name__}")
    return value


def instance(field: str, value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be a {kind.__name__}, not {type(value).__name__}")
    return value


def run_hold(value: object) -> Hold:
    """A hold that a caller may put on a run; the engine alone holds for a slot or a failure."""
    chosen = liftable_run_hold(value)
    if chosen is Hold.SCHEDULED:
        raise InvalidInput("hold", "a run is scheduled when it is started: start(scheduled_for=…)")
    return chosen


def liftable_run_hold(value: object) -> Hold:
    """A hold that a caller may remove from a run."""
    chosen = _read_hold(value, Hold)
    if chosen in Hold.SLOT | Hold.FAILING:
        raise InvalidInput("hold", f"{value!r} is the engine's own; it comes and goes by itself")
    return chosen
