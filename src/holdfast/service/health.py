"""The doctor for front ends: every invariant, what else deserves a look, and safe healing."""

from __future__ import annotations

import platform
import shutil
from importlib.metadata import PackageNotFoundError, version

from holdfast.engine.engine import Engine
from holdfast.model.status import RunStatus
from holdfast.service.place import Place
from holdfast.service.views import View
from holdfast.store.database import is_postgresql, sqlite_path

GIBIBYTE = 1024**3
LEAST_DISK = 2 * GIBIBYTE
PAGE = 1_000


def examine(engine: Engine, place: Place) -> View:
    """`{ok, checks, warnings, versions}`: only a violated invariant is not ok."""
    diagnosis = engine.doctor()
    return {
        "ok": diagnosis.ok,
        "checks": [
            {
                "name": check.name,
                "violations": [
                    {"entity": each.entity, "detail": each.detail} for each in check.violations
                ],
            }
            for check in diagnosis.checks
        ],
        "warnings": _warnings(engine, place),
        "versions": versions(),
    }


def heal(engine: Engine, *, dry_run: bool = False) -> View:
    """Take back what expired leases hold, and have every open run looked at again."""
    expired = engine.database.view(lambda tx: tx.read("expired_tasks", count=PAGE))
    running = _running(engine)
    advanced: list[str] = []
    if not dry_run:
        while engine.work.recover():
            pass
        advanced = [each for each in running if engine.runs.advance(each).advanced]
    return {
        "dry_run": dry_run,
        "expired_leases": [row["id"] for row in expired],
        "looked_at": running,
        "advanced": advanced,
    }


def _running(engine: Engine) -> list[str]:
    found: list[str] = []
    page = engine.runs.list(status=RunStatus.RUNNING, limit=PAGE)
    while page:
        found += [run.id for run in page]
        page = engine.runs.list(status=RunStatus.RUNNING, limit=PAGE, after=found[-1])
    return found


def versions() -> dict[str, str]:
    told = {"python": platform.python_version()}
    for package in ("holdfast", "apsw", "psycopg"):
        try:
            told[package] = version(package)
        except PackageNotFoundError:
            continue
    return told


def _warnings(engine: Engine, place: Place) -> list[str]:
    told: list[str] = []
    if not is_postgresql(place.url):
        free = shutil.disk_usage(sqlite_path(place.url).absolute().parent).free
        if free < LEAST_DISK:
            told.append(f"only {free / GIBIBYTE:.1f} GB of disk are free beside the store")
    late = engine.database.view(lambda tx: tx.read("expired_tasks", count=PAGE))
    if late:
        told.append(
            f"{len(late)} leases have run out and nobody has taken them back: no worker is "
            "running; `holdfast doctor --fix` takes them back"
        )
    broken = [each.name for each in engine.schedules.list() if each.last_error is not None]
    told += [f"schedule {name} could not start its last tick" for name in broken]
    return told
