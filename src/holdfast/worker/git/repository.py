"""Repository: found by a path, with the names of its commits and its checkouts."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from holdfast.errors import GitFailed, InvalidInput, RepositoryUnusable
from holdfast.worker.git.git_command import Git, GitPlace
from holdfast.worker.git.repository_view import choose_settings, make_view, read_settings

HEADS = "refs/heads/"
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORT_SHA = re.compile(r"[0-9a-f]{7,64}")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_PROMISE = re.compile(r"extensions\.partialclone|remote\..*\.promisor", re.DOTALL)
_LONGEST_NAME = 200
_SMALL_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The author of commits; `assumed` where the user's settings name none."""

    name: str
    email: str
    assumed: bool = False


OWN_IDENTITY = Identity(name="Holdfast", email="holdfast@localhost", assumed=True)


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A worktree of a repository, with its branch; None where it is at a commit of its own."""

    path: Path
    git_dir: Path
    branch: str | None
    head: str | None


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository: `path` is its checkout, or the repository itself where it is bare.

    `subfolder` leads from there to the folder by which the repository was found.
    """

    git: Git
    path: Path
    git_dir: Path
    common: Path
    bare: bool
    shallow: bool
    subfolder: Path
    filters: bool

    @cached_property
    def settings(self) -> list[tuple[str, str, str]]:
        return read_settings(self.git, self.git_dir)

    @cached_property
    def view(self) -> Path:
        chosen = choose_settings(self.settings, self.common, filters=self.filters)
        return make_view(self.git, self.common, chosen)

    @cached_property
    def identity(self) -> Identity:
        """The author whom the user's settings name, or Holdfast."""
        told = {key: value for _, key, value in self.settings}
        name = told.get("author.name") or told.get("user.name")
        email = told.get("author.email") or told.get("user.email")
        if name and email:
            return Identity(name=name, email=email)
        return OWN_IDENTITY

    @property
    def references(self) -> GitPlace:
        """The place of commands that read and write references, and no content."""
        return self.references_of(self.common)

    def references_of(self, git_dir: Path) -> GitPlace:
        """The place of commands on the HEAD of one checkout."""
        who = OWN_IDENTITY
        people = {"GIT_COMMITTER_NAME": who.name, "GIT_COMMITTER_EMAIL": who.email}
        return GitPlace(folder=Path("/"), variables={"GIT_DIR": str(git_dir), **people})

    @property
    def objects(self) -> GitPlace:
        """The place of commands that read and write commits, trees and blobs."""
        return GitPlace(folder=self.view, variables={"GIT_DIR": str(self.view)})

    def content_of(self, worktree: Path, index: Path) -> GitPlace:
        """The place of commands on the files of a worktree, with its index."""
        variables = {"GIT_WORK_TREE": str(worktree), "GIT_INDEX_FILE": str(index)}
        return GitPlace(folder=worktree, variables={"GIT_DIR": str(self.view), **variables})


def open_repository(git: Git, path: Path, *, filters: bool = False) -> Repository:
    """The repository that a folder is in; raises `RepositoryUnusable` in words."""
    if not path.is_absolute():
        raise InvalidInput("git", f"{path} is no absolute path; take it from an input of type path")
    if not path.is_dir():
        raise RepositoryUnusable(path, "is no folder" if path.exists() else "does not exist")
    place = GitPlace(folder=path, user_settings=True, reads=True)
    asked = ("--is-bare-repository", "--is-inside-git-dir", "--is-shallow-repository")
    folders = ("--git-dir", "--git-common-dir")
    try:
        told = git.run("rev-parse", "--path-format=absolute", *asked, *folders, place=place)
    except GitFailed as error:
        raise RepositoryUnusable(path, _describe_refusal(error, path)) from error
    bare, inside, shallow, git_dir, common = told.text.split("\n")
    is_bare = bare == "true"
    if inside == "true" and not is_bare:
        raise RepositoryUnusable(path, "lies inside the folder .git of a repository; name its top")
    top = Path(git_dir) if is_bare else _find_top(git, path, Path(git_dir))
    if Path(os.path.realpath(git.program)).is_relative_to(top):
        raise RepositoryUnusable(top, f"holds {git.program} itself; take git from elsewhere")
    repository = Repository(
        git=git,
        path=top,
        git_dir=Path(git_dir),
        common=Path(common),
        bare=is_bare,
        shallow=shallow == "true",
        subfolder=Path() if is_bare else Path(os.path.realpath(path)).relative_to(top),
        filters=filters,
    )
    if any(_PROMISE.fullmatch(key) for _, key, _ in repository.settings):
        reason = "is a partial clone, which fetches content while git runs; clone it whole"
        raise RepositoryUnusable(path, reason)
    return repository


def _describe_refusal(error: GitFailed, path: Path) -> str:
    if "dubious ownership" in error.reason:
        return (
            "belongs to another user, and git refuses to work there; if you trust it, type: "
            f"git config --global --add safe.directory {path}"
        )
    if "not a git repository" in error.reason:
        return "is in no git repository; name one, or make one by: git init"
    return f"cannot be used as a git repository: {error.reason}"


def _find_top(git: Git, path: Path, git_dir: Path) -> Path:
    """The top of a checkout, which must be where the repository was found."""
    place = GitPlace(folder=path, user_settings=True, reads=True)
    try:
        top = Path(git.run("rev-parse", "--show-toplevel", place=place).text)
    except GitFailed as error:
        raise RepositoryUnusable(path, f"has no checkout: {error.reason}") from error
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(top) or not (top / ".git").exists():
        reason = f"is a repository whose files lie elsewhere, in {top} (its core.worktree)"
        raise RepositoryUnusable(git_dir, reason)
    return top


def check_branch_name(git: Git, name: str) -> str:
    """A name that a branch may have; raises `InvalidInput` for any other."""
    if not name or len(name) > _LONGEST_NAME:
        raise InvalidInput("branch", f"must have 1 to {_LONGEST_NAME} characters")
    if _CONTROL.search(name) or name.startswith(("-", "refs/")) or name in {"HEAD", "@"}:
        raise InvalidInput("branch", f"{name!r} is no name for a branch")
    place = GitPlace(folder=Path("/"), reads=True)
    if git.ask("check-ref-format", HEADS + name, place=place).code:
        raise InvalidInput("branch", f"{name!r} is no name that git takes for a branch")
    return name


def resolve_commit(repository: Repository, name: str) -> str:
    """The commit that a branch, a tag, `HEAD` or a hash names; raises `RepositoryUnusable`."""
    where = repository.path
    if _SHA.fullmatch(name):
        return _resolve(repository, name) or _refuse_name(where, name)
    if name == "HEAD":
        found = _resolve(repository, "HEAD")
        if found is None:
            reason = "has no commit yet; make a first one by: git commit --allow-empty -m Begin"
            raise RepositoryUnusable(where, reason)
        return found
    full = name.startswith("refs/")
    check_branch_name(repository.git, name.removeprefix("refs/") if full else name)
    roots = ("",) if full else (HEADS, "refs/tags/", "refs/remotes/")
    for root in roots:
        found = _resolve(repository, root + name)
        if found is not None:
            return found
    found = _resolve(repository, name) if _SHORT_SHA.fullmatch(name) else None
    return found or _refuse_name(where, name)


def _refuse_name(where: Path, name: str) -> str:
    raise RepositoryUnusable(
        where, f"has no commit, branch or tag {name!r}; list them by: git branch -a"
    )


def _resolve(repository: Repository, name: str) -> str | None:
    place = repository.references_of(repository.git_dir).reading()
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        answer = repository.git.ask(*asked, place=place)
    except GitFailed:
        # A hash of what is no commit, or of several.
        return None
    return answer.text if answer.code == 0 else None


def read_branch(repository: Repository, branch: str) -> str | None:
    """The commit of a branch; None for a branch that does not exist."""
    return read_reference(repository, HEADS + branch)


def find_named_branch(repository: Repository, branch: str) -> str:
    """The branch that a branch is another name of; itself for any that has its own commit."""
    place = repository.references.reading()
    named = repository.git.ask("symbolic-ref", "--quiet", HEADS + branch, place=place)
    if named.code != 0:
        return branch
    if not named.text.startswith(HEADS):
        raise RepositoryUnusable(
            repository.path, f"has a branch {branch} that stands for {named.text}, which is none"
        )
    return named.text.removeprefix(HEADS)


def read_reference(repository: Repository, reference: str) -> str | None:
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", reference)
    answer = repository.git.ask(*asked, place=repository.references.reading())
    return answer.text if answer.code == 0 else None


def is_ancestor(repository: Repository, older: str, newer: str) -> bool:
    """Whether a commit is another one, or among those that it came from."""
    asked = ("merge-base", "--is-ancestor", older, newer)
    return repository.git.ask(*asked, place=repository.objects.reading()).code == 0


def has_commit(repository: Repository, commit: str) -> bool:
    """Whether a commit is here, by its whole hash."""
    asked = ("cat-file", "-e", f"{commit}^{{commit}}")
    place = repository.objects.reading()
    return repository.git.ask(*asked, place=place, codes=(0, 1, 128)).code == 0


def list_tracked(repository: Repository, worktree: Path | None = None) -> frozenset[str]:
    """The paths that git tracks in the checkout of a repository, or in a worktree of it."""
    path = repository.path if worktree is None else worktree
    git_dir = repository.git_dir if worktree is None else find_git_dir(worktree)
    if git_dir is None:
        return frozenset()
    place = repository.content_of(path, git_dir / "index").reading()
    return frozenset(repository.git.run("ls-files", "-z", "--cached", place=place).names)


def read_tree_id(repository: Repository, commit: str) -> str:
    asked = ("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
    return repository.git.run(*asked, place=repository.objects.reading()).text


def list_checkouts(repository: Repository) -> list[Checkout]:
    """The checkouts of a repository, those of its worktrees included, whose folders are there."""
    told = repository.git.run(
        "worktree", "list", "--porcelain", "-z", place=repository.references.reading()
    )
    found = []
    for block in os.fsdecode(told.output).split("\0\0"):
        facts = dict(line.partition(" ")[::2] for line in block.split("\0") if line)
        path = Path(facts.get("worktree", ""))
        git_dir = None if "bare" in facts else find_git_dir(path)
        if "worktree" in facts and git_dir is not None:
            branch = facts.get("branch", "").removeprefix(HEADS) or _branch_in_work(git_dir)
            found.append(
                Checkout(path=path, git_dir=git_dir, branch=branch, head=facts.get("HEAD"))
            )
    return found


def list_foreign_filters(repository: Repository) -> set[str]:
    """The names of the filters that the user's git runs in a repository, and Holdfast does not."""
    taken = choose_settings(repository.settings, repository.common, filters=repository.filters)
    keys = {key for _, key, _ in repository.settings if key.startswith("filter.")}
    return {key.partition(".")[2].rpartition(".")[0] for key in keys - taken.keys()}


def find_git_dir(worktree: Path) -> Path | None:
    """The folder of a checkout's index and HEAD; None where there is no checkout."""
    link = worktree / ".git"
    if link.is_dir():
        return link
    text = read_small_file(link)
    if text is None or not text.startswith("gitdir: ") or "\0" in text:
        return None
    found = (worktree / text.removeprefix("gitdir: ").rstrip("\n")).resolve()
    return found if found.is_dir() else None


def read_small_file(path: Path) -> str | None:
    """The text of a file of git's own; None where an agent has put something else there."""
    try:
        # A pipe that nobody writes into would be waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.fsdecode(file.read(_SMALL_BYTES))


def _branch_in_work(git_dir: Path) -> str | None:
    """The branch that a rebase under way will move."""
    for folder in ("rebase-merge", "rebase-apply"):
        try:
            return (git_dir / folder / "head-name").read_text().strip().removeprefix(HEADS)
        except OSError:
            continue
    return None
