"""Diffs: patches and numbers of lines, bounded, whatever the files hold."""

from __future__ import annotations

from holdfast.worker.git.diffs import FileChange, read_diff, read_diffstat
from tests.contract.worker.git.repositories import World, commit_files, head, run, show


def test_a_diff_has_numbers_renames_and_odd_names(world: World) -> None:
    path = world.repository()
    old = head(path)
    files: dict[str, str | bytes | None] = {
        "a.txt": "one\ntwo\n",
        "folder/b.txt": None,
        "ü\nname": "b\n",
        "x.bin": b"\0\1",
    }
    new = commit_files(path, old, files)
    diff = read_diff(world.open(path), old, new)
    assert diff.files == (
        FileChange(path="a.txt", added=1, removed=0),
        FileChange(path="x.bin", added=None, removed=None),
        FileChange(path="ü\nname", added=0, removed=0, before="folder/b.txt"),
    )
    assert (diff.added, diff.removed, diff.cut) == (1, 0, False)
    assert b"+two\n" in diff.patch
    assert b"Binary files" in diff.patch


def test_a_patch_can_be_applied(world: World) -> None:
    path = world.repository()
    old = head(path)
    new = commit_files(path, old, {"a.txt": "two\n", "c.txt": "no end of line"})
    patch = world.folder / "patch"
    patch.write_bytes(read_diff(world.open(path), old, new).patch)
    run(path, "apply", str(patch))
    assert (path / "c.txt").read_text() == show(path, new, "c.txt") == "no end of line"


def test_a_long_patch_is_cut(world: World) -> None:
    path = world.repository()
    old = head(path)
    new = commit_files(path, old, {"a.txt": "line\n" * 1_000_000})
    diff = read_diff(world.open(path), old, new, limit=10_000)
    assert (len(diff.patch), diff.cut) == (10_000, True)
    assert read_diffstat(world.open(path), old, new)[0].added == 1_000_000
