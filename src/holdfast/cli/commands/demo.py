"""The demonstration of `holdfast demo`: agents build a feature in a real git repository.

The workers are real processes, and the one that has a certain step is killed by SIGKILL.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from holdfast.cli.app.session import chosen_store, serve_location, with_store
from holdfast.cli.app.temporary_workers import INTERRUPTED, wanted_agents
from holdfast.cli.app.terminal import escape, paint, print_line, print_note
from holdfast.cli.render.formats import format_count, one_line
from holdfast.cli.render.live_view import watch_run
from holdfast.definition.workflow_file import read_workflow_file
from holdfast.model.run import NewRun
from holdfast.service.commands.request_errors import Refused
from holdfast.service.project.project import STORE_FILE, StoreLocation
from holdfast.service.queries.run_tree import name_steps
from holdfast.service.queries.views import View
from holdfast.service.service import Service
from holdfast.worker.files.homes import HOME
from holdfast.worker.git.git_command import Git

Workers = Mapping[str, "subprocess.Popen[bytes]"]
PACKAGES = str(Path(__file__).parents[3])
WORKFLOW = "feature.yaml"
TASK = "Add single sign-on"
WORKERS = ("worker-1", "worker-2")
# An installed package has the example in `cli/repository`, a clone in `examples/git`.
SOURCES = (
    Path(__file__).parents[1] / "repository",
    Path(__file__).parents[4] / "examples" / "git",
)
BRANCH = "main"
# The person who makes the first commit of the demonstration, wherever it is shown.
_AUTHOR = ("-c", "user.name=Demo", "-c", "user.email=demo@example.com")
# The signals of Ctrl-C, of a service manager and of a closed terminal.
DEMO_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEASE = 3
LOOK_EVERY = 0.05
STOPS_WITHIN = 5.0
KILLED_STEP = "build.2.implement"


@contextmanager
def running_workers(folder: Path, names: Sequence[str], agents: Sequence[str]) -> Iterator[Workers]:
    """Worker processes on the store of a folder, which end when the block is left in any way."""
    workers: dict[str, subprocess.Popen[bytes]] = {}
    tokens_folder(folder).mkdir()
    try:
        for name in names:
            workers[name] = _start_worker(folder, name, agents)
        yield workers
    finally:
        _end_workers(workers)


def _start_worker(folder: Path, name: str, agents: Sequence[str]) -> subprocess.Popen[bytes]:
    kept = {each: value for each, value in os.environ.items() if not each.startswith("HOLDFAST_")}
    # The workers run in another folder, so the path of the packages is absolute.
    path = os.pathsep.join([PACKAGES, kept.get("PYTHONPATH", "")])
    options = ["--name", name, "--concurrency", "1", "--lease", f"{LEASE}s"]
    options += [part for agent in agents for part in ("--agent", agent)]
    with (folder / HOME / f"{name}.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "holdfast", "worker", *options],
            cwd=folder,
            env=kept | {"PYTHONPATH": path, "KEEP_TOKENS": str(tokens_folder(folder))},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C reaches only the demonstration, which then stops the workers.
            start_new_session=True,
        )


def tokens_folder(folder: Path) -> Path:
    """The folder in which the developer agent of the demonstration leaves its attempt tokens."""
    return folder / HOME / "tokens"


def _end_workers(workers: Workers) -> None:
    """Stop the workers: first let their steps finish, then give the steps back, then kill."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in DEMO_SIGNALS}
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


class WorkerKill:
    """Kills the worker that runs `KILLED_STEP`, once the step has written to its log."""

    def __init__(self, service: Service, run_id: str, workers: Workers) -> None:
        self._service = service
        self._run_id = run_id
        self._workers = workers
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="accident", daemon=True)
        self.task: str | None = None
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._left.wait(LOOK_EVERY):
            if all(process.poll() is not None for process in self._workers.values()):
                self._cancel_run()
                return
            if self.task is None:
                self._check_tasks()

    def _cancel_run(self) -> None:
        left = f"No worker is left, so the run is cancelled; {HOME}/worker-….log says more."
        self.lines = [*self.lines, left]
        # A run that has just ended refuses to be cancelled.
        with suppress(Refused):
            self._service.commands.cancel(self._run_id)

    def _check_tasks(self) -> None:
        run = self._service.queries.run(self._run_id)
        names = name_steps(run["tasks"])
        for task in self._tasks_under_way(run):
            if names[task["id"]] == KILLED_STEP:
                self._kill_worker_of(task)

    def _tasks_under_way(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        """The running tasks with a log line, once all workers are live and one can take over."""
        if len(self._service.queries.workers()["items"]) < len(self._workers):
            return []
        written = self._service.read_last_lines(run)
        return [task for task in run["tasks"] if task["id"] in written and "lease" in task]

    def _kill_worker_of(self, task: dict[str, Any]) -> None:
        victim = str(task["lease"]["owner"])
        process = self._workers[victim]
        process.kill()
        process.wait()
        self.task = task["id"]
        self.lines = [
            paint(
                f"kill -9 {process.pid}: {victim} dies in the middle of {KILLED_STEP}.", "yellow"
            ),
            f"Its lease runs out within {LEASE} seconds; then the other one takes the step up.",
        ]


def demonstrate() -> int:
    """Run the demonstration in a new folder, which is kept for a look at its store."""
    # These signals would end the program at once, but the workers must be stopped first.
    for number in DEMO_SIGNALS:
        signal.signal(number, signal.default_int_handler)
    elsewhere = [each for each in ("HOLDFAST_DB", "HOLDFAST_HOME") if os.environ.pop(each, None)]
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        return _run_demo(folder, elsewhere)
    except KeyboardInterrupt:
        print_note(f"\nLeft as it is, in {folder}.")
        return INTERRUPTED


def _run_demo(folder: Path, elsewhere: Sequence[str]) -> int:
    began = time.monotonic()
    home = folder / HOME
    place = StoreLocation(url=f"sqlite:///{home / STORE_FILE}", home=home, may_be_created=True)
    place.make_folder()
    make_repository(folder, home)
    chosen_store.set(str(home / STORE_FILE))
    workflow = read_workflow_file(folder / WORKFLOW)
    agents = wanted_agents(workflow)
    print_line(
        f"Four scripted agents build a feature in the git repository {folder}, story by story."
    )
    print_line(
        f"A verifier sends one story back. {len(WORKERS)} workers take turns, and one of them will "
        "be killed while it works.\n"
    )
    with serve_location(place) as service:
        given = {"task": TASK, "repo": str(folder)}
        run_id = service.commands.start(NewRun(workflow=workflow, input=given))["id"]
        with (
            running_workers(folder, WORKERS, agents) as workers,
            WorkerKill(service, run_id, workers) as worker_kill,
        ):
            code = watch_run(service, run_id, extra_lines=lambda: worker_kill.lines, advises=False)
        if code == INTERRUPTED:
            served = " ".join(f"--agent {agent}" for agent in agents)
            print_note(f"Go on: cd {folder} && holdfast worker {served}")
        if code:
            return code
        run = service.queries.run(run_id)
        ended = _print_report(service, run, worker_kill, folder)
    took = time.monotonic() - began
    print_line(
        f"\nAll of this took {took:.0f} seconds; what `make` had set up before is not counted."
    )
    _print_next(folder, elsewhere)
    return ended


def make_repository(folder: Path, home: Path) -> None:
    """Make a git repository of the example, with one commit."""
    git = Git.find(home)
    source = next(each for each in SOURCES if each.is_dir())
    shutil.copytree(source, folder, dirs_exist_ok=True)
    for words in (
        ("init", "--quiet", f"--initial-branch={BRANCH}"),
        ("add", "."),
        (*_AUTHOR, "commit", "--quiet", "--no-gpg-sign", "--message", "The shop"),
    ):
        subprocess.run([git.program, *words], cwd=folder, check=True)  # noqa: S603 - git itself


def _print_graph(folder: Path, home: Path) -> None:
    """Print the commits of the repository as git draws them."""
    git = Git.find(home)
    words = ("log", "--graph", "--format=%h %s%d", BRANCH)
    drawn = subprocess.run(  # noqa: S603 - git itself
        [git.program, "--no-pager", *words], cwd=folder, check=True, capture_output=True, text=True
    )
    print_line(f"\n{paint(f'The commits of {BRANCH}', 'bold')}")
    for line in drawn.stdout.splitlines():
        print_line(f"  {escape(line.rstrip())}")


def _print_report(service: Service, run: View, worker_kill: WorkerKill, folder: Path) -> int:
    print_line(f"\n{paint('What happened', 'bold')}")
    names = name_steps(run["tasks"])
    for task in run["tasks"]:
        if task.get("feedback"):
            print_line(f"  {names[task['id']]}  was sent back: {one_line(task['feedback'])}")
    refused = worker_kill.task is not None and _print_lost(service, worker_kill.task, folder)
    diagnosis = service.doctor()
    found = "all hold" if diagnosis["ok"] else f"not all hold: {with_store('holdfast doctor')}"
    print_line(
        f"  doctor  {format_count(len(diagnosis['checks']), 'invariant')} of the store, {found}"
    )
    _print_graph(folder, folder / HOME)
    return 0 if refused and diagnosis["ok"] else 1


def _print_lost(service: Service, task_id: str, folder: Path) -> bool:
    """Print the attempts of the killed step, and return whether a late report is refused."""
    first, *_ = attempts = service.queries.attempts(task_id)
    for each in attempts:
        told = f"attempt {each['attempt']} by {each['owner']}: {each['outcome']}"
        print_line(f"  {KILLED_STEP}  {told}")
    token = (tokens_folder(folder) / f"{task_id}.1").read_text(encoding="utf-8").strip()
    print_line(f"  {first['owner']}  wakes up after all, and reports what it had:")
    try:
        service.protocol.complete(task_id, token, {"change": "too late"})
    except Refused as refused:
        print_line(f"    refused, {refused.reason}: {refused.detail}")
        return True
    print_line("    taken, and it should not have been")
    return False


def _print_next(folder: Path, elsewhere: Sequence[str]) -> None:
    chosen_store.set(None)
    print_line(f"\n{paint('Look around', 'bold')}")
    unknown = [] if shutil.which("holdfast") else [(f"alias holdfast='{_program_command()}'", "")]
    for command, purpose in (
        *unknown,
        *_unset_command(elsewhere),
        (f"cd {folder}", "the repository, with the workflow, its agents and the store"),
        (with_store("holdfast diff @last"), "what the run has changed"),
        (with_store(f"holdfast show @last:{KILLED_STEP}"), "the step that was lost"),
        (with_store("holdfast up"), "the page, with the run on it"),
    ):
        print_line(f"  {command:<48}  {paint(purpose, 'dim')}".rstrip())


def _unset_command(elsewhere: Sequence[str]) -> list[tuple[str, str]]:
    """What lets a store or home that the environment names not win over that of the folder."""
    return [(f"unset {' '.join(elsewhere)}", "")] if elsewhere else []


def _program_command() -> str:
    """The command that starts this program where the shell does not find `holdfast`."""
    program = Path(sys.argv[0]).absolute()
    return str(program) if program.name == "holdfast" else f"{sys.executable} -m holdfast"
