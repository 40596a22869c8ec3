"""What was kept long enough: shown, or removed at once and not only when it is next looked for."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.clock import MICROSECONDS
from holdfast.engine.engine import Engine
from holdfast.engine.removal_desk import RUNS, TASKS
from holdfast.service.place import Place
from holdfast.service.views import View
from holdfast.settings import Keep
from holdfast.worker.state import state_of


def clean(engine: Engine, place: Place, keep: Keep, *, dry_run: bool = False) -> View:
    """`{dry_run, runs, tasks, logs}`: what went, or would but for what somebody waits for."""
    before = engine.now() - round(keep.runs * MICROSECONDS)
    walk = _find if dry_run else _remove
    logs = list(_old_logs(state_of(place.url).root / "logs", keep.logs))
    if not dry_run:
        for each in logs:
            shutil.rmtree(each, ignore_errors=True)
    return {
        "dry_run": dry_run,
        "runs": list(walk(engine, RUNS, before)),
        "tasks": list(walk(engine, TASKS, before)),
        "logs": [each.name for each in logs],
    }


def _find(engine: Engine, kind: str, before: int) -> Iterator[str]:
    until: str | None = None
    while found := engine.removals.find(kind, before, until=until):
        tops = sorted({top for _, top in found}, reverse=True)
        yield from tops
        until = tops[-1]


def _remove(engine: Engine, kind: str, before: int) -> Iterator[str]:
    return (each for page in engine.removals.walk(kind, before) for each in page.gone)


def _old_logs(folder: Path, keep: float) -> Iterator[Path]:
    """The folders of tasks of which nothing was written for so long."""
    oldest = time.time() - keep
    with suppress(OSError), os.scandir(folder) as found:
        for each in found:
            if each.is_dir(follow_symlinks=False) and _touched(Path(each)) < oldest:
                yield Path(each)


def _touched(folder: Path) -> float:
    times = [folder.stat().st_mtime]
    with suppress(OSError):
        times += [each.stat().st_mtime for each in folder.iterdir()]
    return max(times)
