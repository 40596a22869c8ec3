"""Merges: made without any checkout, the same from the same heads, and conflicts told as text."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.errors import GitError
from holdfast.worker.git.git_command import Git
from holdfast.worker.git.merges import (
    CONFLICT_BYTES,
    MergeConflict,
    Merged,
    MergeStrategy,
    WantedMerge,
    merge_commits,
)
from holdfast.worker.git.repository import open_repository
from tests.contract.worker.git.repositories import World, commit_files, head, run, show, tree

STRATEGIES: list[MergeStrategy] = ["merge", "squash", "rebase"]


class Lines:
    """Two lines from one base: `main` changes a.txt, and the other adds two files."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.path = world.repository()
        self.base = head(self.path)
        self.into = commit_files(self.path, self.base, {"a.txt": "main\n"})
        self.middle = commit_files(self.path, self.base, {"c.txt": "c\n"})
        self.head = commit_files(self.path, self.middle, {"d.txt": "d\n"})

    def merge(
        self, into: str, other: str, strategy: MergeStrategy = "merge"
    ) -> Merged | MergeConflict:
        wanted = WantedMerge(into=into, head=other, message="Merge it\n", strategy=strategy)
        return merge_commits(self.world.open(self.path), wanted)


@pytest.fixture
def lines(world: World) -> Lines:
    return Lines(world)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_both_lines_are_in_the_merge_and_no_checkout_is_touched(
    lines: Lines, strategy: MergeStrategy
) -> None:
    merged = lines.merge(lines.into, lines.head, strategy)
    assert isinstance(merged, Merged)
    assert not merged.already
    assert tree(lines.path, merged.commit) == ["a.txt", "c.txt", "d.txt", "folder/b.txt"]
    assert show(lines.path, merged.commit, "a.txt") == "main"
    parents = run(lines.path, "log", "-1", "--format=%P", merged.commit).split()
    subjects = run(
        lines.path, "log", "--topo-order", "--format=%s", f"{lines.into}..{merged.commit}"
    )
    assert parents[0] == lines.into if strategy != "rebase" else subjects.startswith("Change d.txt")
    assert len(parents) == (2 if strategy == "merge" else 1)
    assert run(lines.path, "status", "--porcelain") == ""
    assert head(lines.path) == lines.base


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_merge_made_again_in_another_clone_is_the_same_commit(
    lines: Lines, strategy: MergeStrategy, tmp_path: Path
) -> None:
    one = lines.merge(lines.into, lines.head, strategy)
    for name, commit in (("into", lines.into), ("head", lines.head)):
        run(lines.path, "branch", name, commit)
    run(lines.world.folder, "clone", "--quiet", str(lines.path), "clone")
    lines.world.settings.write_text("[user]\n\tname = Bob\n\temail = bob@example.org\n")
    git = Git.find(tmp_path / "another")
    wanted = WantedMerge(into=lines.into, head=lines.head, message="Merge it\n", strategy=strategy)
    assert merge_commits(open_repository(git, lines.world.folder / "clone"), wanted) == one


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_merge_of_what_is_there_already_changes_nothing(
    lines: Lines, strategy: MergeStrategy
) -> None:
    assert lines.merge(lines.head, lines.middle, strategy) == Merged(
        commit=lines.head, already=True
    )
    again = lines.merge(lines.into, lines.head, strategy)
    assert isinstance(again, Merged)
    assert lines.merge(again.commit, lines.head, strategy) == Merged(
        commit=again.commit, already=True
    )


def test_a_rebase_onto_where_a_line_began_is_the_line(lines: Lines) -> None:
    assert lines.merge(lines.base, lines.head, "rebase") == Merged(commit=lines.head)


def test_a_rebase_keeps_authors_dates_and_messages_and_drops_what_became_empty(
    lines: Lines,
) -> None:
    written = run(
        lines.path, "-c", "user.name=Cy", "-c", "user.email=cy@x", "commit-tree", "-p", lines.head,
        "-m", "Whole\n\nbody é", f"{lines.head}^{{tree}}",
    )  # fmt: skip
    last = commit_files(lines.path, written, {"e.txt": "e\n"})
    onto = commit_files(lines.path, lines.into, {"c.txt": "c\n"})
    merged = lines.merge(onto, last, "rebase")
    assert isinstance(merged, Merged)
    listed = run(lines.path, "log", "--format=%an %cn %s", f"{onto}..{merged.commit}")
    assert listed.split("\n") == ["Ann Holdfast Change e.txt", "Ann Holdfast Change d.txt"]
    dates = [
        run(lines.path, "log", "-1", "--format=%ad", "--date=raw", each)
        for each in (merged.commit, last)
    ]
    assert dates[0] == dates[1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_conflict_names_its_files_and_shows_its_hunks(
    lines: Lines, strategy: MergeStrategy
) -> None:
    other = commit_files(lines.path, lines.base, {"a.txt": "other\n", "folder/b.txt": None})
    into = commit_files(lines.path, lines.into, {"folder/b.txt": "changed\n"})
    found = lines.merge(into, other, strategy)
    assert isinstance(found, MergeConflict)
    assert found.files == ("a.txt", "folder/b.txt")
    assert "main\n=======\nother" in found.text
    assert "CONFLICT (modify/delete): folder/b.txt deleted in" in found.text
    assert run(lines.path, "status", "--porcelain") == ""


def test_a_conflict_of_huge_and_of_binary_files_is_told_in_bounded_text(lines: Lines) -> None:
    big = "".join(f"{number}\n" for number in range(30_000))
    into = commit_files(lines.path, lines.base, {"big.txt": big, "x.bin": b"\0\1"})
    other = commit_files(
        lines.path, lines.base, {"big.txt": big.replace("\n", "x\n"), "x.bin": b"\0\2"}
    )
    found = lines.merge(into, other)
    assert isinstance(found, MergeConflict)
    assert found.files == ("big.txt", "x.bin")
    assert "x.bin" in found.text
    assert len(found.text) < CONFLICT_BYTES + 100


def test_files_that_ask_for_a_union_are_merged_so(lines: Lines) -> None:
    base = commit_files(
        lines.path, lines.base, {"sub/.gitattributes": "LOG merge=union\n", "sub/LOG": "0\n"}
    )
    into = commit_files(lines.path, base, {"sub/LOG": "0\n1\n"})
    other = commit_files(lines.path, base, {"sub/LOG": "0\n2\n"})
    merged = lines.merge(into, other)
    assert isinstance(merged, Merged)
    assert show(lines.path, merged.commit, "sub/LOG") == "0\n1\n2"


def test_lines_without_a_common_commit_can_be_merged(lines: Lines) -> None:
    empty = run(lines.path, "hash-object", "-t", "tree", "-w", "/dev/null")
    root = run(lines.path, "commit-tree", "-m", "Root", empty)
    other = commit_files(lines.path, root, {"z.txt": "z\n"})
    merged = lines.merge(lines.into, other)
    assert isinstance(merged, Merged)
    assert "z.txt" in tree(lines.path, merged.commit)


@pytest.mark.parametrize("name", ["..", "up/../..", "{outside}"])
def test_a_tree_with_names_that_lead_elsewhere_writes_no_file_there(
    lines: Lines, name: str
) -> None:
    outside = lines.world.folder / "outside"
    outside.mkdir()
    blob = make_object(lines.path, "blob", b"*.txt text\n")
    inner = b"100644 .gitattributes\0" + bytes.fromhex(blob)
    above = make_object(lines.path, "tree", inner)
    for each in reversed(name.format(outside=outside).split("|")):
        entry = f"40000 {each}\0".encode() + bytes.fromhex(above)
        above = make_object(lines.path, "tree", entry)
    hostile = run(lines.path, "commit-tree", above, "-p", lines.base, "-m", "Hostile")
    with suppress(GitError):
        lines.merge(hostile, lines.head)
    found = lines.world.folder.rglob(".gitattributes")
    assert list(found) == []


def make_object(path: Path, kind: str, content: bytes) -> str:
    """An object as no git would make it."""
    asked = ["git", "hash-object", "-t", kind, "-w", "--stdin", "--literally"]
    return (
        subprocess.run(asked, cwd=path, input=content, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )
