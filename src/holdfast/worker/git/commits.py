"""Commits: what an attempt left in its worktree, as one commit on top of what it started from."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from holdfast.errors import GitFailed, WorkspaceUnusable
from holdfast.worker.git.git_command import GitPlace
from holdfast.worker.git.repository import HEADS, Identity, Repository, is_ancestor, read_tree_id
from holdfast.worker.git.unfinished_work import record_work
from holdfast.worker.git.worktrees import (
    OPERATIONS,
    find_own_git_dir,
    look_at_all_files,
    place_worktree_content,
    remove_worktree_locks,
)

# Files that known agents write beside the work.
AGENT_FILES = (
    ".aider*",
    ".claude/settings.local.json",
    ".claude/worktrees",
    ".codex/log",
    ".codex/sessions",
    ".cursor/chats",
    ".gemini/tmp",
    ".goose/logs",
    ".opencode/state",
    ".specstory/history",
)
LARGEST_FILE = 10 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class CommitRules:
    """The rules for what is committed; `left_out` are paths from the worktree's top.

    `left_out_globs` name such paths where it is not known any more which files were copied.
    """

    left_out: Sequence[str] = ()
    left_out_globs: Sequence[str] = ()
    largest_file: int = LARGEST_FILE

    def leaves_out(self, name: str) -> bool:
        return (
            name in self.left_out
            or _matches(name, AGENT_FILES)
            or any(_matches_from_top(name, glob) for glob in self.left_out_globs)
        )


@dataclass(frozen=True, kw_only=True)
class AttemptWorktree:
    """The worktree of an attempt, with the commit where it began, and its branch if it has one."""

    path: Path
    start: str
    branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class LeftWork:
    """The commit of what an attempt left, and what was not committed, by name.

    `commit` is the start where nothing has changed. `identity` is that of the commit's author.
    """

    commit: str
    changed: bool
    too_large: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    identity: Identity
    own_commits: int = 0


@dataclass(frozen=True, kw_only=True)
class CommitMessage:
    subject: str
    body: str = ""
    trailers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        subject = " ".join(self.subject.split())[:200] or "Work of an attempt"
        trailers = "\n".join(
            f"{key}: {' '.join(value.split())}" for key, value in self.trailers.items()
        )
        parts = [subject, self.body.strip(), trailers]
        return "\n\n".join(part for part in parts if part) + "\n"


def commit_left_work(
    repository: Repository,
    attempt: AttemptWorktree,
    message: CommitMessage,
    rules: CommitRules | None = None,
) -> LeftWork:
    """Commit what an attempt left; raises `WorkspaceUnusable` where that cannot be told.

    Commits of the attempt's own count where they descend from its start.
    """
    worktree, start, branch = attempt.path, attempt.start, attempt.branch
    git_dir = find_own_git_dir(repository, worktree)
    head = _read_own_head(repository, worktree, git_dir, branch)
    if not is_ancestor(repository, start, head):
        reason = (
            f"its HEAD {head[:12]} does not come from {start[:12]}, where the attempt began; "
            "an agent may add commits, and not rewrite those that were there"
        )
        raise WorkspaceUnusable(worktree, reason)
    place = place_worktree_content(repository, worktree)
    look_at_all_files(repository, worktree, place, missing=False)
    rules = rules or CommitRules()
    left = _add_left_files(repository, worktree, place, rules)
    staged = _unstage(repository, worktree, head, place, rules)
    tree = repository.git.run("write-tree", place=place).text
    commit = head
    if tree != read_tree_id(repository, head):
        parts = CommitParts(tree=tree, parents=[head], message=message.text)
        commit = make_commit(repository, parts, repository.identity)
        _move_own_head(repository, git_dir, branch, commit, head)
    same = commit == start or read_tree_id(repository, commit) == read_tree_id(repository, start)
    counted = ("rev-list", "--count", f"{start}..{head}")
    own = int(repository.git.run(*counted, place=repository.objects.reading()).text)
    return LeftWork(
        commit=start if same else commit,
        changed=not same,
        too_large=tuple(sorted({*left.too_large, *staged})),
        nested=left.nested,
        identity=repository.identity,
        own_commits=own,
    )


def commit_abandoned_work(
    repository: Repository,
    attempt: AttemptWorktree,
    message: CommitMessage,
    rules: CommitRules | None = None,
) -> str | None:
    """A commit of all that a lost attempt left, however it left it; None for no change.

    Neither its branch nor its HEAD moves. A merge half way counts as the files that it left. The
    caller knows that every process which worked there has ended.
    """
    rules, worktree = rules or CommitRules(), attempt.path
    git_dir = find_own_git_dir(repository, worktree)
    remove_worktree_locks(repository, worktree)
    asked = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    found = repository.git.ask(*asked, place=repository.references_of(git_dir).reading())
    head = found.text if found.code == 0 else attempt.start
    place = place_worktree_content(repository, worktree)
    repository.git.run("read-tree", head, place=place)
    _add_left_files(repository, worktree, place, rules)
    tree = repository.git.run("write-tree", place=place).text
    if tree == read_tree_id(repository, head):
        return None if head == attempt.start else head
    parts = CommitParts(tree=tree, parents=[head], message=message.text)
    return make_commit(repository, parts, repository.identity)


def _move_own_head(
    repository: Repository, git_dir: Path, branch: str | None, commit: str, head: str
) -> None:
    lock = git_dir / "HEAD" if branch is None else repository.common / HEADS / branch
    locks = [(lock.with_name(f"{lock.name}.lock"), commit)]
    place = repository.references_of(git_dir)
    moved = ("update-ref", "-m", "holdfast: commit what an attempt left", "HEAD", commit, head)
    with record_work(repository.git, repository.common, locks, kind="reference") as work:
        repository.git.run(*moved, place=place.holding(work.descriptor))


def _read_own_head(
    repository: Repository, worktree: Path, git_dir: Path, branch: str | None
) -> str:
    for name, operation in OPERATIONS.items():
        if (git_dir / name).exists():
            reason = (
                f"a {operation} is half way there; the attempt has to finish it, or to give it up "
                f"by: git {operation} --{'skip' if operation == 'bisect' else 'abort'}"
            )
            if operation == "bisect":
                reason = (
                    "a bisect is under way there; the attempt has to end it by: git bisect reset"
                )
            raise WorkspaceUnusable(worktree, reason)
    place = repository.references_of(git_dir).reading()
    git = repository.git
    named = git.ask("symbolic-ref", "--quiet", "HEAD", place=place)
    found = named.text.removeprefix(HEADS) if named.code == 0 else None
    if found != branch:
        was = f"the branch {branch}" if branch else "a commit without a branch"
        now = f"the branch {found}" if found else "a commit without a branch"
        reason = (
            f"the attempt began on {was} and left it for {now}; it has to commit where it began"
        )
        raise WorkspaceUnusable(worktree, reason)
    try:
        return git.run("rev-parse", "--verify", "HEAD^{commit}", place=place).text
    except GitFailed as error:
        raise WorkspaceUnusable(worktree, f"its HEAD cannot be read: {error.reason}") from error


@dataclass(frozen=True, kw_only=True)
class _LeftOut:
    too_large: tuple[str, ...]
    nested: tuple[str, ...]


def _add_left_files(
    repository: Repository, worktree: Path, place: GitPlace, rules: CommitRules
) -> _LeftOut:
    """Put into the index what is to be committed, and take out what is not."""
    git = repository.git
    unmerged = git.run("ls-files", "-z", "--unmerged", place=place.reading()).names
    if unmerged:
        names = sorted({line.partition("\t")[2] for line in unmerged})
        reason = f"conflicts are left in {', '.join(names[:10])}; the attempt has to resolve them"
        raise WorkspaceUnusable(worktree, reason)
    git.ask("update-index", "-q", "--refresh", place=place)
    asked = ("diff-files", "-z", "--name-status", "--ignore-submodules=dirty")
    parts = git.run(*asked, place=place.reading()).names
    statuses = dict(zip(parts[1::2], parts[::2], strict=True))
    changed = [name for name, status in statuses.items() if status != "D"]
    new = git.run("ls-files", "-z", "--others", "--exclude-standard", place=place.reading()).names
    nested = tuple(sorted(name for name in new if name.endswith("/")))
    kept_new = [name for name in new if not name.endswith("/") and not rules.leaves_out(name)]
    too_large = tuple(
        sorted(
            name for name in (*changed, *kept_new) if _size(worktree / name) > rules.largest_file
        )
    )
    added = [name for name in (*changed, *kept_new) if name not in set(too_large)]
    removed = [name for name, status in statuses.items() if status == "D"]
    # A folder that became a link must have lost its files before.
    _update_index(repository, place, removed, "--force-remove")
    _update_index(repository, place, added, "--add", "--replace", "--remove")
    return _LeftOut(too_large=too_large, nested=nested)


def _unstage(
    repository: Repository, worktree: Path, head: str, place: GitPlace, rules: CommitRules
) -> list[str]:
    """Take out of the index what the attempt has added to it and must not be; what is too large."""
    asked = ("diff-index", "--cached", "-z", "--name-only", "--diff-filter=A")
    staged = repository.git.run(*asked, head, place=place.reading()).names
    large = [name for name in staged if _size(worktree / name) > rules.largest_file]
    others = [name for name in staged if rules.leaves_out(name)]
    _update_index(repository, place, {*large, *others}, "--force-remove")
    return large


def _update_index(
    repository: Repository, place: GitPlace, names: Iterable[str], *options: str
) -> None:
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    if given:
        repository.git.run("update-index", *options, "-z", "--stdin", place=place, given=given)


def _matches(name: str, globs: Sequence[str]) -> bool:
    """Whether a glob names a path, or a folder above it; one without a slash is a name anywhere."""
    parts = name.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    return any(
        fnmatchcase(each, glob.rstrip("/"))
        for glob in globs
        for each in (above if "/" in glob.rstrip("/") else parts)
    )


def _matches_from_top(name: str, glob: str) -> bool:
    """Whether a glob, as `copy` reads it, names a path from the top, or a folder above it."""
    parts, wanted = name.split("/"), glob.strip("/").split("/")
    if "**" in wanted:
        return fnmatchcase(name, glob.strip("/").replace("**/", "*"))
    above = zip(parts, wanted, strict=False)
    return len(wanted) <= len(parts) and all(fnmatchcase(part, each) for part, each in above)


def _size(path: Path) -> int:
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


@dataclass(frozen=True, kw_only=True)
class CommitParts:
    """The parts of a commit but for its people and dates."""

    tree: str
    parents: Sequence[str]
    message: str


def make_commit(
    repository: Repository, parts: CommitParts, author: Identity, *, date: str | None = None
) -> str:
    """Make a commit; the same parts and the same `date` (as git writes it) give the same commit."""
    people = name_person("AUTHOR", author, date) | name_person("COMMITTER", author, date)
    return make_authored_commit(repository, parts, people)


def make_authored_commit(
    repository: Repository, parts: CommitParts, people: Mapping[str, str]
) -> str:
    words = [word for parent in parts.parents for word in ("-p", parent)]
    place = repository.objects.with_variables(**people)
    given = parts.message.encode("utf-8", "surrogateescape")
    asked = ("commit-tree", parts.tree, *words, "-F", "-")
    return repository.git.run(*asked, place=place, given=given).text


def name_person(role: str, person: Identity, date: str | None = None) -> dict[str, str]:
    """The variables by which git learns of an author or a committer."""
    variables = {f"GIT_{role}_NAME": person.name, f"GIT_{role}_EMAIL": person.email}
    return variables if date is None else variables | {f"GIT_{role}_DATE": date}
