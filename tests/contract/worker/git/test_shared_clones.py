"""Shared clones: fetched from and pushed to a remote, without ever asking a person."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from holdfast.errors import BranchMoved, InvalidInput, RepositoryUnusable
from holdfast.worker.git.repository import Repository, resolve_commit
from holdfast.worker.git.shared_clones import (
    check_url,
    fetch_branches,
    find_remote_branch,
    is_url,
    list_remote,
    open_shared_clone,
    push_commit,
)
from holdfast.worker.git.worktrees import add_worktree
from tests.contract.worker.git.repositories import World, commit_files, head, run

MAIN = "refs/heads/main"


class Remote:
    def __init__(self, world: World) -> None:
        path = world.repository()
        self.first = head(path)
        run(world.folder, "clone", "--quiet", "--bare", str(path), "remote.git")
        self.path = world.folder / "remote.git"
        self.url = f"file://{self.path}"

    def open(self, world: World) -> Repository:
        return open_shared_clone(world.git, self.url)


@pytest.fixture
def remote(world: World) -> Remote:
    return Remote(world)


def test_a_clone_of_a_url_is_shared_and_has_what_was_fetched(world: World, remote: Remote) -> None:
    clone = remote.open(world)
    assert remote.open(world).path == clone.path
    assert find_remote_branch(clone, remote.url) == "main"
    assert fetch_branches(clone, remote.url, [MAIN, "refs/heads/none"]) == {MAIN: remote.first}
    second = commit_files(remote.path, remote.first, {"a.txt": "two\n"})
    run(remote.path, "update-ref", MAIN, second)
    assert fetch_branches(clone, remote.url, [MAIN]) == {MAIN: second}
    assert resolve_commit(clone, second) == second
    add_worktree(clone, world.folder / "w1", second)
    assert (world.folder / "w1/a.txt").read_text() == "two\n"


def test_a_push_moves_a_reference_only_from_where_it_was(world: World, remote: Remote) -> None:
    clone = remote.open(world)
    fetch_branches(clone, remote.url, [MAIN])
    mine = commit_files(clone.path, remote.first, {"a.txt": "mine\n"})
    other = commit_files(clone.path, remote.first, {"a.txt": "other\n"})
    push_commit(clone, remote.url, mine, MAIN, old=remote.first)
    push_commit(clone, remote.url, mine, MAIN, old=remote.first)
    with pytest.raises(BranchMoved, match="main is at"):
        push_commit(clone, remote.url, other, MAIN, old=remote.first)
    push_commit(clone, remote.url, other, MAIN, old=mine)
    push_commit(clone, remote.url, other, "refs/holdfast/attempts/t_1.1", old=None)
    with pytest.raises(BranchMoved):
        push_commit(clone, remote.url, mine, "refs/holdfast/attempts/t_1.1", old=None)
    there = list_remote(clone, remote.url)
    assert there == {"HEAD": other, MAIN: other, "refs/holdfast/attempts/t_1.1": other}


def test_hooks_of_the_users_templates_do_not_run_in_a_clone(world: World, remote: Remote) -> None:
    hook = world.folder / "user/template/hooks/reference-transaction"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ntouch {world.folder}/canary\n")
    hook.chmod(0o755)
    world.settings.write_text(
        world.settings.read_text()
        + f"\ttemplateDir = {hook.parent.parent}\n[core]\n\thooksPath = {hook.parent}\n"
    )
    fetch_branches(remote.open(world), remote.url, [MAIN])
    assert not (world.folder / "canary").exists()


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch%20x",
        "fd::17",
        "--upload-pack=touch x",
        "-oProxyCommand=touch@x:y",
        "ssh://-oProxyCommand=touch/x",
        "ftp://host/x",
        "https://ann:secret@host/x",
        "https://",
        "host\n:x",
        "ssh://ann@-oProxyCommand=x/y",
    ],
)
def test_a_hostile_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="git"):
        check_url(url)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("git@host.org:team/x.git", True),
        ("https://host.org/x", True),
        ("ssh://git@host:22/x", True),
        ("/home/ann/x", False),
        ("./a:b", False),
        (".", False),
    ],
)
def test_urls_are_told_from_paths(text: str, *, answer: bool) -> None:
    assert is_url(text) is answer
    if answer:
        assert check_url(text) == text


def test_a_remote_that_cannot_be_reached_is_told_at_once_and_asks_nobody(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexit 255\n')
    (programs / "ssh").chmod(0o755)
    clone = open_shared_clone(world.git, "ssh://host.example/x")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(RepositoryUnusable, match=re.escape("ssh://host.example/x cannot be")):
        list_remote(clone, "ssh://host.example/x")
    assert "-o BatchMode=yes" in (tmp_path / "asked").read_text()
    with pytest.raises(RepositoryUnusable, match="cannot be reached or refuses"):
        list_remote(clone, f"file://{tmp_path}/missing")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://ann:pa55@host/x",
        "https://ann:pa55@host/x y",
        "https://ann:pa5@pa55@[host/x",
        "https://ann:pa55@host/x::y",
        "https://ann:pa55@host/x",
    ],
)
def test_a_refused_url_is_told_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as told:
        check_url(url)
    assert "pa5" not in str(told.value)
