"""What was kept long enough is removed, with the files that it left on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast.engine.engine import Engine
from holdfast.service.project.project import StoreLocation
from holdfast.service.protocol.artifacts import keep_artifact
from holdfast.worker.files.artifacts import is_of_store
from holdfast.worker.files.homes import make_private_directory
from holdfast.worker.files.state_directory import find_state_directory
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import create, finish, start, take


def leave(url: str, kind: str, task: str, age: float, store: str = "") -> Path:
    """A file of a task, in the state directory of a store, that nobody wrote to for so long."""
    folder = make_private_directory(find_state_directory(url).root) / kind / task
    folder.mkdir(parents=True)
    (folder / ".store").write_text(store)
    moment = time.time() - age
    for each in (folder / ".store", folder):
        os.utime(each, (moment, moment))
    return folder


def test_runs_tasks_and_logs_that_were_kept_long_enough_are_shown_and_removed(
    engine: Engine, typed: Typed, url: str, tmp_path: Path
) -> None:
    run, task = start(engine, key="k"), create(engine)
    run.finish("plan", "work", "review")
    engine.tasks.cancel(task)
    (tmp_path / "holdfast.yaml").write_text("keep: {runs: 0.001s, logs: 1d}\n")
    old, new = f"t_{'0' * 20}", f"t_{'1' * 20}"
    for name, age in ((old, 2 * 86_400), (new, 0), ("of-somebody", 2 * 86_400)):
        leave(url, "logs", name, age)
    shown = typed.ok("clean", "--dry-run")
    assert shown.startswith("would remove 1 run, 1 task, the logs of 1 task and the artifacts of 0")
    told = typed.json("clean")
    assert (told["runs"], told["tasks"], told["logs"]) == ([run.id], [task], [old])
    left = {each.name for each in (find_state_directory(url).root / "logs").iterdir()}
    assert left == {new, "of-somebody"}
    said = "removed 0 runs, 0 tasks, the logs of 0 tasks and the artifacts of 0 tasks\n"
    assert typed.ok("clean") == said
    assert "it was completed, and removed 20" in typed.refused(2, "show", run.id)


def test_files_of_what_is_removed_go_too_also_those_that_an_earlier_clean_left(
    engine: Engine, typed: Typed, url: str, tmp_path: Path
) -> None:
    run, task, kept = start(engine), create(engine), create(engine)
    run.finish("plan", "work", "review")
    finish(engine, task)
    (tmp_path / "holdfast.yaml").write_text("keep: {runs: 0.001s, logs: 1d}\n")
    going = [run.steps["plan"], task]
    lost, fresh, foreign = (f"t_{each * 20}" for each in "012")
    for each in (*going, kept, lost):
        leave(url, "artifacts", each, 60, engine.store)
    leave(url, "artifacts", fresh, -60, engine.store)
    leave(url, "artifacts", foreign, 60, "another store in the same place")
    would = typed.json("clean", "--dry-run")
    told = typed.json("clean")
    for each in (would, told):
        assert set(each["artifacts"]) == {*going, lost}
    left = {each.name for each in (find_state_directory(url).root / "artifacts").iterdir()}
    assert left == {kept, fresh, foreign}


def test_an_artifact_says_of_which_store_it_is(engine: Engine, url: str) -> None:
    held = take(engine, create(engine))
    place = StoreLocation(url=url, home=Path(), may_be_created=True)
    keep_artifact(
        engine,
        find_state_directory(place.url),
        (held.task_id, held.token),
        "report.txt",
        b"all is well",
    )
    folder = find_state_directory(place.url).artifacts(held.task_id)
    assert is_of_store(folder, engine.store)
    assert not is_of_store(folder.parent, engine.store)
