"""The workers of the demonstration, real processes, and the accident that one of them has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from holdfast.cli.terminal import paint
from holdfast.service.commands.request_errors import Refused
from holdfast.service.queries.run_tree import step_names
from holdfast.service.service import Service
from holdfast.worker.files.homes import HOME

Workers = Mapping[str, "subprocess.Popen[bytes]"]
PACKAGES = str(Path(__file__).parents[2])
# By which a person, a service manager or a closed terminal ends a program.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEASE = 3
LOOK_EVERY = 0.05
STOPS_WITHIN = 5.0
SCENE = "build.2.implement"


@contextmanager
def working(folder: Path, names: Sequence[str], agents: Sequence[str]) -> Iterator[Workers]:
    """Workers on the store of a folder, which end with this block however it is left."""
    workers: dict[str, subprocess.Popen[bytes]] = {}
    tokens_in(folder).mkdir()
    try:
        for name in names:
            workers[name] = _start(folder, name, agents)
        yield workers
    finally:
        _end(workers)


def _start(folder: Path, name: str, agents: Sequence[str]) -> subprocess.Popen[bytes]:
    kept = {each: value for each, value in os.environ.items() if not each.startswith("HOLDFAST_")}
    # A path that is not absolute would lead elsewhere from the folder.
    path = os.pathsep.join([PACKAGES, kept.get("PYTHONPATH", "")])
    options = ["--name", name, "--concurrency", "1", "--lease", f"{LEASE}s"]
    options += [part for agent in agents for part in ("--agent", agent)]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "holdfast", "worker", *options],
            cwd=folder,
            env=kept | {"PYTHONPATH": path, "KEEP_TOKENS": str(tokens_in(folder))},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C is for the demonstration, which then has them stop.
            start_new_session=True,
        )


def tokens_in(folder: Path) -> Path:
    """Where the developer of the demonstration leaves the token of each attempt."""
    return folder / HOME / "tokens"


def _end(workers: Workers) -> None:
    """Let them leave in peace, then give back what they run, then not at all."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in ENDING}
    try:
        for patience in (0.5, STOPS_WITHIN):
            for process in workers.values():
                process.terminate()
            for process in workers.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(patience)
        for process in workers.values():
            process.kill()
            process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Accident:
    """Kills the worker that has a certain step, in the middle of it, as nobody can prepare for."""

    def __init__(self, service: Service, run_id: str, workers: Workers) -> None:
        self._service = service
        self._run_id = run_id
        self._workers = workers
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="accident", daemon=True)
        self.task: str | None = None
        self.told: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            if all(process.poll() is not None for process in self._workers.values()):
                self._give_up()
                return
            if self.task is None:
                self._look()

    def _give_up(self) -> None:
        left = "No worker is left, so the run is cancelled; worker-….log says more."
        self.told = [*self.told, left]
        # It may just have ended.
        with suppress(Refused):
            self._service.commands.cancel(self._run_id)

    def _look(self) -> None:
        run = self._service.queries.run(self._run_id)
        names = step_names(run["tasks"])
        for task in self._begun(run):
            if names[task["id"]] == SCENE:
                self._strike(task)

    def _begun(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        """What runs and has said something, once there is somebody to take it up."""
        if len(self._service.queries.workers()["items"]) < len(self._workers):
            return []
        written = self._service.last_lines(run)
        return [task for task in run["tasks"] if task["id"] in written and "lease" in task]

    def _strike(self, task: dict[str, Any]) -> None:
        victim = str(task["lease"]["owner"])
        process = self._workers[victim]
        process.kill()
        process.wait()
        self.task = task["id"]
        self.told = [
            paint(f"kill -9 {process.pid}: {victim} dies in the middle of {SCENE}.", "yellow"),
            f"Its lease runs out within {LEASE} seconds; then the other one takes the step up.",
        ]
