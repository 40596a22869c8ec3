"""Where a worker keeps what is not in the store: logs, records of processes, files of steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.worker.homes import HOME, make_home, usable_home


@dataclass(frozen=True, kw_only=True)
class State:
    """One directory of a store; what is in it is for its owner alone."""

    root: Path

    def log(self, task_id: str, attempt: int) -> Path:
        """The log of an attempt."""
        return self.root / "logs" / task_id / f"{attempt}.log"

    def files(self, task_id: str, attempt: int) -> Path:
        """The directory of what an attempt's command reads and writes; gone when it has ended."""
        return self.root / "files" / f"{task_id}.{attempt}"

    def artifacts(self, task_id: str) -> Path:
        """The directory of the files that a task leaves for whoever wants them."""
        return self.root / "artifacts" / task_id

    @property
    def processes(self) -> Path:
        """The directory of the records of commands that run."""
        return self.root / "processes"


def state_of(url: str, environment: Mapping[str, str] = os.environ) -> State:
    """The state of a store: `HOLDFAST_HOME`, or beside its file, or `.holdfast` from here up.

    A `.holdfast` that is found, and may be another's, is refused.
    """
    home = environment.get("HOLDFAST_HOME")
    if home:
        return State(root=Path(home).absolute())
    if is_postgresql(url) or url.startswith(("http://", "https://")):
        here = Path.cwd()
        return State(root=usable_home(here, environment) or here / HOME)
    path = sqlite_path(url).absolute()
    beside = path.parent if path.parent.name == HOME else path.with_name(f"{path.name}.state")
    return State(root=beside)


def private(directory: Path) -> Path:
    """Make a directory that only its owner can look into; a home is remembered as made here."""
    for each in (directory, *directory.parents):
        if each.name == HOME and not each.exists():
            make_home(each)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory
