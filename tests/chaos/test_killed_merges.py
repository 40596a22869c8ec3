"""Workers killed with -9 at every git command and every transaction of a merge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import Holdfast
from tests.chaos.killed_workers import (
    Snapshot,
    WorkerPlace,
    check_nothing_remains,
    deadly_git,
    find_processes,
    worker,
)
from tests.contract.worker.git.repositories import World, commit_files, head, run, tree
from tests.contract.worker.workspaces.workspace_runs import HEADING, WorkspaceRuns
from tests.race.racers import eventually

STEPS = """
  - {id: one, run: [sh, -c, 'echo one > one.txt']}
  - {id: two, run: [sh, -c, 'echo two > two.txt; echo two > a.txt']}
  - {id: wait, approval: Go on?}
  - {id: merge, merge: main}
"""
MOST = 80


class WaitingMerge:
    """A run whose next step is its merge, as often as a test wants to begin there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "world"
        self.folder.mkdir()
        self.place = WorkerPlace(url=f"sqlite:///{self.folder}/store.db", folder=self.folder)
        world = World(self.folder)
        with Holdfast(self.place.url) as hf:
            runs = WorkspaceRuns(hf, world, self.folder / "home")
            self.runs = runs
            with hf.worker(agents=["*"]):
                self.run = runs.start(STEPS, HEADING)
                assert eventually(lambda: runs.task(self.run, "two").status == "done")
                assert eventually(lambda: runs.branch_has_followed(self.run))
                assert eventually(runs.no_worktree_is_lent)
            self.approval = runs.task(self.run, "wait").id
        # The branch has moved on: the merge has to make a commit, and to bring a checkout along.
        commit = commit_files(runs.path, runs.base, {"theirs.txt": "theirs\n"})
        run(runs.path, "merge", "--quiet", "--ff-only", commit)
        self._snapshot = Snapshot(self.folder)

    def begin(self) -> None:
        self._snapshot.restore()
        with Holdfast(self.place.url) as hf:
            hf.approve(self.approval)


@pytest.fixture(scope="module")
def merge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WaitingMerge]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("merge")
        place = WorkerPlace(url="", folder=folder / "world")
        for name, value in place.environment.items():
            patch.setenv(name, value)
        yield WaitingMerge(folder)


def ends_or_dies(merge: WaitingMerge, place: WorkerPlace, commit: int | None = None) -> bool:
    """Have a worker merge; whether it died before the run was over."""
    with Holdfast(merge.place.url) as hf, worker(place, commit) as process:
        assert eventually(lambda: not process.is_alive() or hf.runs.get(merge.run.id).terminal)
        process.join(0.1)
        return not process.is_alive()


@contextmanager
def second_worker(merge: WaitingMerge) -> Iterator[WorkspaceRuns]:
    with Holdfast(merge.place.url, lease=5, recovery=0.1, poll=0.1) as hf:
        merge.runs.hf = hf
        with hf.worker(agents=["*"], name="second"):
            yield merge.runs


def check_merged(merge: WaitingMerge, hint: str) -> None:
    """Another worker ends the run; each change is there once, and nothing else."""
    with second_worker(merge) as runs:
        ended = runs.wait(merge.run)
        assert ended.status == "completed", f"{hint}: {runs.tell(ended)}"
        output = runs.task(ended, "merge").output
        assert head(runs.path, "main") == output["commit"], hint
        told = runs.subjects("main")
        assert sorted(told[1:]) == ["Begin", "Change theirs.txt", "one", "two"], f"{hint}: {told}"
        assert told[0].startswith("Merge "), hint
        assert run(runs.path, "status", "--porcelain") == "", hint
        names = ["a.txt", "folder/b.txt", "one.txt", "theirs.txt", "two.txt"]
        assert tree(runs.path, "main") == names, hint
        check_nothing_remains(runs, hint)


# Two tests, so that they may run at once.
@pytest.mark.parametrize("first", [1, 2])
def test_a_merge_whose_worker_is_killed_before_any_git_command_is_made_once(
    merge: WaitingMerge, first: int
) -> None:
    for number in range(first, MOST, 2):
        merge.begin()
        folder = merge.folder / "deadly"
        programs = deadly_git(folder, f'[ "$number" = {number} ]')
        died = ends_or_dies(merge, replace(merge.place, programs=programs))
        calls = (folder / "calls").read_text().splitlines()
        if not died:
            assert number > len(calls) > 20, "a merge takes more commands"
            check_merged(merge, "undisturbed")
            return
        check_merged(merge, f"killed before git command {number}: {calls[number - 1]}")
    pytest.fail("the merge never ended")


def test_a_merge_whose_worker_is_killed_after_any_of_its_transactions_is_made_once(
    merge: WaitingMerge,
) -> None:
    for number in range(1, MOST):
        merge.begin()
        if not ends_or_dies(merge, merge.place, commit=number):
            assert number > 5, "a merge takes more transactions"
            return
        check_merged(merge, f"killed after transaction {number}")
    pytest.fail("the merge never ended")


@pytest.mark.parametrize(
    "command",
    ["commit-tree", "update-ref --no-deref refs/holdfast", "read-tree -m -u", "merge into"],
)
def test_git_that_outlives_its_worker_in_a_merge_does_no_harm_to_the_next_attempt(
    merge: WaitingMerge, command: str
) -> None:
    merge.begin()
    folder = merge.folder / "deadly"
    go, done = folder / "go", folder / "done"
    deadly = f"""[ ! -e {done} ] && case "$*" in *"{command}"*) true;; *) false;; esac"""
    then = f"touch {done}; until [ -e {go} ]; do sleep 0.02; done"
    assert ends_or_dies(merge, replace(merge.place, programs=deadly_git(folder, deadly, then)))
    with second_worker(merge) as runs:
        # It may have to wait for that git.
        assert eventually(lambda: runs.task(merge.run, "merge").attempt == 2)
        go.touch()
        assert eventually(lambda: not [*find_processes(merge.place)])
    check_merged(merge, command)
