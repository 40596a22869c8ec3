"""Command steps: the prompt, the processes, the log and the answer of a command."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.errors import ShuttingDown
from holdfast.model.moment import to_datetime
from holdfast.model.task import Assignment, Renewal
from holdfast.model.workflow.declarations import StepWork
from holdfast.presets.agent_report import UsageLimit
from holdfast.presets.catalogue import PRESETS
from holdfast.presets.own_preset import make_own_preset
from holdfast.tracing import write_traceparent
from holdfast.worker.attempt.attempt_lease import AttemptEnded
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import GivenBack, LimitReached, StepFailed, UnknownFunction
from holdfast.worker.attempt_server.attempt_addresses import AttemptAddress
from holdfast.worker.files.attempt_log import AttemptLog
from holdfast.worker.secrets.secret_rules import Cleaner, WrittenKind, redact_or_refuse
from holdfast.worker.steps.agent_session import AgentSession, find_limit_end
from holdfast.worker.steps.attempt_watch import AttemptWatch
from holdfast.worker.steps.command import (
    IDLE,
    OVER,
    SIGNALLED,
    TIMEOUT,
    CannotStart,
    Command,
    CommandEnd,
    CommandLimits,
    describe_exit,
)
from holdfast.worker.steps.command_answer import (
    CommandAnswer,
    GivenAnswer,
    add_contract,
    make_next_prompt,
    make_repair_prompt,
    read_answer,
)
from holdfast.worker.steps.command_environment import (
    SHORT_PROMPT,
    CommandFiles,
    copy_environment,
    leave_repository,
    make_attempt_variables,
    make_command_files,
)
from holdfast.worker.steps.orphans import end_processes_of
from holdfast.worker.steps.permission import PermittedWork, takes_prompt
from holdfast.worker.steps.process import Process
from holdfast.worker.steps.step_resources import (
    InvalidOutput,
    Questions,
    StepResources,
    give_back_on_store_error,
    read_questions,
)
from holdfast.worker.steps.transcript import KEPT_ERRORS, Transcript
from holdfast.worker.steps.workspace_steps import open_step_workspace
from holdfast.worker.workspaces.attempt_workspace import AttemptWorkspace

MOST_FREE_ATTEMPTS = 10

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class CommandTry:
    """One run of the command of an attempt; all runs share the attempt's timeout."""

    files: CommandFiles
    log: AttemptLog
    address: AttemptAddress
    prompt: str | None
    until: float | None
    workspace: AttemptWorkspace | None = None


class CommandFailed(StepFailed):
    """The command could not be run, ended badly, or had to be ended."""


class CommandStep:
    """One attempt of a step that is a command."""

    def __init__(
        self,
        resources: StepResources,
        assignment: Assignment,
        context: AttemptContext,
        work: StepWork,
    ) -> None:
        self._resources = resources
        self._assignment = assignment
        self._context = context
        self._work = work
        self._agent = self._open_agent(work)

    def _open_agent(self, work: StepWork) -> AgentSession | None:
        """The session of the preset that the step uses; None for a command."""
        if work.use is None:
            return None
        own = self._resources.own_presets.get(work.use.preset)
        preset = PRESETS.get(work.use.preset) if own is None else make_own_preset(own)
        if preset is None or work.use.access not in preset.access:
            named = f"{work.use.preset!r} with access {work.use.access}"
            raise UnknownFunction(
                f"this worker knows no preset {named}; it may be of a later release"
            )
        return AgentSession(preset, work.use, self._assignment)

    def run(self) -> Any:  # noqa: ANN401 - JSON is any value
        """Run the command, once more if its answer cannot be read, and give the answer."""
        state, clock = self._resources.state, self._resources.store.clock
        task_id, number = self._assignment.task_id, self._assignment.attempt
        with (
            make_command_files(state.files(task_id, number)) as files,
            AttemptLog(state.log(task_id, number)) as attempt_log,
            self._resources.addresses.open(self._assignment) as address,
            open_step_workspace(
                self._resources, self._assignment, self._context, self._work
            ) as workspace,
        ):
            questions = self._read_questions()
            prompt = self._resources.permit(self._work).prompt
            if prompt is not None:
                asked = questions.add_answers(prompt, self._assignment.feedback)
                prompt = add_contract(asked, self._work.outputs, names_file=self._agent is None)
            timeout = self._assignment.timeout
            until = None if timeout is None else clock.monotonic() + timeout
            command_try = CommandTry(
                files=files,
                log=attempt_log,
                address=address,
                prompt=prompt,
                until=until,
                workspace=workspace,
            )
            if workspace is not None:
                workspace.tell = partial(_write_note, attempt_log)
            self._set_up(command_try)
            answer = self._repair(command_try, *self._run_once(command_try))
            if answer.question is not None:
                raise questions.suspend_for(answer.question)
            return answer.output if workspace is None else workspace.complete(answer.output)

    def _set_up(self, command_try: CommandTry) -> None:
        """Run the setup of a new worktree, which is a command like any other."""
        workspace = command_try.workspace
        if workspace is None or not workspace.is_new:
            return
        work = self._resources.permit(self._work)
        if work.workspace is not None and work.workspace.setup:
            current_redaction = command_try.address.current_redaction
            transcript = Transcript(command_try.log, current_redaction, KEPT_ERRORS)
            environment = self._make_environment(work, command_try)
            command = Command(
                arguments=work.workspace.setup, environment=environment, directory=workspace.path
            )
            ended = self._run_process(command, work, command_try, transcript)
            self._raise_for_bad_end(ended, transcript, "the setup of its workspace ")
        workspace.note_ready()

    def _read_questions(self) -> Questions:
        first = self._assignment.attempt == 1
        with give_back_on_store_error():
            known = {} if first else self._resources.store.work.effects(self._assignment.task_id)
        return read_questions(self._assignment, known)

    def _repair(
        self, command_try: CommandTry, answered: GivenAnswer, answer: CommandAnswer
    ) -> CommandAnswer:
        """An answer that can be read; a command with a prompt is run once more for it."""
        if answer.mistakes and command_try.prompt is not None:
            if self._agent is not None and self._agent.goes_on:
                again = make_next_prompt(answer.mistakes, self._work.outputs)
            else:
                again = make_repair_prompt(command_try.prompt, answered, answer.mistakes)
            _, answer = self._run_once(replace(command_try, prompt=again))
        if answer.mistakes:
            raise InvalidOutput("; ".join(answer.mistakes))
        return answer

    def _run_once(self, command_try: CommandTry) -> tuple[GivenAnswer, CommandAnswer]:
        """Run the command, and read its answer."""
        limit = self._resources.store.settings.max_output
        work = self._resources.permit(self._work, command_try.prompt or "")
        current_redaction = command_try.address.current_redaction
        on_clean = None if self._agent is None else self._agent.on_output
        transcript = Transcript(command_try.log, current_redaction, limit, on_clean)
        self._write_input(command_try)
        arguments = work.command
        if self._agent is not None:
            asked = command_try.prompt or ""
            arguments = self._agent.begin_run(asked, command_try.files, work.outputs)
        ended = self._run_command(work, command_try, transcript, arguments)
        if self._agent is not None:
            self._agent.end_run()
            self._tell_usage(self._agent)
        self._raise_for_bad_end(ended, transcript)
        written = transcript.output
        if self._agent is not None:
            self._raise_for_report(self._agent)
            report = self._agent.report
            if report.questions:
                asked = "\n".join(report.questions)
                return GivenAnswer(file=None, written=b""), CommandAnswer(question=asked)
            written = report.answer.encode()
        file, redaction = command_try.files.read_output(limit), current_redaction()
        clean = None if file is None else redaction.clean(file)
        answered = GivenAnswer(file=clean, written=written)
        answer = read_answer(answered, work.outputs, limit=limit, asked=command_try.prompt)
        output = redact_or_refuse(WrittenKind.OUTPUT, answer.output, Cleaner(current_redaction))
        return answered, replace(answer, output=output)

    def _write_input(self, command_try: CommandTry) -> None:
        assignment = self._assignment
        steps = assignment.needs
        if assignment.item_number is not None:
            with give_back_on_store_error():
                steps = self._resources.store.work.needed_around(assignment.task_id) | steps
        own = {} if assignment.payload is None else {"payload": assignment.payload}
        command_try.files.write_input(
            own
            | {
                "input": assignment.input,
                "item": assignment.item,
                "feedback": assignment.feedback,
                "steps": steps,
                "prompt": command_try.prompt,
            }
        )

    def _run_command(
        self,
        work: PermittedWork,
        command_try: CommandTry,
        transcript: Transcript,
        arguments: tuple[str, ...],
    ) -> CommandEnd:
        prompt = command_try.prompt or ""
        environment = self._make_environment(work, command_try)
        if 0 < len(prompt.encode()) <= SHORT_PROMPT:
            environment["HOLDFAST_PROMPT"] = prompt
        command = Command(
            arguments=arguments,
            environment=environment,
            directory=_find_folder(work.cwd, command_try.workspace),
            stdin=b"" if self._takes_prompt() else prompt.encode(),
        )
        return self._run_process(command, work, command_try, transcript)

    def _make_environment(self, work: PermittedWork, command_try: CommandTry) -> dict[str, str]:
        with give_back_on_store_error():
            named = self._resources.workflow_secrets.names_of(self._assignment)
        inherited = copy_environment(self._resources.permission.secrets(named))
        if self._agent is not None:
            inherited = self._agent.make_environment(inherited)
        if command_try.workspace is not None:
            inherited = leave_repository(inherited)
        environment = inherited | dict(work.env)
        environment |= make_attempt_variables(
            self._assignment, command_try.files, self._resources.store.settings.url
        )
        environment |= command_try.address.variables
        if command_try.workspace is not None:
            environment |= command_try.workspace.variables
        if (header := write_traceparent()) is not None:
            environment["TRACEPARENT"] = header
        return environment

    def _run_process(
        self,
        command: Command,
        work: PermittedWork,
        command_try: CommandTry,
        transcript: Transcript,
    ) -> CommandEnd:
        limits = CommandLimits(
            timeout=self._seconds_left(command_try), idle_timeout=work.idle_timeout
        )
        watch = AttemptWatch(
            self._resources,
            self._assignment,
            self._context,
            partial(self._take_output, transcript),
        )
        try:
            ended = Process(command, limits, watch, self._resources.store.clock).run()
            if ended.abandoned:
                end_processes_of(watch.record)
            if command_try.workspace is not None and (ended.abandoned or ended.processes_left):
                command_try.workspace.note_processes_left()
        except CannotStart as error:
            raise CommandFailed(str(error)) from error
        finally:
            transcript.end()
            watch.end()
        return ended

    def _takes_prompt(self) -> bool:
        """Whether an argument holds the prompt, so that standard input does not."""
        agent = self._agent
        return takes_prompt(self._work) if agent is None else agent.preset.takes_prompt

    def _take_output(self, transcript: Transcript, data: bytes, *, error: bool) -> None:
        transcript.on_output(data, error=error)
        agent = self._agent
        shown = transcript.last_line if agent is None else agent.report.progress
        if shown:
            self._context.note_progress({"log": shown})
        else:
            self._context.note_active()

    def _tell_usage(self, agent: AgentSession) -> None:
        """Have the attempt's record tell what it used and its session, however it ends."""
        usage = self._context.latest_usage = agent.usage
        if usage is None or self._context.ended:
            return
        token, task_id = self._assignment.token, self._assignment.task_id
        renewal = Renewal(task_id=task_id, token=token, usage=usage)
        with give_back_on_store_error():
            (reply,) = self._resources.store.work.renew_each([renewal])
            answer = reply.result()
        if not answer.ok:
            raise AttemptEnded(answer.detail or str(answer.reason))

    def _raise_for_report(self, agent: AgentSession) -> None:
        """Raise what a program whose exit code says nothing has told in its stream."""
        report = agent.report
        if report.limit is not None and report.result is None:
            self._reach_limit(report.limit)
        if report.error is not None:
            raise CommandFailed(agent.describe_error("", ""))
        if report.denials:
            raise CommandFailed(agent.describe_denials())

    def _reach_limit(self, limit: UsageLimit) -> None:
        """Give the task back until the limit lifts, unless that has been so too often."""
        free = self._count_free_attempts()
        if free > MOST_FREE_ATTEMPTS and limit.at is None and limit.seconds is None:
            return
        with give_back_on_store_error():
            now = to_datetime(self._resources.store.now())
        raise LimitReached(limit.message, find_limit_end(limit, now, free - 1))

    def _seconds_left(self, command_try: CommandTry) -> float | None:
        now = self._resources.store.clock.monotonic()
        return None if command_try.until is None else max(0.0, command_try.until - now)

    def _raise_for_bad_end(self, ended: CommandEnd, transcript: Transcript, what: str = "") -> None:
        """Raise the error for a command that did not end well; `what` names one of several."""
        is_over = ended.stop_reason == OVER or self._context.ended
        if ended.code == 0 and ended.stop_reason is None and not is_over:
            return
        said = what + self._describe_end(ended, is_over=is_over)
        many = f"{ended.processes_ended} process{'' if ended.processes_ended == 1 else 'es'}"
        left = (
            f", {ended.processes_left} could not be ended"
            if ended.processes_left
            else ", none is left"
        )
        transcript.note_line(f"{said}; {many} ended{left}" if ended.processes_ended else said)
        if ended.stop_reason is not None or is_over:
            self._note_stop(ended)
        if is_over:
            raise AttemptEnded(said)
        # Limited, because a command that signals its own keeper would be given back for ever.
        if ended.stop_reason == SIGNALLED and self._count_free_attempts() <= MOST_FREE_ATTEMPTS:
            raise GivenBack(said)
        complaint = "" if ended.stop_reason else transcript.error_text
        if self._agent is not None:
            self._raise_for_agent(self._agent, ended, said, complaint)
        raise CommandFailed(f"{said}: {complaint}" if complaint else said)

    def _raise_for_agent(
        self, agent: AgentSession, ended: CommandEnd, said: str, complaint: str
    ) -> None:
        limit = agent.report.limit
        if limit is None and ended.stop_reason == IDLE and agent.preset.silent_at_limit:
            limit = UsageLimit(message=f"{agent.preset.title} {said}, as it is at its usage limit")
        if limit is not None and ended.stop_reason != TIMEOUT:
            self._reach_limit(limit)
        if ended.stop_reason is None:
            raise CommandFailed(agent.describe_error(said, complaint))

    def _count_free_attempts(self) -> int:
        """The number of attempts without a failure or a lost lease, this one included."""
        with give_back_on_store_error():
            task = self._assignment.task
        return task.attempt - task.failures - task.lost

    def _note_stop(self, ended: CommandEnd) -> None:
        """Note in the attempt's record that its processes were ended, without waiting for it."""
        task_id = self._assignment.task_id
        if ended.processes_left:
            log.error("%d processes of %s could not be ended", ended.processes_left, task_id)
        note = self._resources.store.workers.note_stop.submit
        with suppress(ShuttingDown):
            note(
                task_id,
                self._assignment.token,
                ended=ended.processes_ended,
                left=ended.processes_left,
            )

    def _describe_end(self, ended: CommandEnd, *, is_over: bool) -> str:
        if is_over:
            return "stopped, as its attempt is over"
        if ended.stop_reason == TIMEOUT:
            return f"ran longer than {self._assignment.timeout:g} s"
        if ended.stop_reason == IDLE:
            return f"was silent for longer than {self._work.idle_timeout:g} s"
        if ended.stop_reason == SIGNALLED:
            return "was told to end by a signal from outside"
        return describe_exit(ended.code)


def _write_note(attempt_log: AttemptLog, line: str) -> None:
    attempt_log.write(f"[holdfast: {line}]\n".encode("utf-8", "replace"))


def _find_folder(cwd: str | None, workspace: AttemptWorkspace | None) -> Path | None:
    """The folder that a command runs in; none is the folder that its worker was started in."""
    if workspace is not None:
        return _find_inner_folder(cwd or "", workspace.path)
    if cwd is None:
        return None
    with suppress(OSError, ValueError):
        folder = Path(cwd).absolute()
        if cwd and folder.is_dir():
            return folder
    raise CommandFailed(f"cwd: {cwd!r} is no folder on the machine of this worker")


def _find_inner_folder(cwd: str, worktree: Path) -> Path:
    """A folder of a worktree, to which no link leads out of it."""
    with suppress(OSError, ValueError):
        folder = Path(os.path.realpath(worktree / cwd))
        if folder.is_dir() and folder.is_relative_to(os.path.realpath(worktree)):
            return folder
    raise CommandFailed(f"cwd: {cwd!r} is no folder of the workspace of the step")
