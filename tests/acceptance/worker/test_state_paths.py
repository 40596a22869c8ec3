"""Nothing below the folder of a state leads out of it: no id, no number, no link."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.errors import InvalidInput, StoreUnwritable
from holdfast.service.admin.cleanup import Leftovers, remove_folders
from holdfast.settings import KeepTimes
from holdfast.worker.files.artifacts import Artifact
from holdfast.worker.files.attempt_log import AttemptLog, append_to_log
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.files.state_paths import StatePath
from holdfast.worker.steps.command_environment import make_command_files
from holdfast.worker.steps.orphans import CommandRecord, end_orphans, make_record

TASK = "t_00000000000000000001"
KEPT = "what others keep"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    for name in ("1.log", "data", "input.json", "output.json", ".store", "report"):
        (folder / name).write_text(KEPT)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(root=tmp_path / "state")


def untouched(victim: Path) -> bool:
    names = sorted(each.name for each in victim.iterdir())
    kept = all((victim / each).read_text() == KEPT for each in names)
    return kept and names == [".store", "1.log", "data", "input.json", "output.json", "report"]


def link(place: StatePath, target: Path) -> None:
    place.path.parent.mkdir(parents=True, exist_ok=True)
    place.path.symlink_to(target)


@pytest.mark.parametrize("task", ["../../victim/data", "..", "", "t_1", f"{TASK}/x", f"{TASK}\n"])
def test_an_id_that_is_none_names_no_path(state: StateDirectory, task: str) -> None:
    with pytest.raises(InvalidInput):
        state.log(task, 1)
    with pytest.raises(InvalidInput):
        state.files(task, 1)
    with pytest.raises(InvalidInput):
        state.artifacts(task)


@pytest.mark.parametrize("attempt", ["1/../../victim", "1", 1.0, -1, True, None, 2**40])
def test_a_number_that_is_none_names_no_path(state: StateDirectory, attempt: object) -> None:
    number: int = attempt  # type: ignore[assignment]
    for name in (state.log, state.files):
        with pytest.raises(InvalidInput):
            name(TASK, number)


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc", "a\0", "a\n", "x" * 256])
def test_a_part_of_a_path_is_one_name(state: StateDirectory, name: str) -> None:
    with pytest.raises(InvalidInput):
        state.logs / name


def test_a_log_is_written_and_read_through_no_link(state: StateDirectory, victim: Path) -> None:
    log = state.log(TASK, 1)
    for place, target in ((log, victim / "1.log"), (log.parent, victim), (state.logs, victim)):
        link(place, target)
        with AttemptLog(state.log(TASK, 1)) as attempt_log:
            attempt_log.write(b"on it")
        with pytest.raises(StoreUnwritable, match="link"):
            append_to_log(state.log(TASK, 1), b"on it")
        with pytest.raises(OSError, match=r"link|irector"):
            log.read()
        place.path.unlink()
        if place != state.logs:
            place.path.parent.rmdir()
    assert untouched(victim)


def test_a_pipe_in_the_place_of_a_log_is_not_waited_for(state: StateDirectory) -> None:
    log = state.log(TASK, 1)
    log.path.parent.mkdir(parents=True)
    os.mkfifo(log.path)
    with pytest.raises(OSError, match="no regular file"):
        log.read()


def test_the_files_of_an_attempt_are_made_and_removed_through_no_link(
    state: StateDirectory, victim: Path
) -> None:
    place = state.files(TASK, 1)
    link(place, victim)
    with make_command_files(place) as files:
        files.write_input({"a": 1})
        assert files.input.read() == b'{"a": 1}'
        assert not files.folder.path.is_symlink()
    assert (place.path.is_symlink(), files.folder.path.exists()) == (True, False)
    place.remove_folder()
    place.path.unlink()
    place.parent.path.rmdir()
    link(place.parent, victim)
    with pytest.raises(OSError, match=r"link|irector"), make_command_files(place):
        pass
    place.remove_folder()
    assert untouched(victim)


def test_a_folder_that_took_the_place_of_the_files_of_an_attempt_is_not_removed(
    state: StateDirectory, victim: Path
) -> None:
    with make_command_files(state.files(TASK, 1)) as files:
        files.folder.path.rename(files.folder.path.with_name("aside"))
        victim.rename(files.folder.path)
    assert untouched(files.folder.path)


def test_links_inside_of_the_files_of_an_attempt_go_and_what_they_lead_to_stays(
    state: StateDirectory, victim: Path
) -> None:
    with make_command_files(state.files(TASK, 1)) as files:
        (files.folder.path / "away").symlink_to(victim)
        files.output.path.symlink_to(victim / "output.json")
        assert files.read_output(100) is None
        files.write_input({})
    assert not files.folder.path.exists()
    assert untouched(victim)


def test_an_artifact_is_kept_through_no_link(state: StateDirectory, victim: Path) -> None:
    for place in (state.artifacts(TASK), state.all_artifacts):
        link(place, victim)
        with pytest.raises(StoreUnwritable, match="link"):
            Artifact(state, TASK, "report", b"new").write_temporary("store")
        place.path.unlink()
        place.path.parent.rmdir()
    folder = state.artifacts(TASK)
    for name in (".store", "report"):
        link(folder / name, victim / name)
    artifact = Artifact(state, TASK, "report", b"new")
    artifact.write_temporary("store")
    artifact.put_in_place()
    assert artifact.path.read_bytes() == b"new"
    assert untouched(victim)


def test_a_record_of_a_command_leads_nowhere_else(state: StateDirectory, victim: Path) -> None:
    record = make_record("t_1", 1)
    forged = CommandRecord(
        **{**vars(record), "task": "../../../victim/data", "worker_started": "0"}
    )
    state.processes.make_folder()
    (state.processes / "t_1.1.json").write(repr(vars(forged)).replace("'", '"').encode())
    assert end_orphans(state.processes) == []
    (state.processes / "t_1.1.json").remove()
    state.processes.path.rmdir()
    link(state.processes, victim)
    with pytest.raises(OSError, match=r"link|irector"):
        record.write(state.processes)
    assert end_orphans(state.processes) == []
    assert untouched(victim)


def test_cleaning_removes_folders_of_tasks_and_nothing_else(tmp_path: Path, victim: Path) -> None:
    state = StateDirectory(root=tmp_path / "state")
    with Holdfast(f"sqlite:///{tmp_path}/store.db") as hf:
        leftovers = Leftovers(engine_of(hf), state, KeepTimes(logs=0.0))
        other = TASK[:-1] + "2"
        append_to_log(state.log(TASK, 1), b"old")
        (state.logs / "notes").make_folder()
        link(state.logs / other, victim)
        long_ago = time.time() - 1_000
        for each in (state.log(TASK, 1), state.log(TASK, 1).parent, state.logs / "notes"):
            os.utime(each.path, (long_ago, long_ago))
        remove_folders([*leftovers.find_logs(), state.logs / other])
        assert state.logs.list_names() == ["notes", other] or state.logs.list_names() == [
            other,
            "notes",
        ]
        assert untouched(victim)
