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
from holdfast.worker.state import State

_ASKED_AT_ONCE = 500


class Leftovers:
    """The folders of tasks in the state directory of this machine; each is named by its task."""

    def __init__(self, engine: Engine, state: State, keep: Keep) -> None:
        self._engine = engine
        self._root = state.root
        self._keep = keep

    def logs(self, going: Collection[str] = ()) -> list[Path]:
        """Those that nobody wrote to for as long as logs are kept, or whose task is gone."""
        old = {each.name: each for each in self._untouched("logs", self._keep.logs)}
        gone = {each.name: each for each in self._of_nobody("logs", going)}
        return [each for _, each in sorted((old | gone).items())]

    def artifacts(self, going: Collection[str] = ()) -> list[Path]:
        """Those whose task is gone, or is among the `going`."""
        return sorted(self._of_nobody("artifacts", going))

    def _of_nobody(self, folder: str, going: Collection[str]) -> Iterator[Path]:
        # One that was written lately belongs to a task that is newer than the look at the store.
        untouched = self._untouched(folder, self._keep.runs)
        found = [each for each in untouched if each.name.startswith("t_")]
        for start in range(0, len(found), _ASKED_AT_ONCE):
            page = found[start : start + _ASKED_AT_ONCE]
            there = self._there([each.name for each in page])
            yield from (each for each in page if each.name not in there or each.name in going)

    def _there(self, names: Sequence[str]) -> set[str]:
        rows = self._engine.database.view(lambda tx: tx.read("rows_there", ids=names))
        return {row["id"] for row in rows}

    def _untouched(self, folder: str, keep: float) -> Iterator[Path]:
        oldest = time.time() - keep
        with suppress(OSError), os.scandir(self._root / folder) as found:
            for each in found:
                if each.is_dir(follow_symlinks=False) and _touched(Path(each)) < oldest:
                    yield Path(each)


def throw_away(folders: Sequence[Path]) -> None:
    for each in folders:
        shutil.rmtree(each, ignore_errors=True)


def _touched(folder: Path) -> float:
    with suppress(OSError):
        return max(each.stat().st_mtime for each in (folder, *folder.iterdir()))
    return time.time()
