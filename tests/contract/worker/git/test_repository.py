"""Repositories: found by a path or refused in words, and names of commits that cannot mislead."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import GitMissing, InvalidInput, RepositoryUnusable
from holdfast.worker.git.git_command import Git
from holdfast.worker.git.repository import (
    OWN_IDENTITY,
    check_branch_name,
    list_checkouts,
    read_branch,
    resolve_commit,
)
from tests.contract.worker.git.repositories import World, commit_files, head, run


def test_a_repository_is_found_from_its_top_a_subfolder_and_a_linked_worktree(world: World) -> None:
    path = world.repository()
    run(path, "worktree", "add", "--quiet", "../linked")
    top, inside = world.open(path), world.open(path / "folder")
    linked = world.open(path.parent / "linked")
    assert (top.path, top.subfolder, top.bare, top.shallow) == (path, Path(), False, False)
    assert (inside.path, inside.subfolder) == (path, Path("folder"))
    assert linked.path == path.parent / "linked"
    assert linked.common == top.common == path / ".git"
    assert linked.git_dir != top.git_dir


def test_bare_and_shallow_repositories_can_be_worked_with(world: World) -> None:
    path = world.repository()
    commit_files(path, head(path), {"c.txt": "c\n"})
    run(world.folder, "clone", "--quiet", "--bare", str(path), "bare.git")
    run(world.folder, "clone", "--quiet", "--depth=1", f"file://{path}", "shallow")
    assert world.open(world.folder / "bare.git").bare
    shallow = world.open(world.folder / "shallow")
    assert shallow.shallow
    assert resolve_commit(shallow, "main") == head(path)
    assert (shallow.view / "shallow").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "does not exist"),
        ("file", "is no folder"),
        ("plain", "is in no git repository"),
        ("repository/.git", "inside the folder .git"),
        ("partial", "partial clone"),
        ("elsewhere", "files lie elsewhere"),
    ],
)
def test_what_is_no_usable_repository_is_refused_in_words(
    world: World, name: str, words: str
) -> None:
    path = world.repository()
    (world.folder / "plain").mkdir()
    (world.folder / "file").write_text("")
    run(path, "config", "uploadpack.allowFilter", "true")
    run(world.folder, "clone", "-q", "--filter=blob:none", f"file://{path}", "partial")
    elsewhere = world.repository("elsewhere")
    run(elsewhere, "config", "core.worktree", str(world.folder / "user"))
    with pytest.raises(RepositoryUnusable, match=words):
        world.open(world.folder / name)


def test_a_repository_of_another_user_is_refused_with_what_to_type(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.repository()
    program = world.folder / "git"
    # As git itself is told that a repository belongs to another user, in its own tests.
    program.write_text('#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec git "$@"\n')
    program.chmod(0o755)
    other = Git(program=program, version=world.git.version, home=world.git.home)
    monkeypatch.setattr(world, "git", other)
    with pytest.raises(RepositoryUnusable, match=r"safe\.directory"):
        world.open(path)


def test_an_empty_repository_has_no_commit_to_begin_at(world: World) -> None:
    repository = world.open(world.repository(commit=False))
    with pytest.raises(RepositoryUnusable, match="no commit yet"):
        resolve_commit(repository, "HEAD")


@pytest.mark.parametrize(
    "name",
    ["", "-d", "--upload-pack=touch", "a..b", "main^", "main~1", "@{-1}", "@", "a\nb", "a b",
     "a:b", "x.lock", "/a", "a//b", ".hidden", "a\x7f", "a" * 300, "main@{1}", "refs/heads/a..b"],
)  # fmt: skip
def test_a_hostile_name_names_no_commit(world: World, name: str) -> None:
    repository = world.open(world.repository())
    with pytest.raises((InvalidInput, RepositoryUnusable)):
        resolve_commit(repository, name)


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "-b", "a..b", "a\tb", "a.lock", "@"])
def test_a_hostile_name_is_no_name_for_a_branch(world: World, name: str) -> None:
    with pytest.raises(InvalidInput, match="branch"):
        check_branch_name(world.git, name)


def test_a_commit_is_named_by_branch_tag_full_name_and_hash(world: World) -> None:
    path = world.repository()
    first = head(path)
    second = commit_files(path, first, {"a.txt": "two\n"})
    run(path, "update-ref", "refs/heads/feature/ü", second)
    run(path, "tag", "-m", "Tag", "v1", second)
    repository = world.open(path)
    for name in ("feature/ü", "v1", "refs/heads/feature/ü", second, second[:10]):
        assert resolve_commit(repository, name) == second
    assert resolve_commit(repository, "HEAD") == first
    assert read_branch(repository, "none") is None
    with pytest.raises(RepositoryUnusable, match="has no commit, branch or tag"):
        resolve_commit(repository, "f" * 40)


def test_a_branch_outranks_a_tag_of_its_name(world: World) -> None:
    path = world.repository()
    second = commit_files(path, head(path), {"a.txt": "two\n"})
    run(path, "tag", "main", second)
    assert resolve_commit(world.open(path), "main") == head(path, "refs/heads/main") != second


def test_the_checkouts_of_a_branch_are_found_also_in_the_middle_of_a_rebase(world: World) -> None:
    path = world.repository()
    run(path, "worktree", "add", "--quiet", "-b", "topic", "../linked")
    state = path / ".git/worktrees/linked/rebase-merge"
    state.mkdir()
    (state / "head-name").write_text("refs/heads/topic\n")
    run(path.parent / "linked", "checkout", "--quiet", "--detach")
    found = {each.path: each.branch for each in list_checkouts(world.open(path))}
    assert found == {path: "main", path.parent / "linked": "topic"}


def test_an_author_is_taken_from_the_users_settings_or_is_holdfast(world: World) -> None:
    path = world.repository()
    assert world.open(path).identity.email == "ann@example.org"
    world.settings.write_text("[user]\n\tname = Ann\n")
    assert world.open(path).identity == OWN_IDENTITY


@pytest.mark.parametrize(
    ("script", "words"),
    [(None, "no git is installed"), ("echo git version 2.37.9", "is git 2.37.9; install git 2.38")],
)
def test_a_missing_or_old_git_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, words: str
) -> None:
    if script is not None:
        (tmp_path / "git").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissing, match=words):
        Git.find(tmp_path / "home")
