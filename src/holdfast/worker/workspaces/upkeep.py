"""Upkeep: branches that follow their lines, and worktrees that nobody needs any more, removed.

A worktree is a copy of what the store and the repository know: one that was removed too early is
made again. The commits of attempts go only once their run is over for as long as it is kept.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import HoldfastError, InvalidInput, RepositoryUnusable
from holdfast.model.workflow.branch import PREFIX
from holdfast.model.workflow.line import HostLine
from holdfast.worker.git.git_command import Git
from holdfast.worker.git.references import ReferenceMove, list_references, move_reference
from holdfast.worker.git.repository import HEADS, Repository, list_checkouts, read_branch
from holdfast.worker.git.shared_clones import is_url
from holdfast.worker.git.worktrees import remove_worktree
from holdfast.worker.workspaces.attempt_workspace import ATTEMPT_BRANCHES, WorkspacePorts
from holdfast.worker.workspaces.line_repository import KEPT, open_line_repository
from holdfast.worker.workspaces.worktree_pool import LentWorktree, WorktreePool, WorktreeRecord

KEEP_SECONDS = 3 * 86_400.0
TEND_EVERY = 3_600.0
_BLOCK = 512

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class UnusedWorktree:
    """A worktree that may go, with the bytes that it takes."""

    path: Path
    run: str
    bytes: int


def tend_workspaces_if_due(ports: WorkspacePorts, *, now: float | None = None) -> None:
    """Tend the workspaces of this machine, at most once in a while; what fails is told."""
    noted = ports.folder / ".tended"
    moment = time.time() if now is None else now
    try:
        if not ports.folder.is_dir():
            return
        if noted.exists() and noted.stat().st_mtime > moment - TEND_EVERY:
            return
        noted.touch()
        tend_workspaces(ports)
    except (HoldfastError, OSError) as error:
        log.warning("the workspaces of this machine are not tended: %s", error)


def clean_workspaces(ports: WorkspacePorts, *, dry_run: bool = False) -> list[UnusedWorktree]:
    """Remove the worktrees that are kept no longer, or list them; no git is needed for none."""
    if not any(ports.folder.glob("*.json")):
        return []
    lines = list_kept_lines(ports)
    if dry_run:
        return find_unused_worktrees(ports, lines)
    return remove_unused_worktrees(ports, ports.find_git(), lines)


def tend_workspaces(ports: WorkspacePorts) -> list[UnusedWorktree]:
    """Have the branches of runs follow, and remove the worktrees that are kept no longer."""
    lines, git = list_kept_lines(ports), ports.find_git()
    # Only where a worker of this machine has worked: a server may name any folder.
    known = WorktreePool(ports.folder, ports.is_stopped).list_repositories()
    follow_lines(git, [each for each in lines or () if each.repository in known])
    return remove_unused_worktrees(ports, git, lines)


def list_kept_lines(ports: WorkspacePorts) -> list[HostLine] | None:
    """The lines of runs that are not over, or not for long, of all names that this machine had.

    None for a worker that may not know them: it must not take a run for one that is over.
    """
    known = WorktreePool(ports.folder, ports.is_stopped).list_records()
    names = {each.host for each in known if each.host and each.store == ports.store_name}
    hosts = sorted({socket.gethostname(), *names})
    try:
        return [line for host in hosts for line in ports.store.work.lines_of_host(host)]
    except InvalidInput as error:
        log.info("worktrees of repositories on this machine are kept: %s", error)
        return None


def follow_lines(git: Git, lines: Sequence[HostLine]) -> None:
    """Move the branches of runs to their heads, and finish what killed processes had begun."""
    by_repository = defaultdict[str, list[HostLine]](list)
    for line in lines:
        by_repository[line.repository].append(line)
    for text, those in by_repository.items():
        try:
            place = open_line_repository(git, text)
            for line in those:
                if line.number:
                    place.follow(line.branch, line.head)
        except HoldfastError as error:
            log.warning("the branches of runs in %s do not follow: %s", text, error)


def find_unused_worktrees(
    ports: WorkspacePorts, lines: Sequence[HostLine] | None, *, now: float | None = None
) -> list[UnusedWorktree]:
    """The worktrees that `remove_unused_worktrees` would remove."""
    pool = WorktreePool(ports.folder, ports.is_stopped)
    kept, moment = _list_runs(lines), time.time() if now is None else now
    found = []
    for lent in pool.list_free():
        with lent:
            if _is_unused(ports, lent, kept, moment):
                found.append(_describe(lent))
    return found


def remove_unused_worktrees(
    ports: WorkspacePorts,
    git: Git,
    lines: Sequence[HostLine] | None,
    *,
    now: float | None = None,
) -> list[UnusedWorktree]:
    """Remove the worktrees of runs that are over, and those at URLs that nobody has used lately."""
    pool = WorktreePool(ports.folder, ports.is_stopped)
    kept, moment = _list_runs(lines), time.time() if now is None else now
    removed = []
    for lent in pool.list_free():
        with lent:
            if not _is_unused(ports, lent, kept, moment):
                continue
            found = _describe(lent)
            try:
                _remove(git, lent)
            except HoldfastError as error:
                log.warning("%s is not removed: %s", lent.path, error)
                continue
            removed.append(found)
    return removed


def _list_runs(lines: Sequence[HostLine] | None) -> set[str] | None:
    return None if lines is None else {each.run_id for each in lines}


def _is_unused(
    ports: WorkspacePorts, lent: LentWorktree, kept: set[str] | None, now: float
) -> bool:
    record = lent.before
    if record is None or record.store != ports.store_name:
        return False
    if not is_url(record.repository):
        # The run is over for as long as it is kept, or was removed.
        return kept is not None and record.run not in kept
    keep = KEEP_SECONDS if record.keep is None else record.keep
    return lent.used_at + keep < now


def _describe(lent: LentWorktree) -> UnusedWorktree:
    run = "" if lent.before is None else lent.before.run
    return UnusedWorktree(path=lent.path, run=run, bytes=measure_folder(lent.path))


def _remove(git: Git, lent: LentWorktree) -> None:
    record = lent.before
    if record is None:
        return
    try:
        repository = open_line_repository(git, record.repository).repository
    except RepositoryUnusable:
        # The repository is gone, and with it all that the worktree is a copy of.
        lent.discard()
        return
    remove_worktree(repository, lent.path)
    if not is_url(record.repository):
        _remove_references(repository, record)
        _remove_merged_branch(repository, record.visible)
    lent.discard()


def _remove_references(repository: Repository, record: WorktreeRecord) -> None:
    """Remove the commits that were kept for a run, and the branches of its attempts."""
    kept = list_references(repository, f"{KEPT}{record.run}/")
    attempts = {name.rpartition("/")[2] for name in kept}
    attempts.update(each.removeprefix(ATTEMPT_BRANCHES) for each in record.branches)
    branches = list_references(repository, HEADS + ATTEMPT_BRANCHES)
    own = [each for each in branches if each.rpartition("/")[2] in attempts]
    for name in (*kept, *own):
        move_reference(repository, ReferenceMove(reference=name, new=None))


def _remove_merged_branch(repository: Repository, branch: str) -> None:
    """Remove the visible branch of a run that another branch holds, unless it is checked out."""
    # One that a workflow names may have been there before, and is left to its people.
    commit = read_branch(repository, branch) if branch.startswith(PREFIX) else None
    if commit is None or any(each.branch == branch for each in list_checkouts(repository)):
        return
    holders = list_references(repository, HEADS.rstrip("/"), contains=commit)
    if holders.keys() - {HEADS + branch}:
        gone = ReferenceMove(reference=HEADS + branch, new=None, old=commit)
        move_reference(repository, gone)


def measure_folder(path: Path) -> int:
    """The bytes that the files below a folder take on the disk."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += Path(folder, name).lstat().st_blocks * _BLOCK
            except OSError:
                continue
    return total
