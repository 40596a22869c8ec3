"""Stubs: answers of a test in place of functions, agents, commands and HTTP calls.

The real attempt goes on around the answer: arguments and results are checked against what the step
declares, a failure is tried again, a question waits for a person.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.task import Assignment
from holdfast.model.verdict import Verdict
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.step_template import finish_work
from holdfast.testing.targets import Target
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import Invocation
from holdfast.worker.attempt.waits import Suspended
from holdfast.worker.steps.command_answer import GivenAnswer, read_answer
from holdfast.worker.steps.step_resources import InvalidOutput, Questions, read_questions

FindEffects = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class Question:
    """An answer that asks a person instead; the next answer is given once the person has replied.

    `hf.answer(run.task("plan"), …)` replies.
    """

    question: Any


@dataclass(kw_only=True, eq=False)
class Stub:
    """The answers of a step or an agent, one for each call; the last one stands for all others."""

    target: Target | None
    agent: str | None
    answers: Sequence[Any]
    calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not self.answers:
            raise InvalidInput("answers", "give at least one: an output, an error, a function")

    def matches(self, assignment: Assignment, function: Callable[..., object] | None) -> bool:
        if self.target is not None:
            return self.target.means(function, assignment.step, assignment.name)
        return self.agent == assignment.task.agent

    def take_answer(self) -> Any:  # noqa: ANN401 - whatever the test gives
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        return answer


def replace_function(stub: Stub, real: Invocation, context: AttemptContext) -> Invocation:
    """The call of a stub with the arguments of a function; its result is encoded like the real."""
    answer = stub.take_answer()

    def reply(**arguments: Any) -> Any:  # noqa: ANN401 - what the test gives
        given = give_answer(answer, arguments)
        return context.ask(given.question) if isinstance(given, Question) else given

    asynchronous = inspect.iscoroutinefunction(answer)
    return real._replace(function=reply, asynchronous=asynchronous)


def answer_step(
    stub: Stub, assignment: Assignment, context: AttemptContext, find_effects: FindEffects
) -> Invocation:
    """The call of a stub in place of an agent, a command or an HTTP call."""
    step = FileStepStub(stub, assignment, find_effects)
    arguments = {**describe_call(assignment), "ctx": context}
    return Invocation(
        function=lambda: step.run(arguments),
        arguments={},
        encode=lambda result: result,
        asynchronous=False,
    )


class FileStepStub:
    """One attempt of a step of a workflow file that a stub answers."""

    def __init__(self, stub: Stub, assignment: Assignment, find_effects: FindEffects) -> None:
        self._stub = stub
        self._assignment = assignment
        self._find_effects = find_effects

    def run(self, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON is any value
        answer = self._read(self._stub.take_answer(), arguments)
        if isinstance(answer, Question):
            raise self._suspend(answer)
        return answer

    def _suspend(self, asked: Question) -> Suspended:
        first = self._assignment.attempt == 1
        questions: Questions = read_questions(
            self._assignment, {} if first else self._find_effects()
        )
        return questions.suspend_for(asked.question)

    def _read(self, given: object, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401
        answer = give_answer(given, arguments)
        if isinstance(answer, Verdict):
            return describe_verdict(answer)
        return self._read_text(answer) if isinstance(answer, str) else answer

    def _read_text(self, text: str) -> Any:  # noqa: ANN401 - JSON is any value
        """The output in what an agent writes, read as a worker reads it."""
        work = self._assignment.work
        outputs = None if work is None else work.outputs
        limit = len(text.encode()) + 1
        found = read_answer(GivenAnswer(file=None, written=text.encode()), outputs, limit=limit)
        if found.mistakes:
            raise InvalidOutput("; ".join(found.mistakes))
        return found.output if found.question is None else Question(found.question)


def give_answer(answer: Any, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """The answer itself, what a function gives as an answer, or the error that stands for it."""
    if isinstance(answer, BaseException) or _is_error_type(answer):
        raise answer
    return call_with_known(answer, arguments) if callable(answer) else answer


def _is_error_type(answer: object) -> bool:
    return isinstance(answer, type) and issubclass(answer, BaseException)


def call_with_known(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Call a function with those arguments that it takes by name."""
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return function(**arguments)
    missing = [
        each.name
        for each in parameters
        if each.default is each.empty
        and each.kind is not each.VAR_POSITIONAL
        and each.name not in arguments
    ]
    if missing:
        reason = f"the stub takes {missing[0]!r}, and the step gives {', '.join(arguments)}"
        raise InvalidInput("stub", reason)
    names = [each.name for each in parameters]
    return function(**{name: arguments[name] for name in names if name in arguments})


def describe_call(assignment: Assignment) -> dict[str, Any]:
    """What a function in place of an agent, a command or a call may take, by name."""
    work = None if assignment.work is None else _fill_in(assignment.work)
    return {
        "prompt": None if work is None else work.prompt,
        "command": None if work is None or work.command is None else list(work.command),
        "http": None if work is None else work.http,
        "payload": assignment.payload,
        "input": assignment.input,
        "item": assignment.item,
        "feedback": assignment.feedback,
        "steps": assignment.needs,
        "attempt": assignment.attempt,
    }


def _fill_in(work: StepWork) -> StepWork:
    """The work as its worker would carry it out; secrets stay the variables that they are."""

    def look_up(prompt: str, root: str, name: str) -> str:
        if root == "prompt":
            return prompt
        there = os.environ.get(name) if root == "env" else None
        return f"{{{{ {root}.{name} }}}}" if there is None else there

    prompt = finish_work(work, partial(look_up, "")).prompt or ""
    return finish_work(work, partial(look_up, prompt))


def describe_verdict(verdict: Verdict) -> dict[str, Any]:
    """The output of a verifier that gives this verdict."""
    said = {"feedback": verdict.feedback, "items": list(verdict.items)}
    return {"verdict": verdict.verdict, **{name: value for name, value in said.items() if value}}
