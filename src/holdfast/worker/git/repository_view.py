"""Repository view: the objects of a repository under settings that name no program.

A view is a folder that git takes for a repository: its objects are those of the real one, and its
settings are those of an allow-list, whose values are data. So no filter, driver, hook or monitor of
the repository can run, whatever its name is. Filters of the user's own settings (git-lfs) are taken
over where a workspace asks for them. A view is named by its content, and is never changed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from holdfast.worker.git.git_command import Git, GitPlace

# Settings that change what git reads and writes, and that name no program.
_HARMLESS = frozenset(
    f"core.{name}"
    for name in (
        "autocrlf",
        "bigfilethreshold",
        "checkstat",
        "eol",
        "filemode",
        "ignorecase",
        "longpaths",
        "precomposeunicode",
        "protecthfs",
        "protectntfs",
        "sharedrepository",
        "symlinks",
        "trustctime",
    )
) | {"checkout.thresholdforparallelism", "checkout.workers", "index.version"}
# The user's own files, and never those that a repository names.
_USERS_FILES = frozenset({"core.attributesfile", "core.excludesfile"})
_PEOPLE = frozenset(
    f"{who}.{what}" for who in ("author", "committer", "user") for what in ("email", "name")
)
_USER_SCOPES = frozenset({"global", "system"})
_FILTER_SETTINGS = frozenset({"clean", "process", "required", "smudge"})
_FORMAT = "extensions.objectformat"
_FIXED = {
    "core.bare": "false",
    "core.repositoryformatversion": "1",
    "core.logallrefupdates": "false",
    "diff.renames": "true",
    "merge.conflictstyle": "merge",
}
_SHARED_FILES = ("info/exclude", "info/attributes", "shallow")


def read_settings(git: Git, git_dir: Path) -> list[tuple[str, str, str]]:
    """The settings of a repository and of its user: scope, key and value, in their order."""
    place = GitPlace(
        folder=Path("/"), variables={"GIT_DIR": str(git_dir)}, user_settings=True, reads=True
    )
    answer = git.run("config", "--list", "--show-scope", "-z", place=place)
    parts = os.fsdecode(answer.output).split("\0")
    settings = []
    for scope, text in zip(parts[::2], parts[1::2], strict=False):
        key, separator, value = text.partition("\n")
        settings.append((scope, key, value if separator else "true"))
    return settings


def choose_settings(
    settings: list[tuple[str, str, str]], common: Path, *, filters: bool
) -> dict[str, str]:
    """The settings of a view: harmless ones, and with `filters` those of the user's own filters."""
    chosen: dict[str, str] = {}
    for scope, key, value in settings:
        # git-lfs fetches from the remote of the repository.
        is_remote = key.startswith("remote.") and key.endswith(".url")
        is_users = key in _USERS_FILES or (filters and _is_of_filter(key))
        if (
            key in _HARMLESS | _PEOPLE
            or key == _FORMAT
            or (scope in _USER_SCOPES and is_users)
            or (filters and is_remote)
        ):
            chosen[key] = value
    if filters:
        chosen["lfs.storage"] = str(common / "lfs")
    return chosen | _FIXED


def _is_of_filter(key: str) -> bool:
    return key.startswith("filter.") and key.rpartition(".")[2] in _FILTER_SETTINGS


def make_view(git: Git, common: Path, settings: Mapping[str, str]) -> Path:
    """The folder of the view of a repository with some settings; made where it is not there."""
    text = "".join(_write_setting(key, value) for key, value in sorted(settings.items()))
    shared = [name for name in _SHARED_FILES if (common / name).exists()]
    named = "\0".join([str(common), *shared, text])
    view = git.home / "views" / sha256(os.fsencode(named)).hexdigest()[:24]
    if view.is_dir():
        return view
    view.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="new-", dir=view.parent))
    (made / "HEAD").write_text("ref: refs/heads/none\n")
    (made / "config").write_bytes(os.fsencode(text))
    (made / "refs").mkdir()
    (made / "info").mkdir()
    (made / "objects").symlink_to(common / "objects")
    for name in shared:
        (made / name).symlink_to(common / name)
    try:
        made.rename(view)
    except OSError:
        # Another worker was first, with the same content.
        shutil.rmtree(made)
        if not view.is_dir():
            raise
    return view


def _write_setting(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    heading = f'[{section} "{_escape(middle)}"]' if middle else f"[{section}]"
    text = _escape(value).replace("\n", "\\n").replace("\t", "\\t")
    return f'{heading}\n\t{name} = "{text}"\n'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
