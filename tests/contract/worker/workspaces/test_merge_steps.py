"""Merge steps: runs into branches, and items into the line around them."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import engine_of
from holdfast.service.protocol.changes import change_of_run
from tests.contract.worker.git.repositories import commit_files, head, run, save, show, tree, write
from tests.contract.worker.workspaces.workspace_runs import HEADING, WorkspaceRuns
from tests.race.racers import eventually

EDIT = "  - {id: one, run: [sh, -c, 'echo two > a.txt; echo new > b.txt']}\n"


@pytest.mark.parametrize("strategy", ["merge", "squash", "rebase"])
def test_a_run_is_merged_and_its_clean_checkout_moves_along(
    runs: WorkspaceRuns, strategy: str
) -> None:
    ended = runs.end(f"{EDIT}  - {{id: merge, merge: {{into: main, strategy: {strategy}}}}}\n")
    assert ended.status == "completed", runs.tell(ended)
    output = runs.task(ended, "merge").output
    assert head(runs.path, "main") == output["commit"]
    assert (runs.path / "b.txt").read_text() == "new\n"
    assert run(runs.path, "status", "--porcelain") == ""
    parents = run(runs.path, "log", "-1", "--format=%P", "main").split()
    assert len(parents) == (2 if strategy == "merge" else 1)
    assert head(runs.path, f"{output['commit']}^") == runs.base


def test_a_run_is_merged_on_top_of_what_came_into_the_branch_meanwhile(runs: WorkspaceRuns) -> None:
    moved = commit_files(runs.path, runs.base, {"theirs.txt": "theirs\n"})
    ended = runs.end(
        f"""{EDIT}
  - {{id: move, run: [git, -C, {runs.path}, update-ref, refs/heads/main, {moved}], workspace: none}}
  - {{id: reset, run: [git, -C, {runs.path}, reset, -q, --hard], workspace: none}}
  - {{id: merge, merge: main}}
"""
    )
    assert ended.status == "completed", runs.tell(ended)
    assert tree(runs.path, "main") == ["a.txt", "b.txt", "folder/b.txt", "theirs.txt"]


def test_a_merge_into_a_checkout_with_changes_fails_in_words_and_can_be_retried(
    runs: WorkspaceRuns,
) -> None:
    write(runs.path, {"a.txt": "mine\n"})
    ended = runs.end(f"{EDIT}  - {{id: merge, merge: main}}\n")
    task = runs.task(ended, "merge")
    assert (task.status, task.attempt) == ("failed", 1)
    assert f"main is checked out in {runs.path}, with changes in: a.txt" in task.error["message"]
    assert (runs.path / "a.txt").read_text() == "mine\n"
    assert head(runs.path, "main") == runs.base
    run(runs.path, "checkout", "-q", "a.txt")
    runs.hf.runs.retry(ended.id)
    ended = runs.wait(ended)
    assert ended.status == "completed", runs.tell(ended)
    assert (runs.path / "a.txt").read_text() == "two\n"


def test_a_conflict_with_the_branch_fails_with_its_hunks(runs: WorkspaceRuns) -> None:
    write(runs.path, {"a.txt": "theirs\n"})
    ended = runs.end(
        f"""{EDIT}
  - {{id: commit, run: [git, -C, {runs.path}, commit, -q, -a, -m, Theirs], workspace: none}}
  - {{id: merge, merge: main}}
"""
    )
    task = runs.task(ended, "merge")
    assert (task.status, task.attempt) == ("failed", 1)
    assert "conflict in a.txt" in task.error["message"]
    assert "theirs\n=======\ntwo" in task.error["message"]


@pytest.mark.parametrize("name", ["missing", "-d", "a..b"])
def test_a_branch_that_cannot_be_merged_into_is_told(runs: WorkspaceRuns, name: str) -> None:
    heading = HEADING.replace("{repo: string}", "{repo: string, into: string}")
    step = "  - {id: merge, merge: {into: '{{ input.into }}'}}\n"
    ended = runs.end(EDIT + step, heading, into=name)
    task = runs.task(ended, "merge")
    assert (task.status, task.attempt) == ("failed", 1)
    assert "there is no branch" in task.error["message"] or "no name" in task.error["message"]


def test_a_branch_is_left_for_a_person(runs: WorkspaceRuns) -> None:
    ended = runs.end(f"{EDIT}  - {{id: merge, merge: leave}}\n")
    assert ended.status == "completed", runs.tell(ended)
    assert runs.task(ended, "merge").output["branch"] == runs.branch(ended)
    assert head(runs.path, "main") == runs.base


LOOP = HEADING.replace("{repo: string}", "{repo: string, items: [string]}")
THREE = ["one", "two", "three"]
LATER = """
  - {id: wait, approval: Go on?}
  - {id: last, run: [sh, -c, 'echo x > x.txt']}
"""
ITEMS = """
  - id: build
    for_each: "{{ input.items }}"
    parallel: 3
    steps:
      - {id: implement, run: [sh, -c, '%s', '{{ item }}', '{{ feedback }}']}
"""


def test_parallel_items_are_merged_in_their_order(runs: WorkspaceRuns) -> None:
    steps = ITEMS % "echo $0 > $0.txt; ls" + "  - {id: merge, merge: main}\n"
    ended = runs.end(steps, LOOP, items=THREE)
    assert ended.status == "completed", runs.tell(ended)
    assert tree(runs.path, "main") == ["a.txt", "folder/b.txt", "one.txt", "three.txt", "two.txt"]
    change = change_of_run(engine_of(runs.hf), runs.state, ended.id)
    assert [each["path"] for each in change["files"]] == ["one.txt", "three.txt", "two.txt"]
    order = run(runs.path, "log", "--first-parent", "--reverse", "--format=%H", runs.branch(ended))
    firsts = [tree(runs.path, each) for each in order.split("\n")[1:]]
    assert [len(each) for each in firsts] == [3, 4, 5]
    assert "one.txt" in firsts[0]
    assert "three.txt" in firsts[2]


def test_a_conflict_of_parallel_items_becomes_feedback_and_the_result_holds_all_of_them(
    runs: WorkspaceRuns,
) -> None:
    folder = runs.world.folder
    meet = "; ".join(
        f"until [ -e {folder}/{each} ]; do sleep 0.02; done" for each in ("one", "two")
    )
    script = f"touch {folder}/$0; {meet}; echo $0 >> a.txt; echo $1 | head -c 100 > $0.note"
    ended = runs.end(ITEMS % script, LOOP, items=THREE)
    assert ended.status == "completed", runs.tell(ended)
    said = show(runs.path, runs.branch(ended), "a.txt").split("\n")
    assert sorted(said) == ["one", "one", "three", "two"]
    notes = "".join(
        show(runs.path, runs.branch(ended), f"{each}.note") for each in ("two", "three")
    )
    assert "conflict in a.txt" in notes
    run(runs.path, "fsck", "--strict")


def test_a_branch_that_is_checked_out_with_changes_does_not_follow_and_the_run_goes_on(
    runs: WorkspaceRuns,
) -> None:
    started = runs.start(EDIT + LATER)
    assert eventually(lambda: runs.task(started, "one").status == "done")
    assert eventually(lambda: runs.branch_has_followed(started))
    branch = runs.branch(started)
    run(runs.path, "checkout", "--quiet", branch)
    before = head(runs.path)
    write(runs.path, {"a.txt": "mine\n"})
    runs.hf.approve(runs.task(started, "wait").id)
    ended = runs.wait(started, followed=False)
    assert ended.status == "completed", runs.tell(ended)
    assert head(runs.path, branch) == before
    assert (runs.path / "a.txt").read_text() == "mine\n"


def test_the_branch_that_is_checked_out_clean_follows(runs: WorkspaceRuns) -> None:
    started = runs.start(EDIT + LATER)
    assert eventually(lambda: runs.task(started, "one").status == "done")
    assert eventually(lambda: runs.branch_has_followed(started))
    run(runs.path, "checkout", "--quiet", runs.branch(started))
    runs.hf.approve(runs.task(started, "wait").id)
    runs.wait(started)
    assert (runs.path / "x.txt").read_text() == "x\n"
    assert run(runs.path, "status", "--porcelain") == ""


def test_a_run_on_a_url_is_pushed_and_merged_there(runs: WorkspaceRuns) -> None:
    run(runs.world.folder, "clone", "--quiet", "--bare", str(runs.path), "remote.git")
    remote = runs.world.folder / "remote.git"
    ended = runs.end(f"{EDIT}  - {{id: merge, merge: main}}\n", repo=f"file://{remote}")
    assert ended.status == "completed", runs.tell(ended)
    assert show(remote, "main", "b.txt") == "new"
    branches = run(remote, "branch", "--format=%(refname:short)", "--list", "holdfast/*")
    assert head(remote, branches) == runs.task(ended, "one").output["commit"]
    assert save(runs.path, "Untouched") != head(remote, "main")


def test_twenty_parallel_items_land_in_their_order_each_once(runs: WorkspaceRuns) -> None:
    items = [f"item{number:02}" for number in range(20)]
    steps = ITEMS.replace("parallel: 3", "parallel: 20") % "echo $0 > $0.txt; echo $0 >> log-$0"
    ended = runs.end(steps + "  - {id: merge, merge: main}\n", LOOP, items=items)
    assert ended.status == "completed", runs.tell(ended)
    added = {f"{each}.txt" for each in items} | {f"log-{each}" for each in items}
    assert set(tree(runs.path, "main")) == {"a.txt", "folder/b.txt"} | added
    order = run(runs.path, "log", "--first-parent", "--reverse", "--format=%H", runs.branch(ended))
    landed = [len(tree(runs.path, each)) for each in order.split("\n")]
    assert landed == list(range(2, 43, 2))
    for number, each in enumerate(order.split("\n")[1:]):
        assert f"item{number:02}.txt" in tree(runs.path, each)
    assert all(each.attempt <= 1 for each in runs.hf.runs.tasks(ended.id))
    run(runs.path, "fsck", "--strict")
