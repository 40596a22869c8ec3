"""Branch moves: a clean checkout moves along, one with changes stands, and a crash is mended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import BranchMoved, CheckoutInTheWay, GitFailed, RepositoryLocked
from holdfast.worker.git import unfinished_work
from holdfast.worker.git.branch_moves import BranchMove, finish_branch_moves, move_branch
from holdfast.worker.git.git_command import Git
from holdfast.worker.git.repository import Repository, open_repository
from tests.contract.worker.git.killed_move import run_killed, write_program
from tests.contract.worker.git.repositories import (
    World,
    commit_files,
    head,
    run,
    save,
    show,
    write,
)

CHANGES: dict[str, str | bytes | None] = {
    "a.txt": "two\n",
    "folder/b.txt": None,
    "folder": "a file now\n",
    "new/deep/c.txt": "c\n",
}


class Move:
    def __init__(self, world: World) -> None:
        self.world = world
        self.path = world.repository()
        self.old = head(self.path)
        self.new = commit_files(self.path, self.old, CHANGES)
        self.move = BranchMove(branch="main", old=self.old, new=self.new)

    def make(self) -> None:
        move_branch(self.world.open(self.path), self.move)

    def finish(self) -> list[str]:
        return [str(each) for each in finish_branch_moves(self.world.open(self.path))]

    def left_files(self) -> list[str]:
        """What no git and no Holdfast may leave beside the index, or among the references."""
        git_dir = self.path / ".git"
        found = [*git_dir.glob("*holdfast*"), *git_dir.rglob("*.lock")]
        found += (self.world.git.home / "unfinished").glob("*")
        return [str(each) for each in found]

    def assert_at(self, commit: str) -> None:
        assert head(self.path, "refs/heads/main") == commit
        assert run(self.path, "status", "--porcelain") == ""
        assert run(self.path, "symbolic-ref", "HEAD") == "refs/heads/main"
        assert self.left_files() == []
        if commit == self.new:
            assert (self.path / "a.txt").read_text() == "two\n"
            assert (self.path / "folder").read_text() == "a file now\n"
            assert (self.path / "new/deep/c.txt").read_text() == "c\n"


@pytest.fixture
def move(world: World) -> Move:
    return Move(world)


def test_a_clean_checkout_moves_along_and_again_is_nothing(move: Move) -> None:
    write(move.path, {"untracked.txt": "mine\n"})
    move.make()
    (move.path / "untracked.txt").unlink()
    move.assert_at(move.new)
    assert "holdfast: merge into main" in run(move.path, "reflog", "-1", "HEAD")
    move.make()
    move.assert_at(move.new)


def test_a_branch_that_is_not_checked_out_moves_alone(move: Move) -> None:
    run(move.path, "checkout", "--quiet", "-b", "topic")
    write(move.path, {"a.txt": "mine\n"})
    move.make()
    assert head(move.path, "main") == move.new
    assert head(move.path, "topic") == move.old
    assert run(move.path, "status", "--porcelain") == " M a.txt"
    assert move.left_files() == []


def test_a_linked_checkout_of_the_branch_moves_along(move: Move) -> None:
    run(move.path, "checkout", "--quiet", "-b", "topic")
    run(move.path, "worktree", "add", "--quiet", "../linked", "main")
    move.make()
    assert run(move.path.parent / "linked", "status", "--porcelain") == ""
    assert (move.path.parent / "linked/a.txt").read_text() == "two\n"
    assert (move.path / "a.txt").read_text() == "one\n"
    assert move.left_files() == []


def test_a_branch_of_a_bare_repository_moves(move: Move) -> None:
    run(move.path, "branch", "kept", move.new)
    run(move.world.folder, "clone", "--quiet", "--bare", str(move.path), "bare.git")
    move_branch(move.world.open(move.world.folder / "bare.git"), move.move)
    assert head(move.world.folder / "bare.git", "main") == move.new


def test_a_moved_branch_is_told_and_nothing_is_touched(move: Move) -> None:
    write(move.path, {"z.txt": "z\n"})
    other = save(move.path, "Meanwhile")
    with pytest.raises(BranchMoved, match="main is at"):
        move.make()
    assert head(move.path) == other
    assert not (move.path / "new").exists()


@pytest.mark.parametrize(
    ("files", "staged", "named"),
    [
        ({"a.txt": "mine\n"}, False, "with changes in: a.txt"),
        ({"a.txt": "mine\n"}, True, "with changes in: a.txt"),
        ({"new/deep/c.txt": "mine\n"}, False, "does not track .*: new/deep/c.txt"),
        ({"new": "mine\n"}, False, "does not track .*: new;"),
        ({"new/deep/c.txt/d": "mine\n"}, False, "does not track .*: new/deep/c.txt/d;"),
        ({"folder/mine": "mine\n"}, False, "does not track .*: folder/mine;"),
        ({"added.txt": "mine\n"}, True, "with changes in: added.txt"),
    ],
)
def test_a_checkout_with_changes_is_named_and_left_as_it_is(
    move: Move, files: dict[str, str | bytes], *, staged: bool, named: str
) -> None:
    write(move.path, files)
    if staged:
        run(move.path, "add", "--all")
    before = run(move.path, "status", "--porcelain")
    with pytest.raises(CheckoutInTheWay, match=named) as refused:
        move.make()
    assert refused.value.checkout == str(move.path)
    assert run(move.path, "status", "--porcelain") == before
    assert head(move.path) == move.old
    assert move.left_files() == []
    run(move.path, "reset", "--quiet", "--hard")
    run(move.path, "clean", "-q", "-f", "-d", "-x")
    move.make()
    move.assert_at(move.new)


def test_a_file_that_git_ignores_is_not_overwritten(move: Move) -> None:
    (move.path / ".git/info/exclude").write_text("new\n")
    write(move.path, {"new/deep/c.txt": "mine\n"})
    with pytest.raises(CheckoutInTheWay, match=r"new/deep/c\.txt"):
        move.make()
    assert (move.path / "new/deep/c.txt").read_text() == "mine\n"


def test_a_checkout_in_the_middle_of_a_merge_or_a_sparse_one_is_left_as_it_is(move: Move) -> None:
    (move.path / ".git/MERGE_HEAD").write_text(f"{move.new}\n")
    with pytest.raises(CheckoutInTheWay, match="in the middle of a merge"):
        move.make()
    (move.path / ".git/MERGE_HEAD").unlink()
    run(move.path, "sparse-checkout", "set", "folder")
    with pytest.raises(CheckoutInTheWay, match="a sparse checkout"):
        move.make()


def test_a_lock_of_another_git_is_respected_and_named(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_work, "LOCK_SECONDS", 0.1)
    for name in ("index.lock", "refs/heads/main.lock"):
        lock = move.path / ".git" / name
        lock.write_text("another's")
        with pytest.raises(RepositoryLocked, match=name):
            move.make()
        assert move.finish() == []
        assert lock.read_text() == "another's"
        lock.unlink()
    move.make()
    move.assert_at(move.new)


def test_a_branch_that_moves_at_the_last_moment_takes_its_checkout_back(move: Move) -> None:
    other = commit_files(move.path, move.old, {"z.txt": "z\n"})
    script = f'case "$*" in *update-ref*) git update-ref refs/heads/main {other};; esac'
    with pytest.raises(BranchMoved):
        move_branch(_with_program(move, script), move.move)
    assert (move.path / "a.txt").read_text() == "one\n"
    assert (move.path / "folder/b.txt").read_text() == "b\n"
    run(move.path, "update-ref", "refs/heads/main", move.old)
    move.assert_at(move.old)


def test_a_move_that_fails_half_way_takes_its_checkout_back(move: Move) -> None:
    script = (
        f'case "$*" in *"-m -u {move.old}"*) git show {move.new}:a.txt > {move.path}/a.txt; '
        f"rm {move.path}/folder/b.txt; exit 128;; esac"
    )
    with pytest.raises(GitFailed, match="read-tree"):
        move_branch(_with_program(move, script), move.move)
    move.assert_at(move.old)


def _with_program(move: Move, script: str) -> Repository:
    program = write_program(move.world.folder, script)
    git = Git(program=program, version=move.world.git.version, home=move.world.git.home)
    return open_repository(git, move.path)


@pytest.mark.parametrize("number", range(14))
def test_a_move_that_is_killed_before_any_git_command_is_finished_or_never_was(
    move: Move, number: int
) -> None:
    script = f'[ "$number" = {number} ] && kill -9 $PPID && exit 1'
    program = write_program(move.world.folder, script)
    killed = run_killed(program, move.world.git.home, move.path, move.old, move.new)
    assert move.finish() == []
    move.assert_at(move.new if head(move.path, "main") == move.new else move.old)
    assert killed or head(move.path, "main") == move.new
    move.make()
    move.assert_at(move.new)
    run(move.path, "fsck", "--strict")


HALF = "git show {new}:a.txt > {path}/a.txt; rm {path}/folder/b.txt; mkdir -p {path}/new"


def _kill_half_way(move: Move) -> None:
    half = HALF.format(new=move.new, path=move.path)
    script = f'case "$*" in *"-m -u {move.old}"*) {half}; kill -9 $PPID; exit 1;; esac'
    program = write_program(move.world.folder, script)
    assert run_killed(program, move.world.git.home, move.path, move.old, move.new)
    assert (move.path / "a.txt").read_text() == "two\n"
    assert (move.path / ".git/index.lock").exists()


def test_a_move_that_is_killed_half_way_is_finished(move: Move) -> None:
    _kill_half_way(move)
    assert move.finish() == []
    move.assert_at(move.new)


@pytest.mark.parametrize("name", ["a.txt", "new/deep/c.txt"])
def test_a_move_that_is_killed_half_way_is_left_where_a_person_has_edited_since(
    move: Move, name: str
) -> None:
    _kill_half_way(move)
    write(move.path, {name: "mine\n"})
    (told,) = move.finish()
    assert "hold something else" in told
    assert name in told
    assert head(move.path, "main") == move.old
    assert (move.path / name).read_text() == "mine\n"
    assert move.left_files() == []
    assert move.finish() == []


def test_a_file_that_the_move_does_not_touch_may_have_been_edited_since(move: Move) -> None:
    write(move.path, {"other.txt": "0\n"})
    move.old = save(move.path, "Other")
    move.new = commit_files(move.path, move.old, CHANGES)
    _kill_half_way(move)
    write(move.path, {"other.txt": "mine\n"})
    assert move.finish() == []
    assert head(move.path, "main") == move.new
    assert run(move.path, "status", "--porcelain") == " M other.txt"
    assert (move.path / "other.txt").read_text() == "mine\n"


def test_a_move_whose_branch_went_elsewhere_after_the_crash_is_told(move: Move) -> None:
    _kill_half_way(move)
    other = commit_files(move.path, move.old, {"z.txt": "z\n"})
    run(move.path, "update-ref", "refs/heads/main", other)
    (told,) = move.finish()
    assert "main is at" in told
    assert head(move.path, "main") == other
    assert move.left_files() == []


def test_the_work_of_a_git_that_outlives_its_killed_process_is_not_taken_for_dead(
    move: Move,
) -> None:
    gate = move.world.folder / "gate"
    os.mkfifo(gate)
    script = f'case "$*" in *update-ref*) kill -9 $PPID; read line < {gate};; esac'
    program = write_program(move.world.folder, script)
    assert run_killed(program, move.world.git.home, move.path, move.old, move.new)
    assert move.finish() == []
    assert (move.path / ".git/index.lock").exists()
    assert head(move.path, "main") == move.old
    gate.write_text("go\n")
    while head(move.path, "main") == move.old or _unfinished(move):
        assert move.finish() == []
    move.assert_at(move.new)


def _unfinished(move: Move) -> list[Path]:
    return list((move.world.git.home / "unfinished").iterdir())


@pytest.mark.parametrize("content", ["ours", "empty", "another's"])
def test_of_locks_at_references_only_those_of_the_dead_are_removed(
    move: Move, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_work, "EMPTY_SECONDS", 0.01)
    lock = move.path / ".git/refs/heads/main.lock"
    written = {"ours": f"{move.new}\n", "empty": "", "another's": f"{move.old}\n"}[content]
    given = move.world.folder / "given"
    given.write_text(written)
    script = f'case "$*" in *update-ref*) cp {given} {lock}; kill -9 $PPID; exit 1;; esac'
    program = write_program(move.world.folder, script)
    assert run_killed(program, move.world.git.home, move.path, move.old, move.new)
    told = move.finish()
    # The program that stands for git may outlive its killer by a moment, and with it the record.
    while _unfinished(move):
        told = move.finish()
    if content == "another's":
        assert "main.lock': File exists" in told[0]
        assert lock.read_text() == written
        lock.unlink()
        move.assert_at(move.old)
    else:
        assert told == []
        move.assert_at(move.new)


def test_the_move_is_as_good_as_a_pull_for_files_with_line_ends(move: Move) -> None:
    write(move.path, {".gitattributes": "*.crlf text eol=crlf\n"})
    move.old = save(move.path, "Attributes")
    move.new = commit_files(move.path, move.old, {"x.crlf": "1\n2\n"})
    move.move = BranchMove(branch="main", old=move.old, new=move.new)
    move.make()
    assert (move.path / "x.crlf").read_bytes() == b"1\r\n2\r\n"
    assert show(move.path, "HEAD", "x.crlf") == "1\n2"
    assert run(move.path, "status", "--porcelain") == ""


def test_another_name_of_a_branch_stays_one_and_the_branch_moves_with_its_checkout(
    move: Move,
) -> None:
    run(move.path, "symbolic-ref", "refs/heads/master", "refs/heads/main")
    move.move = BranchMove(branch="master", old=move.old, new=move.new)
    for _ in range(2):
        move.make()
        move.assert_at(move.new)
        assert run(move.path, "symbolic-ref", "refs/heads/master") == "refs/heads/main"


@pytest.mark.parametrize("mark", ["assume-unchanged", "skip-worktree"])
def test_a_change_that_git_was_told_not_to_look_at_is_not_overwritten(
    move: Move, mark: str
) -> None:
    run(move.path, "update-index", f"--{mark}", "a.txt")
    write(move.path, {"a.txt": "precious\n"})
    with pytest.raises(CheckoutInTheWay):
        move.make()
    assert (move.path / "a.txt").read_text() == "precious\n"
    assert head(move.path, "refs/heads/main") == move.old
    assert move.left_files() == []
