"""Graph text: a workflow as one text, whose hash is the version, and the way back."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any, Protocol

from holdfast.model.budget import Budget
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.declarations import (
    HttpCall,
    Merge,
    StepWork,
    WorkflowDeclarations,
    Workspace,
)
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import Concurrency, Escalation, OnFailure, Step
from holdfast.settings import AgentUse


class WorkflowFields(Protocol):
    """The fields of a workflow that its text contains."""

    @property
    def name(self) -> str: ...
    @property
    def steps(self) -> tuple[Step, ...]: ...
    @property
    def concurrency(self) -> Concurrency | None: ...
    @property
    def declared(self) -> WorkflowDeclarations | None: ...
    @property
    def deadline(self) -> float | None: ...


def write_graph_text(workflow: WorkflowFields) -> str:
    described: dict[str, object] = {
        "name": workflow.name,
        "concurrency": _concurrency(workflow.concurrency),
        "steps": [_describe(step) for step in workflow.steps],
    }
    if workflow.declared is not None:
        described["declared"] = _describe_declared(workflow.declared)
    if workflow.deadline is not None:
        described["deadline"] = workflow.deadline
    return json.dumps(described, sort_keys=True, separators=(",", ":"))


def read_graph_text(text: str) -> dict[str, Any]:
    """The fields of the workflow that a text describes."""
    described = json.loads(text)
    return {
        "name": described["name"],
        "steps": tuple(_read_step(step) for step in described["steps"]),
        "concurrency": _read_concurrency(described["concurrency"]),
        "declared": _read_declared(described.get("declared")),
        "deadline": described.get("deadline"),
    }


def read_steps(text: str) -> tuple[Step, ...]:
    return tuple(_read_step(step) for step in json.loads(text)["steps"])


def _describe(step: Step) -> dict[str, object]:
    described = {
        "id": step.id,
        "needs": list(step.needs),
        "agent": step.agent,
        "max_attempts": step.retry.max_attempts,
        "max_lost": step.retry.max_lost,
        "backoff": step.retry.backoff,
        "backoff_max": step.retry.backoff_max,
        "timeout": step.timeout,
        "tags": sorted(step.tags),
        "priority": step.priority,
        "concurrency": _concurrency(step.concurrency),
    }
    if step.when is not None:
        described["when"] = str(step.when)
    if step.on_failure.action != "fail":
        failure = step.on_failure
        described["on_failure"] = [failure.action, failure.step, failure.max_rounds]
    if step.on_failure.escalation is not None:
        described["escalation"] = _describe_escalation(step.on_failure.escalation)
    if step.verifies is not None:
        described |= {"verifies": step.verifies, "max_rounds": step.max_rounds}
    if step.approval is not None:
        described["approval"] = step.approval
    if step.for_each is not None:
        body = [_describe(inner) for inner in step.steps]
        described |= {"for_each": str(step.for_each), "parallel": step.parallel, "steps": body}
    if step.title is not None:
        described["title"] = step.title
    if step.work is not None:
        described["work"] = _describe_work(step.work)
    return described


def _describe_escalation(escalation: Escalation) -> dict[str, object]:
    said = {each.name: getattr(escalation, each.name) for each in fields(Escalation)}
    if escalation.work is not None:
        said["work"] = _describe_work(escalation.work)
    if escalation.retry is not None:
        said["retry"] = asdict(escalation.retry)
    # Tags that are an empty list stand in place of those of the step.
    told = {} if escalation.tags is None else {"tags": sorted(escalation.tags)}
    return _without_empty(said) | told


def _describe_work(work: StepWork) -> dict[str, object]:
    """The work without its empty fields, so that a field added later changes no version."""
    said = {each.name: getattr(work, each.name) for each in fields(StepWork)}
    if work.http is not None:
        said["http"] = _without_empty(asdict(work.http))
    if work.merge is not None:
        said["merge"] = _without_empty(asdict(work.merge))
    if not work.landing:
        del said["landing"]
    if work.use is not None:
        asked = _without_empty(asdict(work.use))
        said["use"] = {name: value for name, value in asked.items() if value is not False}
    return _without_empty(said)


def _describe_declared(declared: WorkflowDeclarations) -> dict[str, object]:
    said = asdict(declared)
    if declared.workspace is not None:
        said["workspace"] = _without_empty(asdict(declared.workspace))
    return _without_empty(said)


def _without_empty(described: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in described.items() if value not in (None, {}, ())}


def _read_step(described: dict[str, Any]) -> Step:
    action, target, rounds = described.get("on_failure", ["fail", None, 1])
    return Step(
        id=described["id"],
        needs=tuple(described["needs"]),
        agent=described["agent"],
        retry=RetryPolicy(
            max_attempts=described["max_attempts"],
            max_lost=described["max_lost"],
            backoff=described["backoff"],
            backoff_max=described["backoff_max"],
        ),
        timeout=described["timeout"],
        tags=tuple(described["tags"]),
        priority=described["priority"],
        concurrency=_read_concurrency(described["concurrency"]),
        when=_reference(described, "when"),
        on_failure=OnFailure(
            action=action,
            step=target,
            max_rounds=rounds,
            escalation=_read_escalation(described.get("escalation")),
        ),
        verifies=described.get("verifies"),
        max_rounds=described.get("max_rounds", 3),
        approval=described.get("approval"),
        for_each=_reference(described, "for_each"),
        parallel=described.get("parallel", 1),
        steps=tuple(_read_step(inner) for inner in described.get("steps", ())),
        title=described.get("title"),
        work=_read_work(described["work"]) if "work" in described else None,
    )


def _read_escalation(described: dict[str, Any] | None) -> Escalation | None:
    if described is None:
        return None
    said = dict(described)
    if "work" in said:
        said["work"] = _read_work(said["work"])
    if "retry" in said:
        said["retry"] = RetryPolicy(**said["retry"])
    if "tags" in said:
        said["tags"] = tuple(said["tags"])
    return Escalation(**said)


def _read_work(described: dict[str, Any]) -> StepWork:
    said = dict(described)
    if "command" in said:
        said["command"] = tuple(said["command"])
    if "http" in said:
        said["http"] = HttpCall(**said["http"])
    if "merge" in said:
        said["merge"] = Merge(**said["merge"])
    if "use" in said:
        said["use"] = read_agent_use(said["use"])
    return StepWork(**said)


def read_agent_use(described: dict[str, Any]) -> AgentUse:
    return AgentUse(**described | {"flags": tuple(described.get("flags", ()))})


def _read_declared(described: dict[str, Any] | None) -> WorkflowDeclarations | None:
    if described is None:
        return None
    said = described | {"env": tuple(described.get("env", ()))}
    if "budget" in said:
        said["budget"] = Budget(**said["budget"])
    if "workspace" in said:
        lists = {name: tuple(said["workspace"].get(name, ())) for name in ("setup", "copy")}
        said["workspace"] = Workspace(**said["workspace"] | lists)
    return WorkflowDeclarations(**said)


def _reference(described: dict[str, Any], field: str) -> Reference | None:
    return Reference.parse(field, described[field]) if field in described else None


def _concurrency(concurrency: Concurrency | None) -> list[object] | None:
    return None if concurrency is None else [concurrency.key, concurrency.limit]


def _read_concurrency(described: list[Any] | None) -> Concurrency | None:
    return None if described is None else Concurrency(key=described[0], limit=described[1])
