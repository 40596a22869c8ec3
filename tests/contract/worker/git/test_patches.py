"""Patches are read into files with the numbers of their changed lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

from holdfast.worker.git.patches import PatchedFile, read_patch


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    done = subprocess.run(
        ["git", *named, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def patch_between(folder: Path, before: dict[str, bytes], after: dict[str, bytes]) -> str:
    git(folder, "init", "-q", "-b", "main")
    for files in (before, after):
        for each in folder.iterdir():
            if each.name != ".git":
                each.unlink()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return git(folder, "diff", "HEAD~1", "HEAD")


def test_each_file_is_told_with_its_lines(tmp_path: Path) -> None:
    before = {"kept.txt": b"a\nb\nc\n", "gone.txt": b"x\ny\n", "picture": b"\0one"}
    after = {"kept.txt": b"a\nB\nc\nd\n", "new.txt": b"1\n2\n3\n", "picture": b"\0two"}
    assert read_patch(patch_between(tmp_path, before, after)) == [
        PatchedFile(path="gone.txt", change="removed", removed=2),
        PatchedFile(path="kept.txt", change="changed", added=2, removed=1),
        PatchedFile(path="new.txt", change="added", added=3),
        PatchedFile(path="picture", change="changed", binary=True),
    ]


def test_a_changed_line_that_looks_like_the_head_of_a_file_is_a_line(tmp_path: Path) -> None:
    before = {"a.txt": b"one\n"}
    after = {"a.txt": b"one\n++ b/fake\ndiff --git a/fake b/fake\n@@ -1 +1 @@\n"}
    (found,) = read_patch(patch_between(tmp_path, before, after))
    assert found == PatchedFile(path="a.txt", change="changed", added=3)


def test_a_path_that_git_quotes_is_told_as_it_is(tmp_path: Path) -> None:
    name = 'a "strange"\tname.txt'
    (found,) = read_patch(patch_between(tmp_path, {}, {name: b"1\n"}))
    assert found.path == name


def test_a_renamed_file_is_told_by_its_new_name(tmp_path: Path) -> None:
    text = b"a line that stays\n" * 9
    patch = patch_between(tmp_path, {"old.txt": text}, {"new.txt": text + b"and one more\n"})
    assert read_patch(patch) == [PatchedFile(path="new.txt", change="renamed", added=1)]


def test_an_empty_patch_has_no_files() -> None:
    assert read_patch("") == []


def test_a_patch_that_was_cut_off_gives_what_it_still_has(tmp_path: Path) -> None:
    patch = patch_between(tmp_path, {}, {"a.txt": b"1\n2\n3\n", "b.txt": b"1\n"})
    for length in range(len(patch)):
        assert len(read_patch(patch[:length])) <= 2
    assert read_patch(patch[: patch.index("+2")])[0].path == "a.txt"
