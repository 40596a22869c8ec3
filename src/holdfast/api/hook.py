"""Hooks: functions that follow the end of a run or of a lone task, once for each end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from holdfast.api.options import read_function_options, read_step_options
from holdfast.api.signature import Signature
from holdfast.api.task import TaskFunction
from holdfast.api.workflow import WorkflowBuilder
from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.model.hook import RUN_ENDS, TASK_ENDS, Ended, NewHook, check_ends
from holdfast.model.retry import RetryPolicy
from holdfast.model.text import clean_name


@dataclass(frozen=True, kw_only=True)
class HookFunction:
    """A hook of this program: its definition for the store, and the function for a worker."""

    definition: NewHook
    signature: Signature

    @property
    def parameter(self) -> str:
        """The name of the parameter that takes the event."""
        return next(iter(self.signature.inputs))


@dataclass(frozen=True, kw_only=True)
class WatchedEnds:
    """The ends that a hook follows: their names, and the one workflow or task, if it is for one."""

    events: tuple[str, ...]
    workflow: WorkflowBuilder | str | None = None
    task: TaskFunction[..., Any, Any] | str | None = None

    def __post_init__(self) -> None:
        check_ends(self.events)

    @property
    def about(self) -> str | None:
        if self.workflow is not None and self.task is not None:
            raise InvalidInput("task", "a hook is for a workflow or for a task, not for both")
        if self.workflow is not None:
            return self._check_ends_of("workflow", self.workflow, RUN_ENDS)
        return None if self.task is None else self._check_ends_of("task", self.task, TASK_ENDS)

    def _check_ends_of(
        self,
        field: str,
        chosen: WorkflowBuilder | TaskFunction[..., Any, Any] | str,
        ends: tuple[str, ...],
    ) -> str:
        for event in self.events:
            if event not in ends:
                raise InvalidInput(field, f"has no {event}; its ends are {', '.join(ends)}")
        return clean_name(field, chosen if isinstance(chosen, str) else chosen.name)


def define_hook(
    name: str,
    function: Callable[..., Any],
    watched: WatchedEnds,
    options: Mapping[str, Any],
    retry: RetryPolicy,
) -> HookFunction:
    signature = Signature(function, options=read_function_options(options))
    if signature.options.isolated:
        reason = "is for tasks and steps; have the hook enqueue a task that asks for it"
        raise InvalidInput("isolation", reason)
    signature.check()
    if len(signature.inputs) != 1 or signature.needed:
        reason = "a hook takes the event, and before it a Context if it wants one"
        raise InvalidDefinition(name, [reason])
    (parameter,) = signature.inputs
    given = signature.hints.get(parameter, Any)
    if not _takes_event(given):
        shown = given.__name__ if isinstance(given, type) else given
        reason = f"takes the event, an Ended, and never {shown}; annotate it so"
        raise InvalidDefinition(name, [f"parameter {parameter!r}: {reason}"])
    chosen = read_step_options(options, retry)
    limit = chosen.get("concurrency")
    if limit is not None and limit.has_variables:
        reason = "a hook has no variables: its calls share one key, or have none"
        raise InvalidInput("concurrency", reason)
    return HookFunction(
        definition=NewHook(name=name, events=watched.events, about=watched.about, **chosen),
        signature=signature,
    )


def _takes_event(hint: Any) -> bool:  # noqa: ANN401 - whatever somebody annotated
    """Whether an annotation accepts an event; an annotation that is no plain class may."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _takes_event(inner[0])
    if origin in {Union, UnionType}:
        return any(map(_takes_event, inner))
    wanted = origin or hint
    unknown = (
        wanted is Any or not isinstance(wanted, type) or getattr(wanted, "_is_protocol", False)
    )
    return unknown or issubclass(Ended, wanted)
