"""Real repositories of tests, made and looked at by the real git, hostile ones among them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from holdfast.worker.git.git_command import Git
from holdfast.worker.git.repository import Repository, open_repository

USER_SETTINGS = "[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"


class World:
    """A folder with a user of git, the user's settings, and repositories."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = folder / "user/.gitconfig"
        self.settings.parent.mkdir()
        self.settings.write_text(USER_SETTINGS)
        self.git = Git.find(folder / "holdfast")

    def repository(self, name: str = "repository", *, commit: bool = True) -> Path:
        path = self.folder / name
        path.mkdir(parents=True)
        run(path, "init", "--quiet")
        if commit:
            write(path, {"a.txt": "one\n", "folder/b.txt": "b\n"})
            save(path, "Begin")
        return path

    def open(self, path: Path, *, filters: bool = False) -> Repository:
        return open_repository(self.git, path, filters=filters)


def run(path: Path, *arguments: str, code: int | None = 0) -> str:
    """What the user's own git says."""
    done = subprocess.run(
        ["git", *arguments], cwd=path, capture_output=True, text=True, check=False
    )
    assert code is None or done.returncode == code, done.stderr
    return done.stdout.rstrip("\n")


def write(path: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def save(path: Path, subject: str) -> str:
    """Commit everything, as a user does."""
    run(path, "add", "--all")
    run(path, "commit", "--quiet", "--allow-empty", "-m", subject)
    return head(path)


def commit_files(path: Path, start: str, files: dict[str, str | bytes | None]) -> str:
    """A commit on top of another one, in no checkout; the files that are None are removed."""
    index = path.parent / f"{path.name}.index"
    index.unlink(missing_ok=True)
    environment = {**os.environ, "GIT_INDEX_FILE": str(index)}

    def ask(*arguments: str, given: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=path,
            env=environment,
            input=given,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    ask("read-tree", start)
    for name, content in files.items():
        if content is None:
            ask("update-index", "--force-remove", name)
        else:
            data = content.encode() if isinstance(content, str) else content
            blob = ask("hash-object", "-w", "--stdin", given=data)
            ask("update-index", "--add", "--replace", "--cacheinfo", f"100644,{blob},{name}")
    made = ask("commit-tree", ask("write-tree"), "-p", start, "-m", f"Change {', '.join(files)}")
    index.unlink(missing_ok=True)
    return made


def head(path: Path, name: str = "HEAD") -> str:
    return run(path, "rev-parse", "--verify", name)


def show(path: Path, commit: str, name: str) -> str:
    return run(path, "show", f"{commit}:{name}")


def tree(path: Path, commit: str = "HEAD") -> list[str]:
    return run(path, "ls-tree", "-r", "--name-only", commit).split("\n")


def plant(path: Path, canary: Path) -> None:
    """Have a repository name programs wherever git lets it, each of which touches the canary."""
    program = path / "shout.sh"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {canary}\ncat\n')
    program.chmod(0o755)
    shout = str(program)
    for name in (
        "post-checkout",
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
        "post-merge",
        "commit-msg",
        "prepare-commit-msg",
        "pre-push",
        "post-rewrite",
        "fsmonitor-watchman",
        "pre-merge-commit",
    ):
        hook = path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho hook {name} >> {canary}\n")
        hook.chmod(0o755)
    included = path / ".git/more"
    included.write_text(f'[filter "included"]\n\tclean = {shout}\n\tsmudge = {shout}\n')
    settings = {
        "core.fsmonitor": shout,
        "core.sshCommand": shout,
        "core.askPass": shout,
        "core.pager": shout,
        "core.editor": shout,
        "core.alternateRefsCommand": shout,
        "core.gitProxy": shout,
        "credential.helper": f"!{shout}",
        "gpg.program": shout,
        "commit.gpgSign": "true",
        "tag.gpgSign": "true",
        "diff.external": shout,
        "diff.loud.textconv": shout,
        "diff.loud.command": shout,
        "merge.loud.driver": shout,
        "filter.loud.clean": shout,
        "filter.loud.smudge": shout,
        "filter.loud.required": "true",
        "filter.odd name.with.dots.process": shout,
        "alias.read-tree": f"!{shout}",
        "uploadpack.packObjectsHook": shout,
        "include.path": "more",
        "pager.diff": shout,
        "sequence.editor": shout,
        "interactive.diffFilter": shout,
        "trace2.eventTarget": shout,
        "submodule.recurse": "true",
        "core.hooksPath": str(path / ".git/hooks"),
        "extensions.worktreeConfig": "true",
    }
    for key, value in settings.items():
        run(path, "config", key, value)
    (path / ".git/config.worktree").write_text(
        f'[filter "kept"]\n\tclean = {shout}\n\tsmudge = {shout}\n'
    )
    attributes = (
        "*.txt filter=loud diff=loud merge=loud\n*.md filter=included\n*.rst filter=kept\n"
        "*.odd filter=odd\\ name.with.dots\n*.bin diff=loud -merge\n"
    )
    (path / ".git/info").mkdir(exist_ok=True)
    (path / ".git/info/attributes").write_text(attributes)
    (path / ".gitattributes").write_text(attributes)
