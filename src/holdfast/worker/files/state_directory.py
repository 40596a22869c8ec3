"""State directories: what a worker keeps outside of the store, as logs, artifacts and records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.engine.read import pages
from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.worker.files.homes import HOME, STATE_SUFFIX, accept_home, usable_home
from holdfast.worker.files.state_paths import StatePath


@dataclass(frozen=True, kw_only=True)
class StateDirectory:
    """The state directory of a store, readable for its owner alone.

    Its files are named by ids and numbers that are checked here, and opened as `StatePath` opens
    them: neither a forged id nor a symbolic link makes a worker read or write elsewhere.
    """

    root: Path

    def log(self, task_id: str, attempt: int) -> StatePath:
        """The log of an attempt."""
        return self.logs / pages.task_id(task_id) / f"{_check_attempt(attempt)}.log"

    def files(self, task_id: str, attempt: int) -> StatePath:
        """The directory of the input and output of an attempt's command, removed at its end."""
        return self._top / "files" / f"{pages.task_id(task_id)}.{_check_attempt(attempt)}"

    def artifacts(self, task_id: str) -> StatePath:
        """The directory of the artifacts of a task."""
        return self.all_artifacts / pages.task_id(task_id)

    @property
    def logs(self) -> StatePath:
        """The directory of all logs, by task."""
        return self._top / "logs"

    @property
    def all_artifacts(self) -> StatePath:
        """The directory of all artifacts, by task."""
        return self._top / "artifacts"

    @property
    def processes(self) -> StatePath:
        """The directory of the records of running commands."""
        return self._top / "processes"

    @property
    def _top(self) -> StatePath:
        return StatePath(self.root)


def _check_attempt(attempt: int) -> int:
    return pages.number("attempt", attempt, least=0)


def find_state_directory(url: str, environment: Mapping[str, str] = os.environ) -> StateDirectory:
    """The state directory of a store: `HOLDFAST_HOME`, beside its file, or a `.holdfast` above.

    A `.holdfast` that is found, or a folder beside the file, is refused unless it is trusted.
    """
    home = environment.get("HOLDFAST_HOME")
    if home:
        return StateDirectory(root=Path(home).absolute())
    if is_postgresql(url) or url.startswith(("http://", "https://")):
        here = Path.cwd()
        return StateDirectory(root=usable_home(here, environment) or here / HOME)
    path = sqlite_path(url).absolute()
    if path.parent.name == HOME:
        return StateDirectory(root=path.parent)
    beside = path.with_name(f"{path.name}{STATE_SUFFIX}")
    # A user who names a store has not thereby trusted the folder beside it.
    return StateDirectory(root=accept_home(beside) if os.path.lexists(beside) else beside)
