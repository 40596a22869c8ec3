"""A workflow written in Python: steps in the order they are written, or by what they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from holdfast.api.handle import Handle, Row, read_run_result
from holdfast.api.options import StepOptions, nearest, step_options
from holdfast.api.recurring import Recurring
from holdfast.api.signature import Signature
from holdfast.engine.edge import operation, then
from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.model.graph import Concurrency, Step, Workflow
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

Needed = Callable[..., Any] | str

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StepFunction:
    """One step: its function and what the decorator said of it."""

    signature: Signature
    needs: tuple[str, ...]
    options: StepOptions


class WorkflowBuilder(Recurring):
    """Made by `hf.workflow(name)`; its graph is checked when it is first used."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        name: str,
        *,
        concurrency: Concurrency | None,
        retry: RetryPolicy,
    ) -> None:
        self._engine = engine
        self.name = name
        self._concurrency = concurrency
        self._retry = retry
        self.steps: dict[str, StepFunction] = {}
        self._graph: Workflow | None = None

    @overload
    def step(self, function: Callable[P, T], /) -> Callable[P, T]: ...

    @overload
    def step(
        self, /, *, needs: Needed | Sequence[Needed] | None = None, **options: Any
    ) -> Callable[[Callable[P, T]], Callable[P, T]]: ...

    def step(
        self,
        function: Callable[P, T] | None = None,
        /,
        *,
        needs: Needed | Sequence[Needed] | None = None,
        **options: Any,
    ) -> Callable[P, T] | Callable[[Callable[P, T]], Callable[P, T]]:
        """Add a step. Without any needs it follows the step before; `needs=[]` starts at once.

        `needs` is a step, by its function or its name, or a list of them. Options: `agent`,
        `tags`, `priority`, `timeout`, `concurrency` (a key, or a key and its limit),
        `max_attempts`, `max_lost`, `backoff`, `backoff_max`.
        """
        chosen = step_options(options, self._retry)
        wanted = [needs] if isinstance(needs, str) or callable(needs) else needs

        def add(decorated: Callable[P, T]) -> Callable[P, T]:
            self._add(decorated, wanted, chosen)
            return decorated

        return add if function is None else add(function)

    @operation
    def start(
        self,
        /,
        *unnamed: object,
        key: str | None = None,
        connection: object = None,
        **given: Any,
    ) -> Future[Handle[Any]]:
        """Start a run with the steps' inputs by name; a `key` makes it exist once.

        With a `connection` it is part of the application's own transaction there.
        """
        if unnamed:
            first = next(
                (name for each in self.steps.values() for name in each.signature.inputs), "name"
            )
            raise InvalidInput("start", f"inputs go by name: start({first}={unnamed[0]!r})")
        run = replace(self.request(**given), key=key)
        engine = self._engine()
        return then(
            engine.runs.start.submit(run, connection=connection),
            lambda created: Handle(engine, created.id, self._result, created=created.created),
        )

    def request(self, /, **given: Any) -> NewRun:
        """The run that stands for one start."""
        return NewRun(workflow=self.graph, input=self._input(given))

    @property
    def graph(self) -> Workflow:
        """The checked definition; its `version` names its content."""
        if self._graph is None:
            mistakes = [each for step in self.steps.values() for each in step.signature.mistakes]
            if mistakes:
                raise InvalidDefinition(f"workflow {self.name}", mistakes)
            self._graph = Workflow.define(
                self.name,
                tuple(
                    Step(id=name, needs=step.needs, **step.options)
                    for name, step in self.steps.items()
                ),
                concurrency=self._concurrency,
            )
        return self._graph

    def _add(
        self,
        function: Callable[..., Any],
        needs: Sequence[Needed] | None,
        options: StepOptions,
    ) -> None:
        signature = Signature(function)
        if signature.name in self.steps:
            raise InvalidDefinition(self.name, [f"step {signature.name!r} is defined twice"])
        wanted: list[Needed] = [*signature.needed.values(), *(needs or ())]
        if not wanted and needs is None:
            wanted += [*self.steps][-1:]
        names = tuple(dict.fromkeys(self._name(each) for each in wanted))
        self.steps[signature.name] = StepFunction(signature=signature, needs=names, options=options)
        self._graph = None

    def _name(self, step: Needed) -> str:
        if isinstance(step, str):
            return step
        for name, known in self.steps.items():
            if known.signature.function is step:
                return name
        shown = getattr(step, "__name__", repr(step))
        raise InvalidDefinition(self.name, [f"needs {shown!r}, which is no step of this workflow"])

    def _input(self, given: dict[str, Any]) -> dict[str, Any]:
        takers: dict[str, list[Signature]] = {}
        missing: dict[str, str] = {}
        for step in self.steps.values():
            for name, parameter in step.signature.inputs.items():
                takers.setdefault(name, []).append(step.signature)
                if name not in given and parameter.default is parameter.empty:
                    missing.setdefault(name, step.signature.name)
        for name in given:
            if name not in takers:
                known = ", ".join(takers) or "no input at all"
                reason = f"is no input of {self.name!r}, which takes {known}{nearest(name, takers)}"
                raise InvalidInput(name, reason)
        for name, step_name in missing.items():
            raise InvalidInput(name, f"is missing; step {step_name!r} takes it")
        encoded = {name: takers[name][0].encode(name, value) for name, value in given.items()}
        for name, value in encoded.items():
            for taker in takers[name][1:]:
                taker.decode(name, value)
        return encoded

    def _result(self, row: Row) -> Any:  # noqa: ANN401 - what its last steps return
        return read_run_result(self._engine(), row, self._decode)

    def _decode(self, step: str, output: object) -> object:
        # A run keeps the graph it was started with, and so may have steps that are here no longer.
        known = self.steps.get(step)
        return output if known is None else known.signature.decode("return", output)
