"""References: branches and kept commits, moved only from where they are expected to be."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import BranchMoved, GitFailed
from holdfast.worker.git.repository import Repository, read_reference
from holdfast.worker.git.unfinished_work import dead_work, record_work, remove_dead_locks

_ANYWHERE = "anywhere"


@dataclass(frozen=True, kw_only=True)
class ReferenceMove:
    """A reference on its way; made where `old` is None, and deleted where `new` is None."""

    reference: str
    new: str | None
    old: str | None = _ANYWHERE
    reason: str = ""


def move_reference(repository: Repository, move: ReferenceMove) -> None:
    """Move, make or delete a reference that no checkout is on; idempotent.

    Raises `BranchMoved` where it is neither at the old nor at the new commit.
    """
    reference, new, old = move.reference, move.new, move.old
    locks = [(repository.common / f"{reference}.lock", new or "")]
    if new is None:
        locks.append((repository.common / "packed-refs.lock", ""))
    place = repository.references
    expected = [] if old == _ANYWHERE else [old or ""]
    words = ["-d", reference] if new is None else [reference, new]
    reasons = ["--no-deref", *(["-m", move.reason] if move.reason else [])]
    with record_work(repository.git, repository.common, locks, kind="reference") as work:
        if read_reference(repository, reference) == new:
            return
        try:
            repository.git.run(
                "update-ref", *reasons, *words, *expected, place=place.holding(work.descriptor)
            )
        except GitFailed as error:
            found = read_reference(repository, reference)
            if found == new:
                return
            if old not in {_ANYWHERE, found}:
                raise BranchMoved(reference.removeprefix("refs/heads/"), old, found) from error
            raise


def list_references(
    repository: Repository, prefix: str, *, contains: str | None = None
) -> dict[str, str]:
    """The references below a prefix, with their commits; those alone that contain a commit."""
    asked = ["for-each-ref", "--format=%(refname) %(objectname)", prefix]
    if contains is not None:
        asked.insert(1, f"--contains={contains}")
    told = repository.git.run(*asked, place=repository.references.reading()).output
    lines = os.fsdecode(told).splitlines()
    return {name: commit for name, _, commit in (line.rpartition(" ") for line in lines)}


def remove_left_locks(repository: Repository) -> list[Path]:
    """Remove the locks that killed processes of Holdfast left at references."""
    removed = []
    with dead_work(repository.git, repository.common) as dead:
        for work in dead:
            if work.facts["kind"] == "reference":
                removed += remove_dead_locks(work)
                work.path.unlink(missing_ok=True)
    return removed
