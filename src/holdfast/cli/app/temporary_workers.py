"""Temporary workers: workers beside a run that is watched, which stop when its view is left.

A program brings a worker with its functions; a workflow file gets workers for the agents that no
live worker serves.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from holdfast.cli.app.log_output import show_logs
from holdfast.cli.app.session import open_holdfast, project_settings, with_store
from holdfast.cli.app.terminal import escape, print_note
from holdfast.logs import FAILURES
from holdfast.stop_signals import stop_between_transactions

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.cli.app.program import Program
    from holdfast.model.workflow.graph import Step, Workflow
    from holdfast.service.service import Service
    from holdfast.worker.pool.lifecycle import Worker

View = dict[str, Any]
SignalHandler = Callable[[int, FrameType | None], object]
INTERRUPTED = 130
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
CHECK_EVERY = 0.1
CHECK_WORKERS_EVERY = 1.0


class TemporaryWorkers:
    """Workers that stop when the block is left, and the handling of Ctrl-C for them.

    The first Ctrl-C ends the view of the run, and lets workers finish their running steps. The
    second one makes them give these steps back at once. The second one sets a flag and raises
    nothing, because an exception could leave the shutdown half done. SIGTERM of a service manager
    and SIGHUP of a closed terminal act as Ctrl-C does.
    """

    def __init__(self, command: str | None = None) -> None:
        self._command = command
        self._workers: list[Worker] = []
        self._exit_stack = ExitStack()
        self._interrupt = threading.Event()
        self._ending_signals: list[int] = []

    @property
    def command(self) -> str | None:
        """The command for a worker like the temporary ones."""
        return self._command

    def add(self, worker: Worker) -> None:
        """Keep a started worker until the block is left."""
        self._workers.append(worker)

    def start_missing(self) -> None:
        """Start workers for unserved steps; the view calls this again and again."""

    def note_interrupts(self) -> None:
        """From now on, Ctrl-C sets a flag and raises nothing."""
        if self._workers:
            self._handle_signals(
                (signal.SIGINT, *self._ending_signals), lambda *_: self._interrupt.set()
            )

    def __enter__(self) -> Self:
        # A signal that is ignored, as SIGHUP is under nohup, stays ignored.
        self._ending_signals = [
            each for each in ENDING_SIGNALS if signal.getsignal(each) is signal.SIG_DFL
        ]
        self._handle_signals(self._ending_signals, signal.default_int_handler)
        self._exit_stack.enter_context(stop_between_transactions())
        return self

    def _handle_signals(self, numbers: Iterable[int], handler: SignalHandler) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for each in numbers:
            self._exit_stack.callback(signal.signal, each, signal.signal(each, handler))

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self._stop_at_once()
        stopping = threading.Thread(target=self._stop, name="holdfast-stop", daemon=True)
        stopping.start()
        try:
            while stopping.is_alive():
                stopping.join(CHECK_EVERY)
                if self._interrupt.is_set():
                    self._stop_at_once()
        except KeyboardInterrupt:
            self._stop_at_once()
        self._exit_stack.close()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def _stop_at_once(self) -> NoReturn:
        try:
            for worker in self._workers:
                worker.give_back()
        finally:
            sys.stdout.flush()
            os._exit(INTERRUPTED)


class MissingWorkers(TemporaryWorkers):
    """Starts workers for the steps of a workflow file that no live worker serves.

    The check is repeated: a worker that was killed counts as live until its presence expires, and
    a live worker may leave.
    """

    def __init__(self, service: Service, workflow: Workflow) -> None:
        super().__init__()
        self._service = service
        self._workflow = workflow
        self._steps = _wanted_steps(workflow)
        self._agents: list[str] = []
        self._checked_at: float | None = None
        self._noted = False

    @property
    def command(self) -> str | None:
        agents = [f"--agent {agent}" for agent in self._agents]
        return " ".join(["holdfast worker", *agents]) if agents else None

    def start_missing(self) -> None:
        now = time.monotonic()
        if self._checked_at is not None and now < self._checked_at + CHECK_WORKERS_EVERY:
            return
        later, self._checked_at = self._checked_at is not None, now
        missing = self._missing_agents()
        if missing and self._workflow.declared is not None:
            if later:
                print_note(
                    f"No worker serves {', '.join(missing)} any more; one beside this run does."
                )
            self._start_workers(missing)
        elif missing and not self._noted:
            self._noted = True
            who = f"No worker serves {', '.join(missing)}."
            worker = with_store("holdfast worker module:name")
            print_note(f"{who} Its functions are in a program: {worker}")

    def _missing_agents(self) -> list[str]:
        alone = {step.agent for step in _unserved_steps(self._service, self._steps)}
        return sorted(alone - {*self._agents})

    def _start_workers(self, agents: list[str]) -> None:
        holdfast = self._exit_stack.enter_context(open_holdfast(self._service.location.url))
        self.add(_start_worker(holdfast, self._workflow, agents))
        self._agents += agents


@contextmanager
def workers_beside_run(
    service: Service, workflow: Workflow, program: Program | None
) -> Iterator[TemporaryWorkers]:
    """The temporary workers of a run, until its view is left."""
    # The events of the run report the errors of its steps, so the log shows neither these nor any
    # warnings.
    show_logs(logging.ERROR)
    logging.getLogger(FAILURES).setLevel(logging.CRITICAL)
    if program is None:
        with MissingWorkers(service, workflow) as missing_workers:
            missing_workers.start_missing()
            yield missing_workers
        return
    # This worker is started even if others live: workers announce agents, but not functions.
    with TemporaryWorkers(f"holdfast worker {program.name}") as program_workers:
        program_workers.add(_start_worker(program.holdfast, workflow, wanted_agents(workflow)))
        yield program_workers


def _start_worker(holdfast: Holdfast, workflow: Workflow, agents: list[str]) -> Worker:
    from holdfast.model.workflow.step import all_steps

    steps = [step for flow in workflow.with_called_workflows for step in all_steps(flow.steps)]
    tags = sorted({tag for step in steps for tag in step.tags})
    settings = project_settings()
    options: dict[str, Any] = {"tags": tags, "least_disk": settings.least_disk}
    concurrency = settings.functions if workflow.declared is None else settings.agents
    if concurrency is not None:
        options["concurrency"] = concurrency
    return holdfast.worker(agents=agents or ["default"], **options).start()


def wanted_agents(workflow: Workflow) -> list[str]:
    """The agents of the steps that a temporary worker can run.

    Of a workflow file these are the steps with a command, an HTTP call or a merge.
    """
    return sorted({step.agent for step in _wanted_steps(workflow)})


def _wanted_steps(workflow: Workflow) -> list[Step]:
    from holdfast.model.workflow.step import all_steps

    return [
        step
        for flow in workflow.with_called_workflows
        for written in all_steps(flow.steps)
        for step in (written, written.handed_over)
        if step is not None
        if step.kind == "work"
        if flow.declared is None or (step.work and not step.work.external)
    ]


def note_unserved_steps(service: Service, changed: View, app: str | None = None) -> None:
    """Note the agents of a changed run or task that no live worker serves."""
    from holdfast.service.queries.command_lines import ANY_PROGRAM, describe_worker

    run = changed
    if changed["id"].startswith("t_"):
        if changed["kind"] != "work" or "run_id" not in changed:
            return
        run = service.queries.run(changed["run_id"], brief=True)
    if run["status"] != "running":
        return
    workflow = service.commands.find_workflow(run["workflow"], run["workflow_version"])
    steps = [step for step in _wanted_steps(workflow) if changed.get("agent") in {None, step.agent}]
    if unserved := _unserved_steps(service, steps):
        agents = sorted({step.agent for step in unserved})
        tags = sorted({tag for step in unserved for tag in step.tags})
        if app is None and workflow.declared is None:
            app = ANY_PROGRAM
        command = with_store(describe_worker(agents, tags, app))
        print_note(f"No worker serves {escape(', '.join(agents))} now; start one: {command}")


def _unserved_steps(service: Service, steps: Sequence[Step]) -> list[Step]:
    """The steps that no live worker serves."""
    live = [each for each in service.queries.workers()["items"] if "told" not in each]
    return [step for step in steps if not any(_serves(each, step) for each in live)]


def _serves(worker: View, step: Step) -> bool:
    from holdfast.model.worker import serves_agent

    return serves_agent(worker["agents"], step.agent) and {*step.tags} <= {*worker["tags"]}
