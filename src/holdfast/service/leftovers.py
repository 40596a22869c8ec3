"""What tasks left beside the store: logs that are old, and files of tasks that are gone from it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.engine.engine import Engine
from holdfast.settings import Keep
from holdfast.worker.artifacts import is_of
from holdfast.worker.state import State

_ASKED_AT_ONCE = 500


class Leftovers:
    """The folders of tasks in the state directory of this machine; each is named by its task."""

    def __init__(self, engine: Engine, state: State, keep: Keep) -> None:
        self._engine = engine
        self._root = state.root
        self._keep = keep

    def logs(self) -> list[Path]:
        """Those that nobody wrote to for as long as logs are kept."""
        return sorted(self._untouched("logs", self._keep.logs))

    def artifacts(self, going: Collection[str] = ()) -> list[Path]:
        """Those whose task is gone, or is among the `going`."""
        # One that was written lately belongs to a task that is newer than the look at the store.
        untouched = self._untouched("artifacts", self._keep.runs)
        found = sorted(each for each in untouched if is_of(each, self._engine.store))
        return [each for page in _pages(found) for each in self._gone(page, going)]

    def _gone(self, page: Sequence[Path], going: Collection[str]) -> Iterator[Path]:
        there = self._there([each.name for each in page])
        return (each for each in page if each.name not in there or each.name in going)

    def _there(self, names: Sequence[str]) -> set[str]:
        rows = self._engine.database.view(lambda tx: tx.read("rows_there", ids=names))
        return {row["id"] for row in rows}

    def _untouched(self, folder: str, keep: float) -> Iterator[Path]:
        oldest = time.time() - keep
        with suppress(OSError), os.scandir(self._root / folder) as found:
            for each in found:
                if each.is_dir(follow_symlinks=False) and _touched(Path(each)) < oldest:
                    yield Path(each)


def _pages(found: Sequence[Path]) -> Iterator[Sequence[Path]]:
    return (found[start : start + _ASKED_AT_ONCE] for start in range(0, len(found), _ASKED_AT_ONCE))


def throw_away(folders: Sequence[Path]) -> None:
    for each in folders:
        shutil.rmtree(each, ignore_errors=True)


def _touched(folder: Path) -> float:
    with suppress(OSError):
        return max(each.stat().st_mtime for each in (folder, *folder.iterdir()))
    return time.time()
