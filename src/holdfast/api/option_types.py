"""Option types: the keywords of tasks, steps, workers and stores, for type checkers and editors.

At run time the same keywords are checked by name when they arrive, each refusal with a suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

from holdfast.ids import AnyId
from holdfast.model.workflow.graph import Concurrency
from holdfast.settings import AgentCommand

# Seconds, "1h30m" or a timedelta.
Duration = float | str | timedelta
# A datetime with a time zone, its text, or how long from now: "10m" or a timedelta.
Time = datetime | timedelta | str
ErrorClasses = type[BaseException] | tuple[type[BaseException], ...]
FixedConcurrency = Concurrency | str | tuple[str, int] | None


class AttemptOptions(TypedDict, total=False):
    """The options that tasks and steps share; `@hf.task` says what each of them does."""

    agent: str
    tags: Sequence[str]
    priority: int
    timeout: Duration | None
    max_attempts: int
    max_lost: int
    backoff: Duration
    backoff_max: Duration


class FunctionKeywords(TypedDict, total=False):
    """What a function says of its own attempts: when it is tried again, and where it runs."""

    retry_on: ErrorClasses
    never_retry_on: ErrorClasses
    idle_timeout: Duration | None
    isolation: Literal["process"] | None


class OptionsOfEachCall(AttemptOptions, total=False):
    """The options of a task function."""

    # A function makes the key of a call from the arguments that it takes by name.
    concurrency: (
        FixedConcurrency | Callable[..., str | None] | tuple[Callable[..., str | None], int]
    )


class TaskOptions(OptionsOfEachCall, FunctionKeywords, total=False):
    """The options of `@hf.task`."""


class CallOptions(OptionsOfEachCall, total=False):
    """The options of `task.using(…)`: those of a task function, and those of one call."""

    title: str
    scheduled_for: Time | None
    needs: Collection[AnyId]
    parent: AnyId
    position: int
    enqueue: bool
    labels: Mapping[str, Any]
    key: str | None
    connection: object


class HookOptions(AttemptOptions, FunctionKeywords, total=False):
    """The options of `@hf.on` and `hf.archive`."""

    concurrency: FixedConcurrency


class FlowKeywords(TypedDict, total=False):
    """The options of a step that runs another workflow."""

    # What needs() gives, or a reference: "input.deploy".
    when: Any
    # What goto() gives, or a word.
    on_failure: Literal["fail", "skip", "ask"] | object


class StepKeywords(AttemptOptions, FunctionKeywords, FlowKeywords, total=False):
    """The options of `@workflow.step`."""

    concurrency: FixedConcurrency
    # A step, a loop or a name.
    verifies: Any
    max_rounds: int


class StoreSettings(TypedDict, total=False):
    """The settings of `Holdfast(url, …)`, as `Settings` describes them."""

    lease: Duration
    renewal: Duration
    recovery: Duration
    poll: Duration
    max_attempts: int
    max_lost: int
    backoff: Duration
    backoff_max: Duration
    max_payload: int
    max_output: int
    max_effects: int
    max_kept: int
    max_run_effects: int
    max_run_kept: int
    group_size: int
    patience: Duration
    watch: Duration
    connections: int


class WorkerKeywords(TypedDict, total=False):
    """The options of `hf.worker(…)`."""

    name: str | None
    service: str
    agents: Sequence[str]
    tags: Sequence[str]
    concurrency: int | None
    least_disk: int | str
    grace: Duration | None
    commands: Mapping[str, AgentCommand]
