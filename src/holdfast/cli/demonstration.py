"""What `holdfast demo` shows: agents build a feature, and one of their workers is killed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from holdfast.cli.accident import ENDING, SCENE, Accident, tokens_in, working
from holdfast.cli.beside import INTERRUPTED
from holdfast.cli.helping import wanted_agents
from holdfast.cli.live import watch
from holdfast.cli.session import chosen_store, serving, with_store
from holdfast.cli.terminal import note, paint, say
from holdfast.cli.words import count, one_line
from holdfast.definition.workflow_file import read_workflow_file
from holdfast.model.run import NewRun
from holdfast.service.commands.request_errors import Refused
from holdfast.service.project.project import FILE, Place
from holdfast.service.queries.run_tree import step_names
from holdfast.service.queries.views import View
from holdfast.service.service import Service
from holdfast.worker.files.homes import HOME

WORKFLOW = "feature.yaml"
TASK = "Add SSO"
WORKERS = ("worker-1", "worker-2")
# In the package beside this, in a clone among the examples.
SOURCES = (Path(__file__).parent / "feature", Path(__file__).parents[3] / "examples" / "feature")


def demonstrate() -> int:
    """Show it in a folder of its own, which stays: there is something to look at."""
    # A signal that would be the end at once: there are workers to stop first.
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        return _show(folder)
    except KeyboardInterrupt:
        note(f"\nLeft as it is, in {folder}.")
        return INTERRUPTED


def _show(folder: Path) -> int:
    source = next(each for each in SOURCES if each.is_dir())
    shutil.copytree(source, folder, dirs_exist_ok=True)
    home = folder / HOME
    place = Place(url=f"sqlite:///{home / FILE}", home=home, settled=True)
    place.make()
    chosen_store.set(str(home / FILE))
    workflow = read_workflow_file(folder / WORKFLOW)
    agents = wanted_agents(workflow)
    say("Four scripted agents build a feature, story by story; a verifier sends one story back.")
    say(f"{len(WORKERS)} workers take turns, and one of them will be killed while it works.\n")
    with serving(place) as service:
        run_id = service.commands.start(NewRun(workflow=workflow, input={"task": TASK}))["id"]
        with (
            working(folder, WORKERS, agents) as workers,
            Accident(service, run_id, workers) as accident,
        ):
            code = watch(service, run_id, aside=lambda: accident.told)
        if code == INTERRUPTED:
            served = " ".join(f"--agent {agent}" for agent in agents)
            note(f"Go on: cd {folder} && holdfast worker {served}")
        return code or _report(service, service.queries.run(run_id), accident, folder)


def _report(service: Service, run: View, accident: Accident, folder: Path) -> int:
    say(f"\n{paint('What happened', 'bold')}")
    names = step_names(run["tasks"])
    for task in run["tasks"]:
        if task.get("feedback"):
            say(f"  {names[task['id']]}  was sent back: {one_line(task['feedback'])}")
    refused = accident.task is not None and _say_lost(service, accident.task, folder)
    diagnosis = service.doctor()
    found = "all hold" if diagnosis["ok"] else f"not all hold: {with_store('holdfast doctor')}"
    say(f"  doctor  {count(len(diagnosis['checks']), 'invariant')} of the store, {found}")
    say(f"\n{paint('Result', 'bold')}  {one_line(run['output'])}")
    _say_next(folder)
    return 0 if refused and diagnosis["ok"] else 1


def _say_lost(service: Service, task_id: str, folder: Path) -> bool:
    """Tell of the attempt that was lost, and whether a late report of it is refused."""
    first, *_ = attempts = service.queries.attempts(task_id)
    for each in attempts:
        told = f"attempt {each['attempt']} by {each['owner']}: {each['outcome']}"
        say(f"  {SCENE}  {told}")
    token = (tokens_in(folder) / f"{task_id}.1").read_text(encoding="utf-8").strip()
    say(f"  {first['owner']}  wakes up after all, and reports what it had:")
    try:
        service.protocol.complete(task_id, token, {"change": "too late"})
    except Refused as refused:
        say(f"    refused, {refused.reason}: {refused.detail}")
        return True
    say("    taken, and it should not have been")
    return False


def _say_next(folder: Path) -> None:
    # A store that the environment names would come before the one of the folder.
    elsewhere = {"HOLDFAST_DB", "HOLDFAST_HOME"} & os.environ.keys()
    chosen_store.set(f"{HOME}/{FILE}" if elsewhere else None)
    say(f"\n{paint('Look around', 'bold')}")
    unknown = [] if shutil.which("holdfast") else [(f"alias holdfast='{_called()}'", "")]
    for command, purpose in (
        *unknown,
        (f"cd {folder}", "the workflow, its agents and the store"),
        (with_store("holdfast show"), "the run"),
        (with_store(f"holdfast show @last:{SCENE}"), "the step that was lost"),
        (with_store("holdfast why @last"), "how a run stands"),
        (with_store("holdfast events @last"), "all that happened, in order"),
        (with_store(f"holdfast run {WORKFLOW} -i task=SSO --wait"), "again; nobody is killed"),
    ):
        say(f"  {command:<48}  {paint(purpose, 'dim')}".rstrip())


def _called() -> str:
    """What runs this program where the shell would not find it by its name."""
    program = Path(sys.argv[0]).absolute()
    return str(program) if program.name == "holdfast" else f"{sys.executable} -m holdfast"
