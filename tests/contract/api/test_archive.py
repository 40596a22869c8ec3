"""The archive of ended runs: one file for each run and generation, whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import AttemptEnded, Ended, Holdfast, InvalidInput
from holdfast.api.archive import Archive
from holdfast.engine.engine import Engine
from holdfast.engine.surroundings.hooks import read_payload
from holdfast.model.hook import RUN_ENDS
from holdfast.model.task import Assignment
from holdfast.worker.attempt.attempt_lease import AttemptLease
from holdfast.worker.attempt.context import AttemptContext
from tests.contract.called_workflows import begin, call, of
from tests.contract.hook_tasks import fired, hook
from tests.contract.task_states import StartedRun, start, take
from tests.race.racers import eventually

PATIENCE = 30


@pytest.fixture
def ended(engine: Engine) -> StartedRun:
    """A run that has failed, with a hook that was called for it."""
    engine.hooks.register([hook("archive", *RUN_ENDS)])
    run = start(engine)
    run.finish("plan")
    run.break_for_good("work")
    return run


def claim(engine: Engine, name: str = "archive") -> tuple[AttemptContext, Ended]:
    """Claim the last task of an archive: what its function is called with."""
    assignment = take(engine, fired(engine, name)[-1].id)
    return context_of(engine, assignment), read_payload(assignment.task.payload)


def context_of(engine: Engine, assignment: Assignment) -> AttemptContext:
    deadline = engine.clock.monotonic() + engine.settings.lease
    return AttemptContext(engine, assignment, AttemptLease(deadline))


def read(directory: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in directory.iterdir()}


def test_a_file_holds_the_run_its_tasks_with_their_attempts_and_its_events(
    engine: Engine, ended: StartedRun, tmp_path: Path
) -> None:
    directory = tmp_path / "made" / "here"
    written = Archive(lambda: engine, directory).write(*claim(engine))
    name = f"{ended.id}.1.json"
    assert written == str(directory / name)
    told = read(directory)
    assert told.keys() == {name}
    kept = told[name]
    assert (kept["run"]["id"], kept["run"]["status"]) == (ended.id, "failed")
    assert (kept["run"]["workflow"], kept["run"]["holds"]) == ("chain", ["failing"])
    assert [(task["step"], task["status"]) for task in kept["tasks"]] == [
        ("plan", "done"),
        ("work", "failed"),
        ("review", "queued"),
    ]
    assert [[each["outcome"] for each in task["attempts"]] for task in kept["tasks"]] == [
        ["completed"],
        ["failed"],
        [],
    ]
    assert kept["tasks"][0]["output"] == "plan output"
    recorded = engine.runs.events(ended.id)
    assert [each["type"] for each in kept["events"]] == [each.type for each in recorded]


@pytest.mark.usefixtures("ended")
def test_an_archive_written_again_is_the_same_file(engine: Engine, tmp_path: Path) -> None:
    archive = Archive(lambda: engine, tmp_path / "archive")
    context, event = claim(engine)
    path = Path(str(archive.write(context, event)))
    before = path.read_bytes()
    assert engine.work.release(context.task_id, context.token).ok
    archive.write(*claim(engine))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_attempt_that_dies_half_way_leaves_no_file_and_the_next_clears_up(
    engine: Engine, ended: StartedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "archive"
    archive = Archive(lambda: engine, directory)
    context, event = claim(engine)

    def full(_: int) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="full"):
            archive.write(context, event)
    assert list(directory.glob("*.json")) == []
    assert engine.work.fail(context.task_id, context.token, "full").ok
    assert engine.tasks.run_now(context.task_id).ok
    archive.write(*claim(engine))
    assert read(directory).keys() == {f"{ended.id}.1.json"}


@pytest.mark.usefixtures("ended")
def test_a_late_attempt_writes_nothing(engine: Engine, tmp_path: Path) -> None:
    directory = tmp_path / "archive"
    context, event = claim(engine)
    assert engine.tasks.cancel(context.task_id).ok
    with pytest.raises(AttemptEnded):
        Archive(lambda: engine, directory).write(context, event)
    assert list(directory.iterdir()) == []


@pytest.mark.usefixtures("ended")
def test_an_attempt_that_is_late_by_the_time_it_has_written_puts_nothing_in_place(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "archive"
    archive = Archive(lambda: engine, directory)
    context, event = claim(engine)
    sync = os.fsync

    def be_late(handle: int) -> None:
        sync(handle)
        engine.tasks.cancel(context.task_id)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", be_late)
        with pytest.raises(AttemptEnded):
            archive.write(context, event)
    assert list(directory.glob("*.json")) == []


def test_two_archives_in_one_directory_do_not_meet(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.hooks.register([hook("archive", *RUN_ENDS), hook("another", *RUN_ENDS)])
    run = start(engine)
    run.finish("plan", "work", "review")
    archive = Archive(lambda: engine, tmp_path / "archive")
    first, second = claim(engine), claim(engine, "another")
    sync = os.fsync

    def let_the_other_write(handle: int) -> None:
        sync(handle)
        patched.undo()
        assert archive.write(*second) is not None

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", let_the_other_write)
        assert archive.write(*first) is not None
    assert read(tmp_path / "archive").keys() == {f"{run.id}.1.json"}


def test_each_generation_has_its_file_and_one_that_goes_on_again_waits_for_its_next_end(
    engine: Engine, ended: StartedRun, tmp_path: Path
) -> None:
    directory = tmp_path / "archive"
    archive = Archive(lambda: engine, directory)
    assert archive.write(*claim(engine)) is not None
    assert engine.runs.retry(ended.id).ok
    ended.break_for_good("work")
    late = claim(engine)
    assert engine.runs.retry(ended.id).ok
    assert archive.write(*late) is None
    ended.finish("work", "review")
    assert archive.write(*claim(engine)) is not None
    told = read(directory)
    assert {name: kept["run"]["status"] for name, kept in told.items()} == {
        f"{ended.id}.1.json": "failed",
        f"{ended.id}.3.json": "completed",
    }
    ends = [each["type"] for each in told[f"{ended.id}.3.json"]["events"]]
    assert ends.count("run.failed") == 2


def test_a_program_has_its_runs_archived_by_its_workers(hf: Holdfast, tmp_path: Path) -> None:
    kept, other = hf.workflow("kept"), hf.workflow("other")

    @kept.step
    @other.step
    def only() -> None: ...

    hf.archive(tmp_path / "archive", workflow=kept)
    assert [(each.name, each.about) for each in hf.hooks.list()] == [("archive", "kept")]
    with hf.worker():
        other.start().result(PATIENCE)
        run = kept.start()
        run.result(PATIENCE)
        file = tmp_path / "archive" / f"{run.id}.1.json"
        assert eventually(file.exists)
        assert eventually(lambda: {t.status for t in hf.tasks.list()} == {"done"})
    assert json.loads(file.read_text())["run"]["status"] == "completed"
    assert list(file.parent.iterdir()) == [file]


def test_an_archive_where_a_file_stands_is_refused_at_once(hf: Holdfast, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("notes")
    for directory in (file, file / "runs"):
        with pytest.raises(InvalidInput, match=f"directory: {file} is a file; name a folder"):
            hf.archive(directory)
    assert hf.hooks.list() == []
    hf.archive(tmp_path / "runs" / "ended")


def test_called_runs_are_archived_in_the_file_of_their_caller_and_have_no_file_of_their_own(
    engine: Engine, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    run = begin(engine, call())
    engine.hooks.register([hook("archive", *RUN_ENDS)])
    below = of(run)
    below.finish("pack", "send")
    archive = Archive(lambda: engine, kept)
    tasks = [take(engine, each.id) for each in fired(engine, "archive")]
    ends = {read_payload(each.task.payload).run_id: each for each in tasks}
    assert ends.keys() == {run.id, below.id}
    for run_id, written in ((below.id, None), (run.id, f"{kept}/{run.id}.1.json")):
        told = read_payload(ends[run_id].task.payload)
        assert archive.write(context_of(engine, ends[run_id]), told) == written
    (called,) = read(kept)[f"{run.id}.1.json"]["called"]
    assert (called["run"]["id"], len(called["tasks"])) == (below.id, 2)
