"""Command environment: the variables, the input file and the output file of a command."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from holdfast.model.task import Assignment
from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.worker.files.homes import named_home
from holdfast.worker.files.state_paths import StatePath

SHORT_PROMPT = 32 * 1024
HOME_VARIABLE = "HOLDFAST_HOME"
PASSWORDS = frozenset({"password", "sslpassword"})
# By these a git tells the programs that it starts (hooks, aliases) where its repository is.
_REPOSITORY = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES",
        "COMMON_DIR",
        "DIR",
        "GRAFT_FILE",
        "IMPLICIT_WORK_TREE",
        "INDEX_FILE",
        "NAMESPACE",
        "OBJECT_DIRECTORY",
        "PREFIX",
        "SHALLOW_FILE",
        "WORK_TREE",
    )
)


@dataclass(frozen=True, kw_only=True)
class CommandFiles:
    """The directory of one attempt, with the input file and the output file of its command."""

    folder: StatePath

    @property
    def input(self) -> StatePath:
        return self.folder / "input.json"

    @property
    def output(self) -> StatePath:
        return self.folder / "output.json"

    @property
    def schema(self) -> StatePath:
        return self.folder / "schema.json"

    def write_input(self, values: Mapping[str, Any]) -> None:
        """Write the input file, and remove an output file from before."""
        self.output.remove()
        self.input.write(json.dumps(values, ensure_ascii=False).encode())

    def read_output(self, limit: int) -> bytes | None:
        """The output, at most one byte more than the limit; None if there is no output file."""
        try:
            return self.output.read(limit + 1)
        except OSError:
            return None


@contextmanager
def make_command_files(directory: StatePath) -> Iterator[CommandFiles]:
    try:
        made = directory.make_folder()
    except FileExistsError:
        # A directory that exists already is not removed afterwards.
        directory = directory.parent / f"{directory.name}.{os.urandom(6).hex()}"
        made = directory.make_folder()
    try:
        yield CommandFiles(folder=directory)
    finally:
        directory.remove_folder(made)


def make_attempt_variables(assignment: Assignment, files: CommandFiles, url: str) -> dict[str, str]:
    """The variables that tell a command its attempt and its store."""
    most = assignment.usd_per_attempt
    named = {
        "HOLDFAST_TASK": assignment.task_id,
        "HOLDFAST_RUN": assignment.run_id,
        "HOLDFAST_ATTEMPT": str(assignment.attempt),
        "HOLDFAST_ATTEMPT_TOKEN": assignment.token,
        "HOLDFAST_STEP": assignment.step,
        "HOLDFAST_WORKFLOW": assignment.workflow,
        "HOLDFAST_USD_PER_ATTEMPT": None if most is None else f"{most:g}",
        "HOLDFAST_INPUT": str(files.input),
        "HOLDFAST_OUTPUT": str(files.output),
        "HOLDFAST_DB": None if is_server_url(url) else remove_password(make_absolute(url)),
    }
    return {name: value for name, value in named.items() if value is not None}


def copy_environment(secrets: Collection[str]) -> dict[str, str]:
    """The worker's environment without secrets and without the worker's own variables."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in secrets and not _is_workers(name)
    }
    # The command may run in another folder than its worker.
    home = named_home(kept)
    return kept if home is None else kept | {HOME_VARIABLE: str(home)}


def leave_repository(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the repository that a git named to the worker which it started."""
    return {name: value for name, value in environment.items() if name not in _REPOSITORY}


def _is_workers(name: str) -> bool:
    return name.startswith("HOLDFAST_") and name != HOME_VARIABLE


def remove_password(url: str) -> str:
    """The URL of the same store without a password, which commands must bring themselves."""
    if not is_postgresql(url):
        return url
    # Imported here, because only a store on PostgreSQL needs the driver.
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    settings = conninfo_to_dict(url)
    kept = {name: value for name, value in settings.items() if name not in PASSWORDS}
    return url if kept == settings else f"postgresql:///?{urlencode(kept)}"


def is_server_url(url: str) -> bool:
    """Whether a worker reaches its store through a server."""
    return url.startswith(("http://", "https://"))


def make_absolute(url: str) -> str:
    """A URL that means the same store in every working directory."""
    return (
        url
        if is_postgresql(url) or is_server_url(url)
        else f"sqlite:///{sqlite_path(url).absolute()}"
    )
