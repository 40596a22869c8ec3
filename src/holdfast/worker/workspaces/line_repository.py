"""Line repository: the repository in which the commits of a line are, here or at a URL."""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import BranchMoved, CheckoutInTheWay, GitError, RepositoryUnusable
from holdfast.worker.git.branch_moves import BranchMove, finish_branch_moves, move_branch
from holdfast.worker.git.git_command import Git
from holdfast.worker.git.references import ReferenceMove, move_reference, remove_left_locks
from holdfast.worker.git.repository import (
    HEADS,
    Repository,
    check_branch_name,
    has_commit,
    is_ancestor,
    open_repository,
    read_branch,
    resolve_commit,
)
from holdfast.worker.git.shared_clones import (
    FETCHED,
    fetch_below,
    fetch_branches,
    find_remote_branch,
    is_url,
    list_remote,
    open_shared_clone,
    push_commit,
)

# Below it the commits of attempts are kept, by run, so that no garbage collection takes them.
KEPT = "refs/holdfast/runs/"

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class LineRepository:
    """A repository with the URL that it is a clone of, if it is one."""

    repository: Repository
    url: str | None = None

    @property
    def text(self) -> str:
        """The repository as the line records it."""
        return self.url or str(self.repository.path)

    @property
    def host(self) -> str | None:
        """The machine that alone has the repository."""
        return None if self.url else socket.gethostname()

    def find_base(self, start: str | None) -> str:
        """The commit at which a line begins: of a branch, a tag or a hash, or the HEAD."""
        if self.url is None:
            return resolve_commit(self.repository, start or "HEAD")
        name = start or find_remote_branch(self.repository, self.url)
        if name is None:
            raise RepositoryUnusable(self.url, "has no commit yet; push a first one")
        names = [f"{HEADS}{name}", f"refs/tags/{name}"]
        found = fetch_branches(self.repository, self.url, names)
        commit = next((found[each] for each in names if each in found), name)
        return resolve_commit(self.repository, commit)

    def bring(self, run: str, commit: str) -> None:
        """Have a commit of a run here; raises `RepositoryUnusable` where it is nowhere."""
        if not has_commit(self.repository, commit) and self.url is not None:
            fetch_below(self.repository, self.url, f"{KEPT}{run}/")
            # The commit where the line begins is of somebody's branch or tag.
            for kind in ("heads/", "tags/"):
                if not has_commit(self.repository, commit):
                    fetch_below(self.repository, self.url, f"refs/{kind}", f"{FETCHED}{kind}")
        if not has_commit(self.repository, commit):
            reason = f"does not have the commit {commit} of {run} any more; start the run again"
            raise RepositoryUnusable(self.text, reason)

    def keep(self, run: str, name: str, commit: str) -> None:
        """Keep a commit of a run under a name, also at the URL, before anybody hears of it."""
        reference = f"{KEPT}{run}/{name}"
        move_reference(self.repository, ReferenceMove(reference=reference, new=commit))
        if self.url is not None:
            old = list_remote(self.repository, self.url, [reference]).get(reference)
            push_commit(self.repository, self.url, commit, reference, old=old)

    def follow(self, branch: str, head: str) -> None:
        """Move the visible branch of a run to its head, unless it is there or further.

        A branch that somebody else has moved, or whose checkout has changes, is left and told.
        """
        check_branch_name(self.repository.git, branch)
        try:
            if self.url is None:
                _follow_here(self.repository, branch, head)
            else:
                self._follow_there(self.url, branch, head)
        except (BranchMoved, CheckoutInTheWay) as error:
            log.warning("the branch of a run does not follow its commits: %s", error)

    def _follow_there(self, url: str, branch: str, head: str) -> None:
        reference = HEADS + branch
        old = fetch_branches(self.repository, url, [reference]).get(reference)
        if old == head or (old is not None and is_ancestor(self.repository, head, old)):
            return
        if old is not None and not is_ancestor(self.repository, old, head):
            raise BranchMoved(branch, head, old)
        push_commit(self.repository, url, head, reference, old=old)


def _follow_here(repository: Repository, branch: str, head: str) -> None:
    old = read_branch(repository, branch)
    if old is None:
        made = ReferenceMove(reference=HEADS + branch, new=head, old=None)
        move_reference(repository, made)
    elif old == head or is_ancestor(repository, head, old):
        return
    elif is_ancestor(repository, old, head):
        move_branch(repository, BranchMove(branch=branch, old=old, new=head))
    else:
        raise BranchMoved(branch, head, old)


def open_line_repository(git: Git, text: str, *, filters: bool = False) -> LineRepository:
    """The repository of a path or a URL, with what killed processes left there mended."""
    if is_url(text):
        clone = open_shared_clone(git, text, filters=filters)
        remove_left_locks(clone)
        return LineRepository(repository=clone, url=text)
    repository = open_repository(git, Path(text), filters=filters)
    mend_repository(repository)
    return LineRepository(repository=repository)


def mend_repository(repository: Repository) -> None:
    """Finish what killed processes of Holdfast had begun in a repository."""
    for lock in remove_left_locks(repository):
        log.warning("removed %s, which a killed process had left", lock)
    told: list[GitError] = finish_branch_moves(repository)
    for error in told:
        log.warning("a merge that was killed half way is not finished: %s", error)
