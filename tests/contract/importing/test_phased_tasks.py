"""Tasks with a column each for lifecycle, planning and the blocking task, as seed 004 ends up."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.errors import InvalidInput, KeyConflict
from holdfast.importing import ImportReport, import_tasks
from holdfast.model.status import PlanningPhase, Status
from holdfast.model.task import Task
from tests.contract.task_states import finish
from tests.older_files import change

TABLE = """
CREATE TABLE tasks (id TEXT PRIMARY KEY, title TEXT, status TEXT, parent_task_id TEXT,
  sort_order INTEGER, created_at TEXT, result TEXT, planning_phase INTEGER NOT NULL DEFAULT 0,
  blocked_by_task_id TEXT)
"""
ROWS = """
INSERT INTO tasks (id, title, status, parent_task_id, planning_phase, blocked_by_task_id, result)
VALUES
  ('idle', 'By hand', 'idle', NULL, 0, NULL, NULL),
  ('queued', 'In the queue', 'queued', NULL, 0, NULL, NULL),
  ('running', 'Under way', 'running', NULL, 0, NULL, NULL),
  ('done', 'Finished', 'done', NULL, 0, NULL, 'all of it'),
  ('failed', 'Broken', 'failed', NULL, 0, NULL, 'no disk'),
  ('cancelled', 'Given up', 'cancelled', NULL, 0, NULL, NULL),
  ('after', 'After another list', 'queued', NULL, 0, 'p.1', NULL),
  ('early', 'Had not waited', 'done', NULL, 0, 'queued', 'early'),
  ('stuck', 'Behind a cancelled one', 'queued', NULL, 0, 'cancelled', NULL),
  ('active', 'Being planned', 'idle', NULL, 1, NULL, NULL),
  ('active.1', 'A draft', 'idle', 'active', 0, NULL, NULL),
  ('p', 'A plan', 'idle', NULL, 2, NULL, NULL),
  ('p.1', 'First', 'done', 'p', 0, NULL, 'one'),
  ('p.2', 'Second', 'running', 'p', 0, 'p.1', NULL),
  ('p.3', 'Third', 'queued', 'p', 0, 'p.2', NULL),
  ('over', 'A plan that is done', 'done', NULL, 2, NULL, NULL),
  ('over.1', 'Its part', 'done', 'over', 0, NULL, 'part'),
  ('alone', 'Done before its parts', 'done', NULL, 2, NULL, 'alone'),
  ('alone.1', 'Its part', 'queued', 'alone', 0, NULL, NULL),
  ('none', 'Planned, of nothing', 'queued', NULL, 2, NULL, NULL),
  ('gone', 'A plan that was cancelled', 'cancelled', NULL, 2, NULL, NULL),
  ('gone.1', 'Its done part', 'done', 'gone', 0, NULL, NULL),
  ('gone.2', 'Its open part', 'queued', 'gone', 0, 'gone.1', NULL)
"""
IDLE, QUEUED, DONE, FAILED, CANCELLED = (
    Status.IDLE,
    Status.QUEUED,
    Status.DONE,
    Status.FAILED,
    Status.CANCELLED,
)
NONE, ACTIVE, FINALIZED = PlanningPhase
BECAME = {
    "idle": (IDLE, NONE, "idle"),
    "queued": (QUEUED, NONE, "ready"),
    "running": (QUEUED, NONE, "ready"),
    "done": (DONE, NONE, "done"),
    "failed": (FAILED, NONE, "failed"),
    "cancelled": (CANCELLED, NONE, "cancelled"),
    "after": (QUEUED, NONE, "ready"),
    "early": (DONE, NONE, "done"),
    "stuck": (QUEUED, NONE, "stalled"),
    "active": (IDLE, ACTIVE, "planning"),
    "active.1": (IDLE, NONE, "idle"),
    "p": (IDLE, FINALIZED, "in progress 1/3"),
    "p.1": (DONE, NONE, "done"),
    "p.2": (QUEUED, NONE, "ready"),
    "p.3": (QUEUED, NONE, "blocked"),
    "over": (DONE, FINALIZED, "done"),
    "over.1": (DONE, NONE, "done"),
    "alone": (DONE, NONE, "done"),
    "alone.1": (QUEUED, NONE, "ready"),
    "none": (IDLE, ACTIVE, "planning"),
    "gone": (CANCELLED, NONE, "cancelled"),
    "gone.1": (DONE, NONE, "done"),
    "gone.2": (CANCELLED, NONE, "cancelled"),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "older.db"
    change(path, TABLE, ROWS)
    return path


def arrive(hf: Holdfast, report: ImportReport) -> dict[str, Task]:
    return {each.old: hf.tasks.get(str(each.id)) for each in report.moved}


def test_each_column_becomes_its_field(hf: Holdfast, source: Path) -> None:
    report = import_tasks(source, into=hf)
    tasks = arrive(hf, report)
    assert {
        name: (task.status, task.planning_phase, hf.tasks.get(task.id).state)
        for name, task in tasks.items()
    } == BECAME
    assert report.created == len(BECAME)
    names = {task.id: name for name, task in tasks.items()}
    needs = {
        name: [names[each] for each in hf.tasks.blocked_by(tasks[name].id)]
        for name in ("p.2", "p.3", "stuck", "early", "after")
    }
    assert needs == {
        "p.2": [],
        "p.3": ["p.2"],
        "stuck": ["cancelled"],
        "early": ["queued"],
        "after": [],
    }
    reasons = {each.old: each.reason for each in report.remarks}
    assert reasons.keys() == {"stuck", "none", "gone.2"}
    assert reasons["gone.2"] == "is a part of gone, which is cancelled: it is cancelled too"
    for name in ("p.2", "p.3"):
        finish(engine_of(hf), tasks[name].id)
    assert hf.tasks.get(tasks["p"].id).status is DONE
    assert hf.tasks.retry(tasks["cancelled"].id).ok


def test_a_second_import_makes_nothing_and_a_dry_run_makes_nothing_at_all(
    hf: Holdfast, source: Path
) -> None:
    rehearsed = import_tasks(source, into=hf, dry_run=True)
    assert hf.tasks.list() == []
    report = import_tasks(source, into=hf)
    assert rehearsed.counts == report.counts
    assert (rehearsed.created, report.created) == (len(BECAME), len(BECAME))
    assert import_tasks(source, into=hf).created == 0
    assert import_tasks(source, into=hf, dry_run=True).created == 0
    change(source, "UPDATE tasks SET title = 'another' WHERE id = 'p.1'")
    with pytest.raises(KeyConflict, match="import:tasks:"):
        import_tasks(source, into=hf, dry_run=True)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE tasks SET status = 'waiting' WHERE id = 'queued'", "'waiting' is none of idle"),
        ("UPDATE tasks SET planning_phase = 7 WHERE id = 'p'", "its planning_phase is 7"),
        (
            "UPDATE tasks SET blocked_by_task_id = 'x' WHERE id = 'p.2'",
            "blocked by x, which is not",
        ),
        ("UPDATE tasks SET blocked_by_task_id = 'p' WHERE id = 'p.2'", "p, which it is a part of"),
        ("UPDATE tasks SET blocked_by_task_id = 'p.3' WHERE id = 'p.2'", "blocked by itself, near"),
    ],
)
def test_a_contradiction_is_refused_with_its_row(
    hf: Holdfast, source: Path, damage: str, told: str
) -> None:
    change(source, damage)
    with pytest.raises(InvalidInput, match=told):
        import_tasks(source, into=hf)
    assert hf.tasks.list() == []


def test_phases_may_be_written_as_words(hf: Holdfast, source: Path) -> None:
    change(
        source,
        "UPDATE tasks SET planning_phase = CASE planning_phase WHEN 0 THEN 'none' "
        "WHEN 1 THEN 'Active' ELSE 'finalized' END",
    )
    tasks = arrive(hf, import_tasks(source, into=hf))
    assert tasks["p"].planning_phase is FINALIZED
    assert tasks["active"].planning_phase is ACTIVE
