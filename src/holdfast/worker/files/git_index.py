"""Git index: whether git tracks a path, found without running what its repository configures."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from pathlib import Path

# The signature of an index, and the versions of its format that write every name in full.
_SIGNATURE, _PLAIN_VERSIONS = b"DIRC", (b"\0\0\0\2", b"\0\0\0\3")
# Extensions by which an index keeps names in another file, or lists folders for their files.
_INDIRECT_EXTENSIONS = (b"link", b"sdir")
_GIT_SECONDS = 20.0
# Git itself reads a larger index; it refuses one that belongs to another user.
_LARGEST_INDEX = 512 * 1024 * 1024
# With these settings git runs nothing that a repository configures: no monitor, hook or network.
_SAFE_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.sshCommand=false",
    "protocol.allow=never",
)


def is_tracked(path: Path) -> bool | None:
    """Whether git tracks a path or something in it; None where that cannot be found out."""
    repository = _repository_of(path)
    if repository is None or _is_surely_untracked(repository / ".git", path.name):
        return False
    return _ask_git(repository, path)


def _repository_of(path: Path) -> Path | None:
    real = Path(os.path.realpath(path.parent))
    return next((each for each in (real, *real.parents) if os.path.lexists(each / ".git")), None)


def _is_surely_untracked(git: Path, name: str) -> bool:
    """Whether the index surely lists no path with the name, which mostly spares running git."""
    try:
        listed = _read_file(_folder_of(git) / "index")
    except FileNotFoundError:
        # A repository without an index has never had a file added or checked out.
        return (git / "HEAD").exists()
    except (OSError, ValueError):
        return False
    if listed[:4] != _SIGNATURE or listed[4:8] not in _PLAIN_VERSIONS:
        return False
    named, searched = os.fsencode(name), listed
    if sys.platform != "linux":
        # File systems elsewhere may ignore case.
        named, searched = named.lower(), listed.lower()
    return named not in searched and not any(each in listed for each in _INDIRECT_EXTENSIONS)


def _folder_of(git: Path) -> Path:
    """The folder of a repository's index; in a linked worktree, `.git` is a file that names it."""
    if git.is_dir():
        return git
    said = _read_file(git).removeprefix(b"gitdir:").strip()
    return git.parent / os.fsdecode(said)


def _read_file(path: Path) -> bytes:
    """The content of a regular file of bearable size; a pipe would block its reader."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is no file", str(path))
    if found.st_size > _LARGEST_INDEX:
        raise OSError(errno.EFBIG, "is too large", str(path))
    return path.read_bytes()


def _ask_git(repository: Path, path: Path) -> bool | None:
    import subprocess  # noqa: PLC0415 - hardly ever wanted, and every command would import it

    # A program `git` inside the repository itself is never run.
    looked_in = [each for each in os.get_exec_path() if Path(each).is_absolute()]
    git = shutil.which("git", path=os.pathsep.join(looked_in))
    if git is None or Path(os.path.realpath(git)).is_relative_to(repository):
        return None
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    chosen = [word for setting in _SAFE_SETTINGS for word in ("-c", setting)]
    within = os.path.relpath(Path(os.path.realpath(path.parent)) / path.name, repository)
    # Without `--work-tree`, settings of the repository could say that its files lie elsewhere.
    where = ["-C", str(repository), "--work-tree=."]
    asked = [git, *chosen, "--literal-pathspecs", *where, "ls-files", "-z", "--"]
    try:
        told = subprocess.run(  # noqa: S603 - the program is git, its arguments are ours
            [*asked, within],
            env=kept | quiet,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return bool(told.stdout) if told.returncode == 0 else None
