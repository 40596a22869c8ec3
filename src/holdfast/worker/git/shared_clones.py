"""Shared clones: one bare repository for each URL, from which worktrees are made, and pushes."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.errors import BranchMoved, GitFailed, InvalidInput, RepositoryUnusable
from holdfast.worker.git.git_command import Git, GitAnswer, GitPlace, batch_ssh
from holdfast.worker.git.repository import HEADS, Repository, open_repository, read_reference

# Below it are the branches of the remote as they were fetched last.
FETCHED = "refs/holdfast/fetched/"
_SCHEMES = frozenset({"file", "git", "http", "https", "ssh", "git+ssh"})
# git@host:path
_SSH_PLACE = re.compile(r"[\w.~-]+@[\w.-]+:(?!/?/)[^\s:][^\s]*")
_PERSON = re.compile(r"://.*@", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


def is_url(text: str) -> bool:
    """Whether a text names a repository elsewhere, and no path of this machine."""
    return "://" in text or bool(_SSH_PLACE.fullmatch(text))


def check_url(url: str) -> str:
    """A URL that git may be given; raises `InvalidInput` for any other."""
    # What stands before the host may hold a password.
    shown = _PERSON.sub("://…@", url)
    if _CONTROL.search(url) or url.startswith("-") or "::" in url:
        raise InvalidInput("git", f"{shown!r} is no URL of a repository")
    if _SSH_PLACE.fullmatch(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidInput("git", f"{shown!r} is no URL of a repository: {error}") from error
    host = (parts.netloc or "").rpartition("@")[2]
    if parts.scheme not in _SCHEMES or host.startswith("-") or not (host or parts.path):
        kinds = ", ".join(sorted(_SCHEMES))
        raise InvalidInput("git", f"{shown!r} is no URL of a repository ({kinds})")
    if parts.password:
        reason = "holds a password; let a credential helper of git's settings or a key give it"
        raise InvalidInput("git", reason)
    return url


def open_shared_clone(git: Git, url: str, *, filters: bool = False) -> Repository:
    """The bare repository of a URL on this machine, made where it is not there; empty at first."""
    check_url(url)
    folder = git.home / "clones" / f"{sha256(url.encode()).hexdigest()[:24]}.git"
    with _lock(folder):
        if not (folder / "HEAD").exists():
            place = GitPlace(folder=folder.parent)
            git.run("init", "--quiet", "--bare", "--template=", str(folder), place=place)
    return open_repository(git, folder, filters=filters)


def fetch_branches(clone: Repository, url: str, names: Sequence[str]) -> dict[str, str]:
    """Fetch references of the remote by their full names; those that are there, with commits."""
    there = list_remote(clone, url, names)
    wanted = {name: _fetched_name(name) for name in there}
    if wanted:
        asked = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
        specs = [f"+{name}:{kept}" for name, kept in wanted.items()]
        with _lock(clone.path):
            _speak(clone, url, *asked, "--end-of-options", url, *specs)
    found = {name: read_reference(clone, kept) for name, kept in wanted.items()}
    return {name: commit for name, commit in found.items() if commit is not None}


def fetch_below(clone: Repository, url: str, prefix: str, kept_below: str | None = None) -> None:
    """Fetch all references below a prefix of full names, under the same names or below another."""
    asked = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
    with _lock(clone.path):
        _speak(clone, url, *asked, "--end-of-options", url, f"+{prefix}*:{kept_below or prefix}*")


def _fetched_name(name: str) -> str:
    return FETCHED + name.removeprefix("refs/")


def list_remote(clone: Repository, url: str, names: Sequence[str] = ()) -> dict[str, str]:
    """The references of a remote by name, `HEAD` too; with `names` those alone."""
    told = _speak(clone, url, "ls-remote", "--quiet", "--end-of-options", url, *names).output
    lines = os.fsdecode(told).splitlines()
    found = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    return {name: commit for name, commit in found.items() if not names or name in names}


def find_remote_branch(clone: Repository, url: str) -> str | None:
    """The branch that the HEAD of a remote stands for."""
    asked = ("ls-remote", "--quiet", "--symref", "--end-of-options", url, "HEAD")
    for line in os.fsdecode(_speak(clone, url, *asked).output).splitlines():
        if line.startswith("ref: "):
            return line.removeprefix("ref: ").partition("\t")[0].removeprefix(HEADS)
    return None


def push_commit(
    clone: Repository, url: str, commit: str, reference: str, *, old: str | None
) -> None:
    """Push a commit to a reference of the remote that is still at `old`; idempotent.

    Raises `BranchMoved` where it is elsewhere. A reference that must not be there yet has no `old`.
    """
    if not reference.startswith("refs/"):
        raise InvalidInput("reference", f"{reference!r} is no full name of a reference")
    lease = f"--force-with-lease={reference}:{old or ''}"
    asked = ("push", "--quiet", "--porcelain", "--no-verify", "--no-recurse-submodules", lease)
    try:
        _speak(clone, url, *asked, "--end-of-options", url, f"{commit}:{reference}")
    except RepositoryUnusable:
        found = list_remote(clone, url, [reference]).get(reference)
        if found == commit:
            return
        if found != old:
            raise BranchMoved(reference.removeprefix(HEADS), old, found) from None
        raise


def _speak(clone: Repository, url: str, *arguments: str) -> GitAnswer:
    settings = {key: value for scope, key, value in clone.settings if scope != "local"}
    ssh = batch_ssh(settings.get("core.sshcommand"))
    place = GitPlace(
        folder=Path("/"),
        variables={"GIT_DIR": str(clone.path), "GIT_SSH_COMMAND": ssh},
        user_settings=True,
    )
    try:
        return clone.git.run(*arguments, place=place)
    except GitFailed as error:
        reason = f"cannot be reached or refuses: {error.reason}"
        raise RepositoryUnusable(url, reason) from error


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One process at a time makes a clone or fetches into it; a killed one frees the lock."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
