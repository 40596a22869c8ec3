"""A file that cannot be trusted is refused whole, with the place and reason of every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, InvalidInput, KeyConflict
from holdfast.importing import import_runs, import_tasks
from tests.contract.raw_store import count_rows, dump
from tests.older_files import change, make

BAD_TASKS = {
    "UPDATE tasks SET status = 'asleep' WHERE id = 'a.2'": (
        "tasks[a.2]: its status 'asleep' is none of manual, draft"
    ),
    "UPDATE tasks SET parent_task_id = 'gone' WHERE id = 'a.2'": (
        "tasks[a.2]: its parent gone is not there"
    ),
    "UPDATE tasks SET parent_task_id = 'a.3' WHERE id = 'a'": "tasks[a]: is its own parent",
    "UPDATE tasks SET parent_task_id = 'a' WHERE id = 'a'": "tasks[a]: is its own parent",
    "UPDATE tasks SET sort_order = 'first' WHERE id = 'a'": "tasks[a]: sort_order is 'first'",
    "UPDATE tasks SET scheduled_for = 'soon' WHERE id = 'a'": "tasks[a]: scheduled_for is 'soon'",
    "UPDATE tasks SET scheduled_for = 7 WHERE id = 'a'": "tasks[a]: scheduled_for is '7'",
    "UPDATE tasks SET id = NULL WHERE id = 'draft'": "id is None, not an id",
    "UPDATE tasks SET id = 'x ' WHERE id = 'draft'": "tasks[x ].key: must be non-empty",
    "UPDATE tasks SET title = char(0) WHERE id = 'draft'": "NUL",
    "UPDATE tasks SET result = CAST(x'ff' AS text) WHERE id = 'done'": "cannot be read: ",
    "ALTER TABLE tasks DROP COLUMN sort_order": "source.tasks: has no column sort_order",
    "DROP TABLE tasks": "source.tasks: there is no such table in this file",
}
TWICE = (
    "CREATE TABLE copied AS SELECT * FROM tasks",
    "DROP TABLE tasks",
    "ALTER TABLE copied RENAME TO tasks",
    "INSERT INTO tasks SELECT * FROM tasks WHERE id = 'draft'",
)
BAD_RUNS = {
    "UPDATE runs SET status = 'paused' WHERE id = 'new'": (
        "runs[new]: its status 'paused' is none of running"
    ),
    "UPDATE steps SET status = 'skipped' WHERE id = 'new-plan'": (
        "steps[new-plan]: its status 'skipped' is none of waiting"
    ),
    "UPDATE stories SET status = 'seen' WHERE id = 's1'": "stories[s1]: its status 'seen'",
    "UPDATE steps SET run_id = 'gone' WHERE id = 'new-plan'": (
        "steps[new-plan]: its run gone is not there"
    ),
    "UPDATE steps SET step_index = 1 WHERE id = 'new-plan'": (
        "steps[new: 1]: this step_index is there twice"
    ),
    "UPDATE steps SET step_index = 'x' WHERE id = 'new-plan'": "step_index is 'x'",
    "UPDATE steps SET step_id = 'work' WHERE id = 'new-plan'": (
        "runs[new]: workflow feature: step 'work' is defined 2 times"
    ),
    "UPDATE runs SET workflow_id = 'a b' WHERE id = 'new'": "runs[new]: workflow: 'a b' is not",
    "CREATE TABLE copied AS SELECT * FROM runs; DROP TABLE runs; ALTER TABLE copied RENAME TO runs;"
    "UPDATE runs SET workflow_id = NULL WHERE id = 'new'": "runs[new]: workflow_id is None, not an",
    "UPDATE steps SET loop_config = '[' WHERE id = 'stories-implement'": (
        "steps[stories-implement]: loop_config '[' is no JSON object"
    ),
    "ALTER TABLE steps DROP COLUMN step_index": "source.steps: has no column step_index",
    "DROP TABLE steps": "source.steps: there is no such table in this file",
}


def refused(store_url: str, path: Path, hf: Holdfast, *statements: str, runs: bool = False) -> str:
    """What an import of a fixture with such a change is told; no row of the store has changed."""
    path.unlink(missing_ok=True)
    make(path, "older_runs" if runs else "older_tasks", *statements)
    before = count_rows(store_url)
    with pytest.raises(InvalidInput) as refusal:
        (import_runs if runs else import_tasks)(path, into=hf)
    assert count_rows(store_url) == before
    return str(refusal.value)


def test_tasks_that_make_no_sense_are_refused(hf: Holdfast, store_url: str, tmp_path: Path) -> None:
    assert hf.doctor().ok
    for statement, reason in BAD_TASKS.items():
        assert reason in refused(store_url, tmp_path / "older.db", hf, statement), statement
    assert "tasks[draft]: its id is there twice" in refused(
        store_url, tmp_path / "older.db", hf, *TWICE
    )


def test_runs_that_make_no_sense_are_refused(hf: Holdfast, store_url: str, tmp_path: Path) -> None:
    assert hf.doctor().ok
    for statement, reason in BAD_RUNS.items():
        assert reason in refused(store_url, tmp_path / "older.db", hf, statement, runs=True), (
            statement
        )


def test_every_mistake_is_told_at_once(hf: Holdfast, store_url: str, tmp_path: Path) -> None:
    assert hf.doctor().ok
    statement = "UPDATE tasks SET status = 'x'"
    told = refused(store_url, tmp_path / "older.db", hf, statement)
    assert told.count("its status 'x'") == 20
    assert told.endswith("; and 20 more")


def test_a_source_that_is_no_sqlite_file_is_refused(hf: Holdfast, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_text("not a database, and much longer than a header " * 10)
    for path, reason in ((tmp_path / "none.db", "is no file"), (other, "cannot be read")):
        with pytest.raises(InvalidInput, match=reason):
            import_tasks(path, into=hf)
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_has_changed_since_it_was_imported_is_refused_whole(
    hf: Holdfast, store_url: str, tmp_path: Path
) -> None:
    tasks = make(tmp_path / "tasks.db", "older_tasks")
    runs = make(tmp_path / "runs.db", "older_runs")
    import_tasks(tasks, into=hf)
    import_runs(runs, into=hf)
    change(tasks, "UPDATE tasks SET status = 'done' WHERE id = 'a.2'")
    change(tasks, "INSERT INTO tasks (id, list_id, title, status) VALUES ('n', 'i', 'n', 'queued')")
    change(runs, "UPDATE steps SET status = 'done' WHERE id = 'new-plan'")
    before = dump(store_url)
    told = r"import:tasks:a' already .* belongs to it, from rows .* file.* under another .name"
    with pytest.raises(KeyConflict, match=told):
        import_tasks(tasks, into=hf)
    with pytest.raises(KeyConflict, match=r"import:runs:new' .*with the same ids"):
        import_runs(runs, into=hf)
    assert dump(store_url) == before


def test_a_conflict_in_a_changed_tree_names_the_top_of_the_tree(
    hf: Holdfast, tmp_path: Path
) -> None:
    top = "UPDATE tasks SET id = 'z' WHERE id = 'a'"
    below = "UPDATE tasks SET parent_task_id = 'z' WHERE parent_task_id = 'a'"
    tasks = make(tmp_path / "tasks.db", "older_tasks", top, below)
    import_tasks(tasks, into=hf)
    change(tasks, "UPDATE tasks SET title = 'changed' WHERE id = 'a.3'")
    with pytest.raises(KeyConflict, match="key 'import:tasks:z' already"):
        import_tasks(tasks, into=hf)


def test_a_bad_source_store_or_step_is_refused_by_field(
    hf: Holdfast, store_url: str, tmp_path: Path
) -> None:
    hf.task(name="work_on")(lambda title: title)
    tasks = make(tmp_path / "tasks.db", "older_tasks")
    wrong: Any = None
    url: Any = store_url
    for bring in (import_tasks, import_runs):
        with pytest.raises(InvalidInput, match=r"^into: is a str; pass a Holdfast: Holdfast\('sq"):
            bring(tasks, into=url)
        with pytest.raises(InvalidInput, match=r"^source: is a NoneType; pass the path of"):
            bring(wrong, into=hf)
    with pytest.raises(InvalidInput, match=r"^step: 'work_in' is no task .*did you mean work_on?"):
        import_tasks(tasks, into=hf, step="work_in")
    assert hf.tasks.list() == []
    assert import_tasks(str(tasks), into=hf, step="work_on").created
