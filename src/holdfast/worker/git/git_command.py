"""Git command: the program git, run so that it neither starts foreign programs nor waits for ever.

Git reads its settings from the repository that it works on, and many of them name programs. So only
commands that read and write references are run on a repository itself. Whatever touches content is
run in a view of it (`repository_view`), which has no settings but harmless ones.
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Self

from holdfast.errors import GitFailed, GitMissing, InvalidInput

# The first with `git merge-tree --write-tree`.
OLDEST_GIT = (2, 38)
SECONDS = 120.0
GRACE_SECONDS = 5.0
CHUNK_BYTES = 64 * 1024
OUTPUT_BYTES = 64 * 1024 * 1024
ERROR_BYTES = 16 * 1024
# A question for a password fails instead of waiting for a person.
_NOBODY = shutil.which("false") or "/bin/false"
_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.pager=cat",
    f"core.editor={_NOBODY}",
    f"core.askPass={_NOBODY}",
    "core.alternateRefsCommand=",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "protocol.ext.allow=never",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "push.gpgSign=false",
    "advice.detachedHead=false",
    "advice.addEmbeddedRepo=false",
    "advice.graftFileDeprecated=false",
)
_ALWAYS = {
    "LC_ALL": "C",
    "GIT_ADVICE": "0",
    "GIT_ASKPASS": _NOBODY,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_EDITOR": _NOBODY,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": _NOBODY,
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": _NOBODY,
    "SSH_ASKPASS_REQUIRE": "never",
}
_NO_USER_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@dataclass(frozen=True, kw_only=True)
class GitPlace:
    """The place where git works: its folder, and the parts of the repository it is told of.

    `user_settings` are read only by commands that find a repository or speak with another one.
    `held` are descriptors that git inherits: a lock on them lasts as long as git runs.
    """

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    user_settings: bool = False
    reads: bool = False
    held: tuple[int, ...] = ()

    def reading(self) -> Self:
        """The same place for a command that must take no lock."""
        return replace(self, reads=True)

    def holding(self, descriptor: int) -> Self:
        return replace(self, held=(*self.held, descriptor))

    def with_variables(self, **variables: str) -> Self:
        return replace(self, variables={**self.variables, **variables})


@dataclass(frozen=True, kw_only=True, slots=True)
class GitAnswer:
    """The end of a git command: `cut` where its output was longer than what was asked for."""

    code: int
    output: bytes
    error: str
    cut: bool = False

    @property
    def text(self) -> str:
        return os.fsdecode(self.output).rstrip("\n")

    @property
    def names(self) -> list[str]:
        """The names of an output that ends each with NUL."""
        return [os.fsdecode(each) for each in self.output.split(b"\0") if each]


@dataclass(frozen=True, kw_only=True)
class Git:
    """The program git of this machine, with the folder of what Holdfast keeps about repositories.

    `home` is private to the user: views of repositories and records of unfinished moves lie there.
    """

    program: Path
    version: tuple[int, ...]
    home: Path

    @classmethod
    def find(cls, home: Path) -> Self:
        """The git of the search path; raises `GitMissing` for none, or one that is too old."""
        looked_in = [each for each in os.get_exec_path() if Path(each).is_absolute()]
        found = shutil.which("git", path=os.pathsep.join(looked_in))
        least = ".".join(map(str, OLDEST_GIT))
        if found is None:
            raise GitMissing(f"no git is installed here; install git {least} or later")
        program = Path(found)
        git = cls(program=program, version=(), home=home)
        told = git.run("version", place=GitPlace(folder=Path("/"))).text
        number = re.search(r"\d+(?:\.\d+)+", told)
        version = tuple(map(int, number[0].split("."))) if number else ()
        if version < OLDEST_GIT:
            have = number[0] if number else told
            raise GitMissing(f"{program} is git {have}; install git {least} or later")
        return replace(git, version=version)

    def run(self, *arguments: str, place: GitPlace, given: bytes = b"") -> GitAnswer:
        """Run git; raises `GitFailed` for any code but 0."""
        return self.ask(*arguments, place=place, given=given, codes=(0,))

    def ask(
        self,
        *arguments: str,
        place: GitPlace,
        given: bytes = b"",
        codes: Sequence[int] = (0, 1),
        limit: int | None = None,
    ) -> GitAnswer:
        """Run git where some codes are answers; `limit` cuts its output instead of failing."""
        if any("\0" in each for each in arguments):
            raise InvalidInput("git", "an argument holds a NUL character")
        answer = _Call(self.program, arguments, place, given, limit).finish()
        if answer.code not in codes and not answer.cut:
            raise GitFailed(arguments, str(place.folder), answer.code, answer.error)
        return answer


class _Call:
    """One run of git: its input is fed and its output read until it ends or its time is over."""

    def __init__(
        self,
        program: Path,
        arguments: Sequence[str],
        place: GitPlace,
        given: bytes,
        limit: int | None,
    ) -> None:
        self._arguments = arguments
        self._place = place
        self._given = memoryview(given)
        self._limit = OUTPUT_BYTES if limit is None else limit
        self._may_cut = limit is not None
        self._output, self._error = bytearray(), bytearray()
        chosen = [word for setting in _SETTINGS for word in ("-c", setting)]
        locks = ["--no-optional-locks"] if place.reads else []
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the program is git, and no shell
                [str(program), "--no-pager", *locks, *chosen, *arguments],
                stdin=subprocess.PIPE if given else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=place.folder,
                env=_make_environment(place),
                bufsize=0,
                pass_fds=place.held,
                start_new_session=True,
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise GitFailed(arguments, str(place.folder), None, reason) from error

    def finish(self) -> GitAnswer:
        until = time.monotonic() + SECONDS
        with self._process as process, selectors.DefaultSelector() as selector:
            try:
                cut = self._exchange(selector, until)
                if not cut:
                    process.wait(max(0.01, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                reason = f"did not end within {SECONDS:g} seconds, and was stopped"
                raise GitFailed(self._arguments, str(self._place.folder), None, reason) from None
            finally:
                if process.poll() is None:
                    self._end()
        if cut and not self._may_cut:
            reason = f"wrote more than {self._limit} bytes"
            raise GitFailed(self._arguments, str(self._place.folder), None, reason)
        error = self._error.decode("utf-8", "replace").strip()
        output = bytes(self._output[: self._limit])
        return GitAnswer(code=process.returncode, output=output, error=error, cut=cut)

    def _exchange(self, selector: selectors.BaseSelector, until: float) -> bool:
        """Feed and read until git closes its ends; whether it wrote more than the limit."""
        process = self._process
        for pipe, kept in ((process.stdout, self._output), (process.stderr, self._error)):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, kept)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            left = until - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready:
                raise subprocess.TimeoutExpired("git", SECONDS)
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    self._feed(selector, process.stdin)
                else:
                    self._read(selector, key)
            if len(self._output) > self._limit:
                return True
        return False

    def _feed(self, selector: selectors.BaseSelector, pipe: IO[bytes]) -> None:
        try:
            self._given = self._given[os.write(pipe.fileno(), self._given[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:
            # Git reads no further.
            self._given = self._given[:0]
        if not self._given:
            selector.unregister(pipe)
            pipe.close()

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, CHUNK_BYTES)
        if not data:
            selector.unregister(key.fileobj)
        elif key.data is self._output or len(self._error) < ERROR_BYTES:
            key.data.extend(data)

    def _end(self) -> None:
        """End git and all it started; a git that is asked to end removes its own locks."""
        for number, patience in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, None)):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
                return


def _make_environment(place: GitPlace) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {} if place.user_settings else _NO_USER_SETTINGS
    ssh = {"GIT_SSH_COMMAND": _NOBODY}
    return kept | _ALWAYS | settings | ssh | dict(place.variables)


def batch_ssh(command: str | None) -> str:
    """The command of ssh that asks nobody, from the one that a user has set."""
    return f"{command or 'ssh'} -o BatchMode=yes -o ConnectTimeout=20"


def quote_command(arguments: Sequence[str]) -> str:
    """A git command as a person types it."""
    return shlex.join(["git", *arguments])
