"""A step that is a command: its prompt, its processes, its log, its answer."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import ShuttingDown
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import StepWork
from holdfast.tracing import write_traceparent
from holdfast.worker.attempt.attempt_lease import AttemptEnded
from holdfast.worker.attempt.context import Context
from holdfast.worker.attempt.execution import GivenBack, StepFailed
from holdfast.worker.attempt_server.attempt_addresses import AttemptAddress
from holdfast.worker.files.attempt_log import Spool
from holdfast.worker.secrets.secret_rules import Kind, admit, cleaner
from holdfast.worker.steps.command import (
    IDLE,
    OVER,
    SIGNALLED,
    TIMEOUT,
    CannotStart,
    Command,
    Ended,
    Limits,
)
from holdfast.worker.steps.command_answer import Answer, Answered, ask, ask_again, read_answer
from holdfast.worker.steps.command_environment import (
    SHORT_PROMPT,
    Files,
    files_in,
    inherited,
    variables,
)
from holdfast.worker.steps.orphans import end_record, record_of
from holdfast.worker.steps.permission import PermittedWork, takes_prompt
from holdfast.worker.steps.process import Process
from holdfast.worker.steps.step_resources import (
    InvalidOutput,
    Post,
    Questions,
    own_reads,
    questions_of,
)
from holdfast.worker.steps.transcript import Transcript

UNPAID = 10

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One time that a command is run for its attempt, all of which share the attempt's time."""

    files: Files
    spool: Spool
    address: AttemptAddress
    prompt: str | None
    until: float | None


class CommandFailed(StepFailed):
    """A command that could not be run, ended badly, or had to be ended."""


class CommandStep:
    """One attempt of a step that is a command."""

    def __init__(
        self, post: Post, assignment: Assignment, context: Context, work: StepWork
    ) -> None:
        self._post = post
        self._assignment = assignment
        self._context = context
        self._work = work

    def run(self) -> Any:  # noqa: ANN401 - JSON is any value
        """Run it, once more where its answer cannot be read, and give its answer."""
        state, clock = self._post.state, self._post.engine.clock
        task_id, number = self._assignment.task_id, self._assignment.attempt
        with (
            files_in(state.files(task_id, number)) as files,
            Spool(state.log(task_id, number)) as spool,
            self._post.addresses.open(self._assignment) as address,
        ):
            questions = self._questions()
            prompt = self._post.permit(self._work).prompt
            if prompt is not None:
                prompt = ask(questions.told(prompt), self._work.outputs)
            timeout = self._assignment.timeout
            until = None if timeout is None else clock.monotonic() + timeout
            turn = Turn(files=files, spool=spool, address=address, prompt=prompt, until=until)
            answer = self._repair(turn, *self._take(turn))
            if answer.question is not None:
                raise questions.ask(answer.question)
            return answer.output

    def _questions(self) -> Questions:
        first = self._assignment.attempt == 1
        with own_reads():
            known = {} if first else self._post.engine.work.effects(self._assignment.task_id)
        return questions_of(self._assignment, known)

    def _repair(self, turn: Turn, answered: Answered, answer: Answer) -> Answer:
        """An answer that can be read: of the one turn more that there is where one was asked."""
        if answer.mistakes and turn.prompt is not None:
            again = ask_again(turn.prompt, answered, answer.mistakes)
            _, answer = self._take(replace(turn, prompt=again))
        if answer.mistakes:
            raise InvalidOutput("; ".join(answer.mistakes))
        return answer

    def _take(self, turn: Turn) -> tuple[Answered, Answer]:
        """Run the command, and read what it answered."""
        limit = self._post.engine.settings.max_output
        work = self._post.permit(self._work, turn.prompt or "")
        present = turn.address.present
        transcript = Transcript(turn.spool, present, limit)
        self._give(turn)
        ended = self._run(work, turn, transcript)
        self._judge(ended, transcript)
        file, redaction = turn.files.take(limit), present()
        clean = None if file is None else redaction.clean(file)
        answered = Answered(file=clean, written=transcript.output)
        answer = read_answer(answered, work.outputs, limit=limit)
        output = admit(Kind.OUTPUT, answer.output, cleaner(present))
        return answered, replace(answer, output=output)

    def _give(self, turn: Turn) -> None:
        assignment = self._assignment
        steps = assignment.needs
        if assignment.item_number is not None:
            with own_reads():
                steps = self._post.engine.work.needed_around(assignment.task_id) | steps
        turn.files.give(
            {
                "input": assignment.input,
                "item": assignment.item,
                "feedback": assignment.feedback,
                "steps": steps,
                "prompt": turn.prompt,
            }
        )

    def _run(self, work: PermittedWork, turn: Turn, transcript: Transcript) -> Ended:
        prompt = turn.prompt or ""
        with own_reads():
            named = self._post.asked.by(self._assignment)
        environment = inherited(self._post.permission.secrets(named)) | dict(work.env)
        environment |= variables(self._assignment, turn.files, self._post.engine.settings.url)
        environment |= turn.address.variables
        if (place := write_traceparent()) is not None:
            environment["TRACEPARENT"] = place
        if 0 < len(prompt.encode()) <= SHORT_PROMPT:
            environment["HOLDFAST_PROMPT"] = prompt
        command = Command(
            arguments=work.command,
            environment=environment,
            given=b"" if takes_prompt(self._work) else prompt.encode(),
        )
        limits = Limits(timeout=self._left(turn), idle_timeout=work.idle_timeout)
        watch = Watching(self._post, self._assignment, self._context, transcript)
        try:
            ended = Process(command, limits, watch, self._post.engine.clock).run()
            if ended.abandoned:
                end_record(watch.record)
        except CannotStart as error:
            raise CommandFailed(str(error)) from error
        finally:
            transcript.end()
            watch.end()
        return ended

    def _left(self, turn: Turn) -> float | None:
        now = self._post.engine.clock.monotonic()
        return None if turn.until is None else max(0.0, turn.until - now)

    def _judge(self, ended: Ended, transcript: Transcript) -> None:
        """Raise what there is to say of a command that did not end well."""
        over = ended.stopped == OVER or self._context.ended
        if ended.code == 0 and ended.stopped is None and not over:
            return
        said = self._reason(ended, over=over)
        many = f"{ended.ended} process{'' if ended.ended == 1 else 'es'}"
        left = f", {ended.left} could not be ended" if ended.left else ", none is left"
        transcript.say(f"{said}; {many} ended{left}" if ended.ended else said)
        if ended.stopped is not None or over:
            self._note_stop(ended)
        if over:
            raise AttemptEnded(said)
        # One that signals its own keeper would else be given back for ever.
        if ended.stopped == SIGNALLED and self._unpaid() <= UNPAID:
            raise GivenBack(said)
        complaint = "" if ended.stopped else transcript.complaint
        raise CommandFailed(f"{said}: {complaint}" if complaint else said)

    def _unpaid(self) -> int:
        """How many attempts it has had that cost it nothing, this one too."""
        with own_reads():
            task = self._assignment.task
        return task.attempt - task.failures - task.lost

    def _note_stop(self, ended: Ended) -> None:
        """Have the attempt's record say that it stopped; nobody waits for that."""
        task_id = self._assignment.task_id
        if ended.left:
            log.error("%d processes of %s could not be ended", ended.left, task_id)
        note = self._post.engine.workers.note_stop.submit
        with suppress(ShuttingDown):
            note(task_id, self._assignment.token, ended=ended.ended, left=ended.left)

    def _reason(self, ended: Ended, *, over: bool) -> str:
        if over:
            return "stopped, as its attempt is over"
        if ended.stopped == TIMEOUT:
            return f"ran longer than {self._assignment.timeout:g} s"
        if ended.stopped == IDLE:
            return f"was silent for longer than {self._work.idle_timeout:g} s"
        if ended.stopped == SIGNALLED:
            return "was told to end by a signal from outside"
        return _tell_exit(ended.code)


def _tell_exit(code: int | None) -> str:
    if code is None:
        return "its keeper was killed"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


class Watching:
    """What a running command knows of its attempt."""

    def __init__(
        self, post: Post, assignment: Assignment, context: Context, transcript: Transcript
    ) -> None:
        self._directory = post.state.processes
        self._clock = post.engine.clock
        self._context = context
        self._transcript = transcript
        self.record = record_of(assignment.task_id, assignment.attempt)
        self.record.write(self._directory)

    def over(self) -> bool:
        return self._context.ended

    def deadline(self) -> float | None:
        return None if self._clock.manual else self._context.deadline

    def interrupted(self, wake: Callable[[], object] | None) -> None:
        self._context.interrupt = wake

    def began(self, keeper_id: int, command_id: int, started: str) -> None:
        self.record = replace(self.record, command=command_id, command_started=started)
        self.record.write(self._directory)
        log.debug("process %d runs under its keeper %d", command_id, keeper_id)

    def wrote(self, data: bytes, *, error: bool) -> None:
        self._transcript.wrote(data, error=error)
        if self._transcript.last_line:
            self._context.noted = {"log": self._transcript.last_line}

    def end(self) -> None:
        self.record.remove(self._directory)
