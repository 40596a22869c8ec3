"""Commits: what an attempt left becomes one commit, without what does not belong into it."""

from __future__ import annotations

import os
import subprocess

import pytest

from holdfast.errors import WorkspaceUnusable
from holdfast.worker.git.commits import (
    AttemptWorktree,
    CommitMessage,
    CommitRules,
    LeftWork,
    commit_abandoned_work,
    commit_left_work,
)
from holdfast.worker.git.worktrees import add_worktree
from tests.contract.worker.git.repositories import World, head, run, save, show, tree, write

BRANCH = "holdfast-attempts/t_1.1"
MESSAGE = CommitMessage(
    subject="Login form", trailers={"Holdfast-Run": "r_1", "Holdfast-Attempt": "1\nX: y"}
)


class Attempt:
    def __init__(self, world: World) -> None:
        self.repository = world.repository()
        write(self.repository, {".gitignore": "cache/\n"})
        self.start = save(self.repository, "Ignore")
        self.world = world
        self.path = world.folder / "work/w1"
        add_worktree(world.open(self.repository), self.path, self.start, branch=BRANCH)

    def commit(self, rules: CommitRules | None = None) -> LeftWork:
        attempt = AttemptWorktree(path=self.path, start=self.start, branch=BRANCH)
        return commit_left_work(self.world.open(self.repository), attempt, MESSAGE, rules)

    def put_off(self, name: str) -> None:
        (self.repository / ".git/worktrees/w1" / name).write_text(f"{self.start}\n")


@pytest.fixture
def attempt(world: World) -> Attempt:
    return Attempt(world)


def test_changed_new_and_removed_files_are_committed_on_the_branch_of_the_attempt(
    attempt: Attempt,
) -> None:
    write(attempt.path, {"a.txt": "two\n", "new/ü file.txt": "new\n", "cache/x": "ignored\n"})
    (attempt.path / "folder/b.txt").unlink()
    left = attempt.commit()
    assert left.changed
    assert head(attempt.repository, BRANCH) == head(attempt.path) == left.commit
    assert tree(attempt.repository, left.commit) == [
        ".gitignore",
        "a.txt",
        '"new/\\303\\274 file.txt"',
    ]
    assert run(attempt.path, "status", "--porcelain") == ""
    assert run(attempt.path, "log", "-1", "--format=%P %an %ae %s", left.commit) == (
        f"{attempt.start} Ann ann@example.org Login form"
    )
    trailers = run(attempt.path, "log", "-1", "--format=%(trailers:only)", left.commit)
    assert trailers == "Holdfast-Run: r_1\nHoldfast-Attempt: 1 X: y"


def test_no_change_is_no_commit(attempt: Attempt) -> None:
    (attempt.path / "a.txt").touch()
    left = attempt.commit()
    assert (left.changed, left.commit) == (False, attempt.start)


def test_a_change_that_was_taken_back_is_no_change(attempt: Attempt) -> None:
    write(attempt.path, {"a.txt": "two\n"})
    save(attempt.path, "There")
    write(attempt.path, {"a.txt": "one\n"})
    left = attempt.commit()
    assert (left.changed, left.commit, left.own_commits) == (False, attempt.start, 1)


def test_commits_of_the_attempt_itself_count_and_the_rest_comes_on_top(attempt: Attempt) -> None:
    write(attempt.path, {"a.txt": "two\n"})
    own = save(attempt.path, "The agent's own")
    assert attempt.commit().commit == own
    write(attempt.path, {"a.txt": "three\n"})
    left = attempt.commit()
    assert head(attempt.path, f"{left.commit}^") == own
    assert left.own_commits == 1


def test_copied_files_files_of_agents_and_large_files_are_left_out(attempt: Attempt) -> None:
    names = [
        ".env",
        "conf/local.ini",
        ".aider.chat.history.md",
        "sub/.aider.tags.cache.v4/x",
    ]
    write(attempt.path, dict.fromkeys(names, "x\n") | {"kept.txt": "kept\n"})
    write(attempt.path, {"large.bin": b"\0" * 2000, "a.txt": "x" * 2000})
    run(attempt.path, "add", "--force", ".env", "large.bin", ".aider.chat.history.md")
    rules = CommitRules(left_out=[".env"], left_out_globs=["conf/*.ini"], largest_file=1000)
    left = attempt.commit(rules)
    assert tree(attempt.repository, left.commit) == [
        ".gitignore",
        "a.txt",
        "folder/b.txt",
        "kept.txt",
    ]
    assert show(attempt.repository, left.commit, "a.txt") == "one"
    assert left.too_large == ("a.txt", "large.bin")
    assert (attempt.path / "large.bin").exists()


def test_a_file_that_the_repository_has_is_committed_although_a_glob_of_copy_matches_it(
    attempt: Attempt,
) -> None:
    write(attempt.path, {"a.txt": "two\n"})
    left = attempt.commit(CommitRules(left_out=["a.txt"], left_out_globs=["*.txt"]))
    assert show(attempt.repository, left.commit, "a.txt") == "two"


def test_a_nested_repository_is_left_out_and_named(attempt: Attempt) -> None:
    run(attempt.path, "init", "--quiet", "nested")
    write(attempt.path, {"nested/x.txt": "x\n", "y.txt": "y\n"})
    save(attempt.path / "nested", "Nested")
    left = attempt.commit()
    assert left.nested == ("nested/",)
    assert "y.txt" in tree(attempt.repository, left.commit)
    assert "nested" not in tree(attempt.repository, left.commit)


def test_a_folder_that_became_a_file_and_links_are_committed_as_they_are(attempt: Attempt) -> None:
    (attempt.path / "folder/b.txt").unlink()
    (attempt.path / "folder").rmdir()
    (attempt.path / "folder").symlink_to("/etc")
    (attempt.path / "a.txt").chmod(0o755)
    left = attempt.commit()
    told = run(attempt.repository, "ls-tree", left.commit, "folder", "a.txt")
    assert [line.split()[0] for line in told.split("\n")] == ["100755", "120000"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MERGE_HEAD", "a merge is half way there"),
        ("CHERRY_PICK_HEAD", "a cherry-pick is half way"),
        ("REVERT_HEAD", "git revert --abort"),
        ("BISECT_LOG", "git bisect reset"),
    ],
)
def test_an_operation_half_way_is_told_in_words(attempt: Attempt, name: str, words: str) -> None:
    attempt.put_off(name)
    with pytest.raises(WorkspaceUnusable, match=words):
        attempt.commit()


def test_a_rebase_that_stopped_at_a_conflict_is_told_in_words(attempt: Attempt) -> None:
    write(attempt.repository, {"a.txt": "theirs\n"})
    save(attempt.repository, "Theirs")
    write(attempt.path, {"a.txt": "ours\n"})
    save(attempt.path, "Ours")
    run(attempt.path, "rebase", "main", code=1)
    with pytest.raises(WorkspaceUnusable, match="a rebase is half way"):
        attempt.commit()


def test_another_branch_a_foreign_commit_and_left_conflicts_are_told_in_words(
    attempt: Attempt,
) -> None:
    run(attempt.path, "checkout", "--quiet", "-b", "elsewhere")
    with pytest.raises(WorkspaceUnusable, match="left it for the branch elsewhere"):
        attempt.commit()
    run(attempt.path, "checkout", "--quiet", BRANCH)
    run(attempt.path, "reset", "--quiet", "--hard", "HEAD^")
    with pytest.raises(WorkspaceUnusable, match="does not come from"):
        attempt.commit()


def test_conflicts_in_the_index_are_told_with_their_files(attempt: Attempt) -> None:
    blobs = [run(attempt.path, "rev-parse", f"HEAD:{name}") for name in ("a.txt", "folder/b.txt")]
    stages = "".join(f"100644 {blob} {stage}\tc.txt\n" for stage, blob in enumerate(blobs, 2))
    (attempt.path.parent / "stages").write_text(stages)
    with (attempt.path.parent / "stages").open() as given:
        subprocess.run(
            ["git", "update-index", "--index-info"], cwd=attempt.path, stdin=given, check=True
        )
    with pytest.raises(WorkspaceUnusable, match=r"conflicts are left in c\.txt"):
        attempt.commit()


def test_a_commit_waits_for_no_signature_and_for_no_name(world: World, attempt: Attempt) -> None:
    waits = world.folder / "waits.sh"
    waits.write_text("#!/bin/sh\nsleep 60\n")
    waits.chmod(0o755)
    world.settings.write_text(
        f"[user]\n\tuseConfigOnly = true\n[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {waits}\n"
    )
    write(attempt.path, {"a.txt": "two\n"})
    left = attempt.commit()
    assert left.identity.assumed
    assert run(attempt.path, "log", "-1", "--format=%an <%ae> %cn", left.commit) == (
        "Holdfast <holdfast@localhost> Holdfast"
    )


def test_an_agent_that_exchanged_the_git_folder_is_told_in_words(attempt: Attempt) -> None:
    (attempt.path / ".git").unlink()
    with pytest.raises(WorkspaceUnusable, match="is no worktree"):
        attempt.commit()


def test_a_subject_is_one_line() -> None:
    assert CommitMessage(subject="a\n\nb" * 100).text.count("\n") == 1


@pytest.mark.parametrize("state", ["changed", "merging", "elsewhere", "rewritten", "locked"])
def test_what_a_lost_attempt_left_is_committed_aside_however_it_left_it(
    world: World, attempt: Attempt, state: str
) -> None:
    write(attempt.path, {"left.txt": "left\n"})
    if state == "merging":
        write(attempt.repository, {"a.txt": "theirs\n"})
        save(attempt.repository, "Theirs")
        write(attempt.path, {"a.txt": "ours\n"})
        save(attempt.path, "Ours")
        run(attempt.path, "merge", "main", code=1)
    elif state == "elsewhere":
        run(attempt.path, "checkout", "--quiet", "-b", "elsewhere")
    elif state == "rewritten":
        run(attempt.path, "reset", "--quiet", "HEAD^")
    elif state == "locked":
        attempt.put_off("index.lock")
    before = run(attempt.repository, "for-each-ref")
    lost = AttemptWorktree(path=attempt.path, start=attempt.start, branch=BRANCH)
    left = commit_abandoned_work(world.open(attempt.repository), lost, MESSAGE)
    assert left is not None
    assert show(attempt.repository, left, "left.txt") == "left"
    if state == "merging":
        assert "<<<<<<<" in show(attempt.repository, left, "a.txt")
    assert run(attempt.repository, "for-each-ref") == before


def test_a_lost_attempt_that_changed_nothing_leaves_nothing(world: World, attempt: Attempt) -> None:
    lost = AttemptWorktree(path=attempt.path, start=attempt.start, branch=BRANCH)
    assert commit_abandoned_work(world.open(attempt.repository), lost, MESSAGE) is None


def test_an_index_that_the_agents_git_has_split_is_read(attempt: Attempt) -> None:
    run(attempt.path, "update-index", "--split-index")
    write(attempt.path, {"a.txt": "two\n"})
    run(attempt.path, "add", "a.txt")
    left = attempt.commit()
    assert show(attempt.repository, left.commit, "a.txt") == "two"
    assert run(attempt.path, "status", "--porcelain") == ""


def test_a_file_with_the_name_of_a_copied_one_elsewhere_is_committed(attempt: Attempt) -> None:
    names = [".env", "sub/.env", "[id].env", "conf/x.ini", "more/conf/x.ini", "any/deep/x.key"]
    write(attempt.path, dict.fromkeys(names, "x\n"))
    globs = ["conf/*.ini", "any/**/*.key"]
    left = attempt.commit(CommitRules(left_out=[".env", "[id].env"], left_out_globs=globs))
    new = set(tree(attempt.repository, left.commit)) - set(tree(attempt.repository, attempt.start))
    assert new == {"sub/.env", "more/conf/x.ini"}


@pytest.mark.parametrize("mark", ["assume-unchanged", "skip-worktree"])
def test_a_change_that_git_was_told_not_to_look_at_is_committed(
    attempt: Attempt, mark: str
) -> None:
    run(attempt.path, "update-index", f"--{mark}", "a.txt")
    write(attempt.path, {"a.txt": "two\n"})
    assert show(attempt.repository, attempt.commit().commit, "a.txt") == "two"


def test_what_a_sparse_checkout_left_out_is_not_removed(attempt: Attempt) -> None:
    run(attempt.path, "sparse-checkout", "set", "--no-cone", "/a.txt")
    assert not (attempt.path / "folder/b.txt").exists()
    write(attempt.path, {"a.txt": "two\n"})
    left = attempt.commit()
    assert tree(attempt.repository, left.commit) == [".gitignore", "a.txt", "folder/b.txt"]
    assert show(attempt.repository, left.commit, "a.txt") == "two"


@pytest.mark.parametrize("kind", ["pipe", "device", "bytes"])
def test_an_agent_that_exchanged_the_git_file_for_anything_is_told(
    attempt: Attempt, kind: str
) -> None:
    link = attempt.path / ".git"
    link.unlink()
    if kind == "pipe":
        os.mkfifo(link)
    elif kind == "device":
        link.symlink_to("/dev/zero")
    else:
        link.write_bytes(b"gitdir: \xff\0\n")
    with pytest.raises(WorkspaceUnusable, match="no worktree"):
        attempt.commit()
