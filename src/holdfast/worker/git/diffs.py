"""Diffs: what changed between two commits, as a patch and as numbers, of a bounded size."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.worker.git.repository import Repository

PATCH_BYTES = 4 * 1024 * 1024
MOST_FILES = 10_000
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "-M")


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """A changed file with its lines; None of them for a binary file. `before` is its old name."""

    path: str
    added: int | None
    removed: int | None
    before: str | None = None


@dataclass(frozen=True, kw_only=True)
class Diff:
    """The changes between two commits; `cut` where the patch was longer than asked for."""

    files: tuple[FileChange, ...]
    patch: bytes
    cut: bool

    @property
    def added(self) -> int:
        return sum(each.added or 0 for each in self.files)

    @property
    def removed(self) -> int:
        return sum(each.removed or 0 for each in self.files)


def read_diff(repository: Repository, old: str, new: str, *, limit: int = PATCH_BYTES) -> Diff:
    files = read_diffstat(repository, old, new)
    asked = ("diff-tree", "-r", "-p", *_PLAIN, "--full-index")
    place = repository.objects.reading()
    answer = repository.git.ask(*asked, old, new, place=place, limit=limit)
    return Diff(files=tuple(files), patch=answer.output, cut=answer.cut)


def read_diffstat(repository: Repository, old: str, new: str) -> list[FileChange]:
    """The changed files, at most `MOST_FILES` of them, with the numbers of their lines."""
    asked = ("diff-tree", "-r", "-z", "--numstat", *_PLAIN, old, new)
    parts = iter(repository.git.run(*asked, place=repository.objects.reading()).names)
    found = []
    for part in parts:
        added, removed, name = part.split("\t", 2)
        before = None
        if not name:
            # A renamed file has its two names after its numbers.
            before, name = next(parts), next(parts)
        found.append(
            FileChange(path=name, added=_count(added), removed=_count(removed), before=before)
        )
    return found[:MOST_FILES]


def _count(text: str) -> int | None:
    return None if text == "-" else int(text)
