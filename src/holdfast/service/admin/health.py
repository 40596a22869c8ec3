"""The doctor for front ends: checks of every invariant, warnings, versions, and safe repairs."""

from __future__ import annotations

import os
import platform
import shutil
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

from holdfast.engine.core.operation import Sweep
from holdfast.engine.engine import Engine
from holdfast.engine.explain.why_slot import find_circles
from holdfast.errors import StoreUnreachable
from holdfast.model.status import RunStatus
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.command_lines import WriteCommand, describe_text
from holdfast.service.queries.views import View
from holdfast.settings import DAY, ProjectSettings
from holdfast.store.database import Transaction
from holdfast.worker.files.state_directory import find_state_directory
from holdfast.worker.pool.disk import describe_low_disk, measure_free_disk

KNOWN_AGENTS = ("claude", "codex", "gemini", "opencode", "aider", "cursor-agent", "amp", "goose")
MAX_LISTED = 1_000
READY_TIMEOUT = 5.0
# The doctor looks at so many log folders at most: there may be a million.
MAX_LOG_FOLDERS = 10_000


def list_installed_agents() -> list[str]:
    return [name for name in KNOWN_AGENTS if shutil.which(name)]


def examine_store(
    engine: Engine, location: StoreLocation, project: ProjectSettings, typed: WriteCommand = str
) -> View:
    """`{ok, checks, warnings, agents, versions}`: only a violated invariant is not ok."""
    diagnosis = engine.doctor()
    warnings = [*_warn_of_workers(engine), *_warn_of_disk(location, project)]
    return {
        "ok": diagnosis.ok,
        "checks": [
            {
                "name": check.name,
                "violations": [
                    {"entity": each.entity, "detail": describe_text(each.detail, typed)}
                    for each in check.violations
                ],
            }
            for check in diagnosis.checks
        ],
        "warnings": [describe_text(each, typed) for each in warnings],
        "agents": list_installed_agents(),
        "versions": list_versions(),
    }


def check_ready(engine: Engine) -> None:
    """Read from the store and have its writer write an empty group; raises the error of either."""
    engine.workers.list()
    within = min(READY_TIMEOUT, engine.settings.patience)
    try:
        engine.commits.submit(Sweep()).result(within)
    except TimeoutError as error:
        raise StoreUnreachable(f"the store has not written for {within:g} s") from error


def repair_store(engine: Engine, *, dry_run: bool = False) -> View:
    """Take back tasks whose lease has expired, and evaluate open runs and stuck tasks again."""
    expired = engine.database.view(lambda tx: tx.read("expired_tasks", count=MAX_LISTED))
    running = _list_running_runs(engine)
    plans = engine.database.view(lambda tx: tx.read("check_plans_end_with_children"))
    waiting = engine.database.view(_find_tasks_waiting_in_vain)
    lost = engine.database.view(_find_tasks_with_superseded_needs)
    advanced: list[str] = []
    if not dry_run:
        while engine.work.recover():
            pass
        advanced = [each for each in running if engine.runs.advance(each).advanced]
        for task_id in [*(row["entity"] for row in plans), *waiting, *lost]:
            engine.tasks.advance(task_id, actor="doctor")
    return {
        "dry_run": dry_run,
        "expired_leases": [row["id"] for row in expired],
        "looked_at": running,
        "advanced": advanced,
        "settled_plans": [row["entity"] for row in plans],
        "woken": waiting,
        "passed_on": lost,
    }


def _find_tasks_waiting_in_vain(tx: Transaction) -> list[str]:
    """The tasks that wait for children that have all ended, or for a signal that is there."""
    children = tx.read("check_waits_end_with_children")
    signals = tx.read("check_waits_end_with_signals")
    return sorted({row["entity"] for row in [*children, *signals]})


def _find_tasks_with_superseded_needs(tx: Transaction) -> list[str]:
    """The tasks that need a superseded task: older releases left such needs."""
    return sorted({row["entity"] for row in tx.read("check_needs_still_count")})


def _list_running_runs(engine: Engine) -> list[str]:
    found: list[str] = []
    page = engine.runs.list(status=RunStatus.RUNNING, limit=MAX_LISTED)
    while page:
        found += [run.id for run in page]
        page = engine.runs.list(status=RunStatus.RUNNING, limit=MAX_LISTED, after=found[-1])
    return found


def read_own_version() -> str:
    """The version of Holdfast, or "0" where the package is not installed."""
    return list_versions().get("holdfast", "0")


def list_versions() -> dict[str, str]:
    told = {"python": platform.python_version()}
    for package in ("holdfast", "apsw", "psycopg"):
        try:
            told[package] = version(package)
        except PackageNotFoundError:
            continue
    return told


def _warn_of_disk(location: StoreLocation, project: ProjectSettings) -> list[str]:
    """Warnings about the disk: little free space, and logs that could be removed."""
    root = find_state_directory(location.url).root
    low = describe_low_disk(measure_free_disk(root), project.least_disk)
    told = [] if low is None else [f"{root}: {low}"]
    oldest = time.time() - project.keep.logs
    with suppress(OSError), os.scandir(root / "logs") as logs:
        old = sum(each.stat().st_mtime < oldest for each in islice(logs, MAX_LOG_FOLDERS))
        if old:
            many = f"the logs of {old} task{'' if old == 1 else 's'} in {root / 'logs'} are older"
            told.append(f"{many} than the {project.keep.logs / DAY:g} days that they are kept")
    return told


def _warn_of_workers(engine: Engine) -> list[str]:
    told = [f"worker {each.name}: {each.pausing}" for each in engine.workers.list() if each.pausing]
    late = engine.database.view(lambda tx: tx.read("expired_tasks", count=MAX_LISTED))
    if late:
        told.append(
            f"{len(late)} leases have run out and nobody has taken them back: no worker is "
            "running; `holdfast doctor --fix` takes them back"
        )
    broken = [each.name for each in engine.schedules.list() if each.last_error is not None]
    told += [f"schedule {name} could not start its last tick" for name in broken]
    return told + warn_of_circles(engine)


def warn_of_circles(engine: Engine) -> list[str]:
    """Warnings about runs that wait for each other's concurrency keys, with what to do."""
    return [f"{circle}; " + circle.fix for circle in engine.database.view(find_circles)]
