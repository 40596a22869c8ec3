"""Store checks: assertions about calls, runs, attempts and effects, which say what was there."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.api.start import StartableWorkflow
from holdfast.api.task import TaskFunction
from holdfast.errors import InvalidInput
from holdfast.model.run import Run
from holdfast.model.task import Task
from holdfast.testing.attempt_driver import RanAttempt, StoredTask
from holdfast.testing.targets import Named, Target, read_target

SHOWN = 20
# Attempts that were given back for a wait go on in the next one.
_UNFINISHED = ("given back", "ended")


class StoreChecks(ABC):
    """Assertions about what a test has run, and about what is in its stores."""

    @property
    @abstractmethod
    def attempts(self) -> Sequence[RanAttempt]:
        """The attempts that were run so far, in the order in which they ended."""

    @abstractmethod
    def _list_tasks(self) -> Iterator[StoredTask]:
        """The tasks of all stores, the oldest first."""

    @abstractmethod
    def _list_runs(self) -> Iterator[Run]:
        """The runs of all stores, the oldest first."""

    def tasks_of(self, step: Named, /) -> list[Task]:
        """The tasks of a step, or the calls of a task function, the oldest first."""
        target = read_target("step", step)
        return [each.task for each in self._list_tasks() if each.is_of(target)]

    def assert_enqueued(self, task: Named, /, **arguments: Any) -> Task:
        """Check that a task function was enqueued with these arguments, of which some suffice."""
        target = read_target("task", task)
        wanted = _encode_arguments(task, arguments)
        calls = self._list_calls(target)
        found = [each for each in calls if _has_all(each.payload, wanted)]
        if not found:
            raise AssertionError(
                f"{_describe_call(target.name, wanted)} was not enqueued; "
                f"{self._describe_calls(target, calls)}"
            )
        return found[0]

    def assert_not_enqueued(self, task: Named, /, **arguments: Any) -> None:
        """Check that a task function was not enqueued, or not with these arguments."""
        target = read_target("task", task)
        wanted = _encode_arguments(task, arguments)
        found = [each for each in self._list_calls(target) if _has_all(each.payload, wanted)]
        if found:
            raise AssertionError(
                f"{_describe_call(target.name, wanted)} was enqueued: "
                + "; ".join(f"{_describe_task(each)} ({each.id})" for each in found[:SHOWN])
            )

    def assert_started(self, workflow: StartableWorkflow | str, /, **inputs: Any) -> Run:
        """Check that a run of a workflow was started with these inputs, of which some suffice."""
        name = workflow if isinstance(workflow, str) else workflow.read_graph().name
        wanted = _to_json(inputs)
        runs = [each for each in self._list_runs() if each.workflow == name]
        found = [each for each in runs if _has_all(each.input, wanted)]
        if not found:
            there = "; ".join(_describe_call(name, each.input) for each in runs[:SHOWN])
            others = sorted({each.workflow for each in self._list_runs()})
            instead = f"started were {there}" if there else f"runs are of {_join(others)}"
            raise AssertionError(f"{_describe_call(name, wanted)} was not started; {instead}")
        return found[0]

    def assert_ran(self, step: Named, /, *, times: int | None = None) -> None:
        """Check that a step was run, as often as said; a wait in between makes it no more often."""
        target = read_target("step", step)
        ran = self._list_attempts(target)
        if (not ran) if times is None else (len(ran) != times):
            wanted = "" if times is None else f" {_count(times)}"
            raise AssertionError(f"{target} did not run{wanted}; {self._describe_ran(ran)}")

    def assert_not_ran(self, step: Named, /) -> None:
        """Check that a step was not run at all."""
        target = read_target("step", step)
        if ran := [each for each in self.attempts if _is_of(each, target)]:
            raise AssertionError(f"{target} ran: {_join(map(str, ran))}")

    def assert_ran_once(self, step: Named, /) -> None:
        """Check that a step was run once and completed: no failure, no crash, no second time."""
        self.assert_ran(step, times=1)
        target = read_target("step", step)
        (only,) = self._list_attempts(target)
        if only.outcome != "completed":
            raise AssertionError(f"{target} ran once and did not complete: {only}")

    def assert_order(self, *steps: Named) -> None:
        """Check that steps were completed in this order, each for the first time."""
        targets = [read_target("step", each) for each in steps]
        completed = [each for each in self.attempts if each.outcome == "completed"]
        places: list[int] = []
        for target in targets:
            own = [place for place, each in enumerate(completed) if _is_of(each, target)]
            if not own:
                ran = self._list_attempts(target)
                raise AssertionError(f"{target} was not completed; {self._describe_ran(ran)}")
            places.append(own[0])
        if places != sorted(places):
            order = _join(each.step for each in completed)
            wanted = _join(map(str, targets))
            raise AssertionError(f"not completed in the order {wanted}, but {order}")

    def assert_effects(self, step: Named, /, *names: str) -> None:
        """Check the effects whose functions were called, in their order, over all attempts."""
        target = read_target("step", step)
        ran = [each for each in self.attempts if _is_of(each, target)]
        done = [name for each in ran for name in each.effects]
        if done != list(names):
            told = "; ".join(
                f"attempt {each.attempt} ({each.outcome}) did {_join(each.effects)}" for each in ran
            )
            wanted = _join(names)
            raise AssertionError(
                f"{target} did not do the effects {wanted}; {told or 'it did not run'}"
            )

    def _list_attempts(self, target: Target) -> list[RanAttempt]:
        own = [each for each in self.attempts if _is_of(each, target)]
        return [each for each in own if each.outcome not in _UNFINISHED]

    def _list_calls(self, target: Target) -> list[Task]:
        return [each for each in self.tasks_of(target) if each.run_id is None]

    def _describe_calls(self, target: Target, calls: Sequence[Task]) -> str:
        if calls:
            return "enqueued were " + "; ".join(map(_describe_task, calls[:SHOWN]))
        others = [each.task for each in self._list_tasks() if each.task.run_id is None]
        if not others:
            return f"no call of {target} is in the store, nor of any other task"
        there = "; ".join(map(_describe_task, others[:SHOWN]))
        return f"no call of {target} is in the store, but {there}"

    def _describe_ran(self, ran: Sequence[RanAttempt]) -> str:
        if ran:
            return f"it ran {_count(len(ran))}: {'; '.join(map(str, ran))}"
        steps = dict.fromkeys(each.step for each in self.attempts)
        return f"what ran: {_join(steps)}" if steps else "nothing ran; say run_until_idle() first"


def _is_of(ran: RanAttempt, target: Target) -> bool:
    return target.means(ran.function, ran.step)


def _encode_arguments(task: Named, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of arguments, by the annotations of the function where it is known."""
    if not isinstance(task, TaskFunction):
        return _to_json(arguments)
    known = task.signature.inputs
    for name in arguments:
        if name not in known:
            reason = f"is no parameter of {task.name}, which takes {_join(known)}"
            raise InvalidInput(name, reason)
    return {name: task.signature.encode(name, value) for name, value in arguments.items()}


def _to_json(values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(values)))
    except TypeError as error:
        raise InvalidInput("arguments", f"are compared as JSON: {error}") from error
    return found


def _has_all(given: object, wanted: Mapping[str, Any]) -> bool:
    known = given if isinstance(given, Mapping) else {}
    return all(name in known and known[name] == value for name, value in wanted.items())


def _describe_task(task: Task) -> str:
    return _describe_call(task.step or task.title, task.payload)


def _describe_call(name: str, arguments: object) -> str:
    if not isinstance(arguments, Mapping):
        return f"{name}()" if arguments is None else f"{name}({arguments!r})"
    return f"{name}({', '.join(f'{each}={value!r}' for each, value in arguments.items())})"


def _join(names: Any) -> str:  # noqa: ANN401 - any iterable of texts
    return ", ".join(names) or "none"


def _count(times: int) -> str:
    return {0: "0 times", 1: "once", 2: "twice"}.get(times, f"{times} times")
