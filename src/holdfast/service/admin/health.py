"""The doctor for front ends: checks of every invariant, warnings, and versions."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

from holdfast.clock import MICROSECONDS
from holdfast.engine.core.operation import Sweep
from holdfast.engine.engine import Engine
from holdfast.engine.explain.why_slot import find_circles
from holdfast.errors import GitError, StoreUnreachable
from holdfast.model.workflow.graph_text import read_steps
from holdfast.model.workflow.step import Step, all_steps
from holdfast.service.project.agent_programs import (
    list_installed_presets,
    list_used_presets,
    warn_of_programs,
)
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.command_lines import CommandWords
from holdfast.service.queries.standstills import describe_standstill, find_standstills
from holdfast.service.queries.views import View
from holdfast.settings import DAY, ProjectSettings
from holdfast.store.database import Row, Transaction
from holdfast.worker.files.state_directory import find_state_directory
from holdfast.worker.pool.disk import describe_low_disk, measure_free_disk

MAX_LISTED = 1_000
READY_TIMEOUT = 5.0
# The doctor looks at so many log folders at most: there may be a million.
MAX_LOG_FOLDERS = 10_000


def examine_store(
    engine: Engine,
    location: StoreLocation,
    project: ProjectSettings | None,
    words: CommandWords,
) -> View:
    """`{ok, checks, warnings, agents, versions}`: only a violated invariant is not ok.

    The programs of agents are looked at only for somebody who works in a `project`.
    """
    diagnosis = engine.doctor()
    stopped = engine.database.find_stopped_holder()
    warnings = [] if stopped is None else [stopped]
    settings = project or ProjectSettings()
    warnings += [*_warn_of_workers(engine), *_warn_of_disk(location, settings)]
    versions = list_versions()
    if project is not None:
        steps = _newest_steps(engine)
        warnings += warn_of_programs(list_used_presets(project.commands, steps))
        warnings += _look_for_git(location, steps, versions)
    return {
        "ok": diagnosis.ok,
        "checks": [
            {
                "name": check.name,
                "violations": [
                    {"entity": each.entity, "detail": words.describe_text(each.detail)}
                    for each in check.violations
                ],
            }
            for check in diagnosis.checks
        ],
        "warnings": [
            *(words.describe_text(each) for each in warnings),
            *_warn_of_standstills(engine, words),
        ],
        "agents": list_installed_presets(),
        "versions": versions,
    }


def check_ready(engine: Engine) -> None:
    """Read from the store and have its writer write an empty group; raises the error of either."""
    engine.workers.list()
    within = min(READY_TIMEOUT, engine.settings.patience)
    try:
        engine.commits.submit(Sweep()).result(within)
    except TimeoutError as error:
        raise StoreUnreachable(f"the store has not written for {within:g} s") from error


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


def _newest_steps(engine: Engine) -> list[Step]:
    """The steps of the newest version of each workflow."""
    known = engine.database.view(lambda tx: tx.read("known_workflows"))
    newest = {row["name"]: row["version"] for row in reversed(known)}
    texts = [
        row["definition"]
        for name, version in newest.items()
        for row in engine.database.view(partial(_read_definition, name=name, version=version))
    ]
    return [step for text in texts for step in all_steps(read_steps(text))]


def _look_for_git(
    location: StoreLocation, steps: Sequence[Step], versions: dict[str, str]
) -> list[str]:
    """Note the version of git; warn where steps work in git workspaces and it cannot be used."""
    # Imported where it is wanted: the doctor of a server has no use for it.
    from holdfast.worker.git.git_command import Git  # noqa: PLC0415

    try:
        git = Git.find(find_state_directory(location.url).root / "git")
    except GitError as error:
        used = any(step.work is not None and step.work.in_workspace for step in steps)
        return [f"steps of workflows work in git workspaces, and {error}"] if used else []
    versions["git"] = ".".join(map(str, git.version))
    return []


def _read_definition(tx: Transaction, *, name: str, version: str) -> list[Row]:
    return tx.read("workflow_definition", name=name, version=version)


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
    return told + warn_of_circles(engine)


def _warn_of_standstills(engine: Engine, words: CommandWords) -> list[str]:
    """Warnings about work that goes on only when somebody does something."""
    since = engine.clock.now() - round(DAY * MICROSECONDS)
    found = engine.database.view(lambda tx: find_standstills(tx, since, words.commanded))
    return [describe_standstill(each, words.typed) for each in found]


def warn_of_circles(engine: Engine) -> list[str]:
    """Warnings about runs that wait for each other's concurrency keys, with what to do."""
    return [f"{circle}; " + circle.fix for circle in engine.database.view(find_circles)]
