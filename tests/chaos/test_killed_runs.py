"""Runs in a git repository, with all that works at them killed with -9 again and again."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from holdfast import Holdfast
from tests.acceptance.terminals import holdfast
from tests.chaos.killed_workers import (
    WorkerPlace,
    check_nothing_remains,
    find_processes,
    kill_everything,
    kill_with_keepers,
    worker,
)
from tests.contract.worker.git.repositories import World, head, run, save, tree
from tests.contract.worker.workspaces.workspace_runs import WorkspaceRuns
from tests.programs import ROOT
from tests.race.racers import eventually

EXAMPLE = ROOT / "examples/git"
SEEDS, KILLS = 4, 5
# The tasks of an undisturbed run change so often until it is over.
CHANGES = 70
# Longer than what happens between two changes.
DELAY = 0.1
PAGES = ["login", "callback", "logout"]
STORIES = [
    "Merge",
    "Implement Logout button",
    "Implement SAML callback",
    "Implement Login form",
    "Implement Login form",
    "The shop",
]


def kill_worker(_: WorkerPlace, process: BaseProcess) -> None:
    """Kill a worker alone: the keepers of its commands end them."""
    process.kill()
    process.join()


WAYS = [kill_everything, kill_everything, kill_with_keepers, kill_worker]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPlace]:
    folder = tmp_path / "world"
    folder.mkdir()
    place = WorkerPlace(url=f"sqlite:///{folder}/store.db", folder=folder)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    yield place
    kill_everything(place)


def make_shop(world: World) -> Path:
    """The repository of the example, whose agents are quick."""
    path = world.repository("repository", commit=False)
    shutil.copytree(EXAMPLE, path, dirs_exist_ok=True)
    for each in path.glob("agents/*.sh"):
        each.write_text(re.sub(r"sleep [0-9.]+", "sleep 0.02", each.read_text()))
    file = path / "feature.yaml"
    # What `clean` removes is what is kept no longer.
    file.write_text(file.read_text().replace('input.repo }}"}', 'input.repo }}", keep: 1ms}'))
    save(path, "The shop")
    return path


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_run_that_is_killed_again_and_again_ends_with_each_story_once(
    place: WorkerPlace, seed: int
) -> None:
    world, chance = World(place.folder), random.Random(seed)  # noqa: S311 - the same moments each time
    with Holdfast(place.url) as hf:
        runs = WorkspaceRuns(hf, world, place.folder / "home", make_shop(world))
        workflow = hf.workflow_file(runs.path / "feature.yaml")
        started = workflow.start(task="Add single sign-on", repo=str(runs.path))

        def count_changes() -> int:
            return sum(each.version for each in hf.runs.tasks(started.id))

        def comes_to(moment: int) -> bool:
            return eventually(lambda: count_changes() >= moment)

        for moment in sorted(chance.sample(range(count_changes() + 1, CHANGES), KILLS)):
            with worker(place) as process:
                assert comes_to(moment)
                time.sleep(chance.random() * DELAY)
                chance.choice(WAYS)(place, process)
        with worker(place):
            ended = runs.wait(hf.runs.get(started.id))
        assert ended.status == "completed", runs.tell(ended)
        told = runs.subjects("main")
        assert [line.partition(".")[0].split("holdfast/")[0].strip() for line in told] == STORIES
        assert eventually(lambda: not [*find_processes(place)])
        assert head(runs.path, "main") == runs.task(ended, "merge").output["commit"]
        assert {f"pages/{each}.html" for each in PAGES} <= set(tree(runs.path, "main"))
        assert hf.doctor().ok
        typed = holdfast(place.folder, "clean", HOLDFAST_DB=place.url, **place.environment)
        assert typed.returncode == 0, typed.stderr
        assert run(runs.path, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
        assert run(runs.path, "worktree", "list").count("\n") == 0
        check_nothing_remains(runs, f"seed {seed}")
