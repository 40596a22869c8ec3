"""The command `import`: a file of an older task runner, taken over from a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from tests.contract.cli.command_line import Typed
from tests.older_files import RUNS_AND_STEPS, TASKS, change, make


def test_a_file_is_rehearsed_imported_and_imported_again(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    source = str(make(tmp_path / "older.db", "older_tasks"))
    rehearsed = typed.json("import", source, "--dry-run")
    assert (rehearsed["dry_run"], rehearsed["tasks"]["created"]) == (True, TASKS)
    assert engine.tasks.list() == []
    told = typed("import", source)
    assert told.code == 0, told.err
    assert told.out.startswith(f"tasks: {TASKS} tasks made\n")
    assert "  done → done: " in told.out
    assert "  see waiting: waits, and what it waited for is gone" in told.out
    assert len(engine.tasks.list()) == TASKS
    assert typed.ok("import", source).startswith(f"tasks: 0 tasks made, {TASKS} here before\n")
    both = str(make(tmp_path / "older.db", "older_runs"))
    made = typed.json("import", both, "--name", "laptop", "--agent", "builder")
    assert (made["tasks"]["created"], made["runs"]["created"]) == (TASKS, RUNS_AND_STEPS)
    assert {each["agent"] for each in typed.json("tasks", "--agent", "builder")["items"]}


@pytest.mark.usefixtures("engine")
def test_what_cannot_be_imported_is_refused_in_words(typed: Typed, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    change(path, "CREATE TABLE things (id)")
    assert "has no tables tasks or runs and steps" in typed.refused(2, "import", str(path))
    missing = str(tmp_path / "missing.db")
    assert f"{missing} is no file" in typed.refused(2, "import", missing)
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be looked at as if it were one" * 20)
    assert "cannot be read" in typed.refused(2, "import", str(text))
    change(path, "CREATE TABLE tasks (id, status, parent_task_id, sort_order, created_at)")
    assert "'nobody' is no task function" in typed.refused(
        2, "import", str(path), "--step", "nobody"
    )
    assert "is not one of tasks, runs" in typed.refused(2, "import", str(path), "--only", "x")
    assert typed.ok("import", str(path)) == "tasks: 0 tasks made\n"


def test_a_dry_run_makes_no_store(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(make(tmp_path / "older.db", "older_tasks"))
    store = tmp_path / "none" / "new.db"
    monkeypatch.setenv("HOLDFAST_DB", f"sqlite:///{store}")
    assert typed.ok("import", source, "--dry-run").startswith(f"tasks: {TASKS} tasks would be made")
    assert not store.exists()
