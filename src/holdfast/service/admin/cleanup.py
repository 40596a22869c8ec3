"""Cleanup: old runs, tasks and logs, and the files of removed tasks, listed or removed at once."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial

from holdfast.clock import MICROSECONDS
from holdfast.engine.engine import Engine
from holdfast.engine.surroundings.removal import KINDS, RUNS, TASKS
from holdfast.errors import InvalidInput
from holdfast.model.text import parse_task_id
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.views import View
from holdfast.settings import KeepTimes
from holdfast.worker.files.artifacts import is_of_store
from holdfast.worker.files.state_directory import StateDirectory, find_state_directory
from holdfast.worker.files.state_paths import StatePath

_IDS_AT_ONCE = 500


class Leftovers:
    """The folders of tasks in the state directory of this machine; each is named for its task."""

    def __init__(self, engine: Engine, state: StateDirectory, keep: KeepTimes) -> None:
        self._engine = engine
        self._state = state
        self._keep = keep

    def find_logs(self) -> list[StatePath]:
        """Find the log folders without a change for as long as logs are kept."""
        return list(_find_untouched_folders(self._state.logs, self._keep.logs))

    def find_artifacts(self, going: Collection[str] = ()) -> list[StatePath]:
        """Find the artifact folders whose task is not in the store, or is among the `going`."""
        # A folder with a recent change may belong to a task that is newer than the read below.
        untouched = _find_untouched_folders(self._state.all_artifacts, self._keep.runs)
        found = [each for each in untouched if is_of_store(each, self._engine.store)]
        return [each for page in _pages(found) for each in self._without_tasks(page, going)]

    def _without_tasks(
        self, page: Sequence[StatePath], going: Collection[str]
    ) -> Iterator[StatePath]:
        there = self._find_known_ids([each.name for each in page])
        return (each for each in page if each.name not in there or each.name in going)

    def _find_known_ids(self, names: Sequence[str]) -> set[str]:
        rows = self._engine.database.view(lambda tx: tx.read("rows_there", ids=names))
        return {row["id"] for row in rows}


def _find_untouched_folders(folder: StatePath, keep: float) -> Iterator[StatePath]:
    """The folders of tasks without a change for so many seconds; other folders are left alone."""
    oldest = time.time() - keep
    for name in folder.list_names():
        with suppress(OSError, InvalidInput):
            if _read_last_change(folder / parse_task_id(name)) < oldest:
                yield folder / name


def _pages(found: Sequence[StatePath]) -> Iterator[Sequence[StatePath]]:
    return (found[start : start + _IDS_AT_ONCE] for start in range(0, len(found), _IDS_AT_ONCE))


def remove_folders(folders: Sequence[StatePath]) -> None:
    for each in folders:
        each.remove_folder()


def _read_last_change(folder: StatePath) -> float:
    with folder.folder() as opened, os.scandir(opened) as found:
        inside = [each.stat(follow_symlinks=False).st_mtime for each in found]
        return max([os.fstat(opened).st_mtime, *inside])


def clean_store(
    engine: Engine, location: StoreLocation, keep: KeepTimes, *, dry_run: bool = False
) -> View:
    """`{dry_run, runs, tasks, logs, artifacts, worktrees}`: what was, or would be, removed.

    A run or task that somebody waits for or has not read stays, although a dry run lists it. The
    files of a task are removed after the task: files that a crash leaves are found the next time.
    """
    before = engine.now() - round(keep.runs * MICROSECONDS)
    state = find_state_directory(location.url)
    leftovers = Leftovers(engine, state, keep)
    worktrees = _clean_worktrees(engine, state, dry_run=dry_run)
    if dry_run:
        found = {kind: list(_find_removable(engine, kind, before)) for kind in KINDS}
        gone = {kind: sorted({top for _, top in found[kind]}) for kind in KINDS}
        going = {member for kind in KINDS for member, _ in found[kind]}
        logs, artifacts = leftovers.find_logs(), leftovers.find_artifacts(going)
    else:
        gone = {kind: sorted(_remove_old(engine, kind, before)) for kind in KINDS}
        while engine.removals.forget_tombstones(before):
            pass
        logs, artifacts = leftovers.find_logs(), leftovers.find_artifacts()
        remove_folders([*logs, *artifacts])
    return {
        "dry_run": dry_run,
        "runs": gone[RUNS],
        "tasks": gone[TASKS],
        "logs": [each.name for each in logs],
        "artifacts": [each.name for each in artifacts],
        "worktrees": worktrees,
    }


def _clean_worktrees(engine: Engine, state: StateDirectory, *, dry_run: bool) -> list[View]:
    """The worktrees of runs that are over for as long as they are kept, on this machine."""
    if not (state.root / "workspaces").is_dir():
        return []
    # Imported where it is wanted: most stores have no worktrees.
    from holdfast.worker.steps.workspace_steps import is_stopped  # noqa: PLC0415
    from holdfast.worker.workspaces.attempt_workspace import WorkspacePorts  # noqa: PLC0415
    from holdfast.worker.workspaces.upkeep import clean_workspaces  # noqa: PLC0415

    ports = WorkspacePorts(store=engine, state=state, is_stopped=partial(is_stopped, state))
    found = clean_workspaces(ports, dry_run=dry_run)
    return [{"path": str(each.path), "run": each.run, "bytes": each.bytes} for each in found]


def _find_removable(engine: Engine, kind: str, before: int) -> Iterator[tuple[str, str]]:
    until: str | None = None
    while found := engine.removals.find(kind, before, until=until):
        yield from found
        until = found[-1][1]


def _remove_old(engine: Engine, kind: str, before: int) -> Iterator[str]:
    return (each for page in engine.removals.remove_all(kind, before) for each in page.gone)
