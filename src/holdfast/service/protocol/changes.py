"""Changes: what attempts and runs have changed in a repository, from the patches workers kept.

A worker keeps two patches for each commit that it records: what the attempt has changed, and what
its line has changed from its base on. They are files of the task, so they outlive the repository.
"""

from __future__ import annotations

from typing import Any

from holdfast.engine.engine import Engine
from holdfast.errors import NotFound
from holdfast.service.protocol.artifacts import open_artifact
from holdfast.service.queries.views import View, without_nulls
from holdfast.store.database import Row
from holdfast.worker.files.artifacts import name_attempt_patch, name_line_patch
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.git.diffs import PATCH_BYTES
from holdfast.worker.git.patches import read_patch

_NOTHING: dict[str, Any] = {"files": [], "added": 0, "removed": 0, "patch": ""}


def change_of_task(
    engine: Engine, state: StateDirectory, task_id: str, attempt: int | None = None
) -> View:
    """What an attempt of a task has changed, by default the newest one with a commit."""
    rows = engine.database.view(lambda tx: tx.read("commits_of_tasks", ids=[task_id]))
    chosen = [row for row in rows if attempt is None or row["attempt"] == attempt]
    if not chosen:
        which = "no attempt" if attempt is None else "this attempt"
        run_id = engine.tasks.get(task_id).run_id
        command = "" if run_id is None else f": `holdfast diff {run_id}` shows what its run has"
        raise NotFound(task_id, "change", f"{which} of it has committed anything{command}")
    newest = max(chosen, key=lambda row: row["attempt"])
    told = {"task_id": task_id, "attempt": newest["attempt"]}
    told |= {"base": newest["base"], "commit": newest["sha"], "kind": newest["kind"]}
    if newest["base"] == newest["sha"]:
        return told | _NOTHING
    return told | _read_change(engine, state, newest, name_attempt_patch(newest["attempt"]))


def change_of_run(engine: Engine, state: StateDirectory, run_id: str) -> View:
    """What a run has changed from where it began, as of its newest commit."""
    engine.runs.get(run_id)
    rows = engine.database.view(lambda tx: tx.read("newest_head", run_id=run_id))
    if not rows:
        raise NotFound(run_id, "change", "it works in no repository, or has not begun to")
    (row,) = rows
    told = {"run_id": run_id, "branch": row["branch"], "base": row["begun_at"]}
    told["commit"] = row["sha"] or row["begun_at"]
    if row["task_id"] is None or row["sha"] == row["begun_at"]:
        return without_nulls(**told) | _NOTHING
    change = _read_change(engine, state, row, name_line_patch(row["attempt"]))
    return without_nulls(**told) | change


def _read_change(engine: Engine, state: StateDirectory, row: Row, name: str) -> View:
    opened = open_artifact(engine, state, row["task_id"], name)
    with opened.file:
        patch = opened.file.read().decode("utf-8", "replace")
    files = read_patch(patch)
    cut = opened.description["bytes"] >= PATCH_BYTES
    return {
        "files": [
            without_nulls(
                path=each.path,
                change=each.change,
                added=each.added,
                removed=each.removed,
                binary=each.binary or None,
            )
            for each in files
        ],
        "added": sum(each.added for each in files),
        "removed": sum(each.removed for each in files),
        "patch": patch,
        **({"truncated": True} if cut else {}),
    }
