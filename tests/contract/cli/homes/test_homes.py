"""Whose folder it is: a home that this user neither made nor trusts is refused."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from holdfast.cli.app.options import complete_id, complete_schedule, complete_workflow
from holdfast.worker.files.home_registry import KnownHome, read_known_homes, record_home
from holdfast.worker.files.homes import make_private_directory
from holdfast.worker.files.state_directory import find_state_directory
from tests.contract.cli.command_line import Typed
from tests.contract.cli.homes.foreign_homes import (
    ANOTHER,
    give_away,
    looked_at_afresh,
    make_home,
)
from tools.commands import Described, every_command

# What each of these is typed with here; the others, as their examples are.
TYPED_WITH = {
    "run": ["hello.yaml", "-i", "name=Ada"],
    "worker": [],
    "bus publish": ["workflow.commands"],
    "db upgrade": [],
    "serve": ["--port", "0"],
    "up": ["--port", "0"],
}
# They make a folder of their own, only read a file that is named, or are there for such a home.
FIND_NONE = {"agent show", "init", "demo", "trust", "workflow validate", "schedule preview"}


def words_of(command: Described) -> list[str]:
    """What to type for a command."""
    given = TYPED_WITH.get(command.name)
    if given is not None:
        return [*command.name.split(), *given]
    example = command.example.rpartition("holdfast ")[2].partition("&&")[0]
    return [word.replace("…", "x") for word in shlex.split(example)] or command.name.split()


def finds_home(command: Described) -> bool:
    return command.name not in FIND_NONE


@pytest.mark.usefixtures("known")
def test_every_command_that_finds_a_home_refuses_that_of_another(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = make_home(typed, tmp_path / "project")
    for each in ("hello", "report", "feature"):
        steps = "steps:\n  - {id: say, run: [echo, hello]}\n"
        Path(f"{each}.yaml").write_text(f"name: {each}\n{steps}")
    give_away(home, monkeypatch)
    before = sorted((each, each.stat().st_mtime_ns) for each in home.rglob("*"))
    monkeypatch.setenv("HOLDFAST_TASK", "t_1")
    monkeypatch.setenv("HOLDFAST_ATTEMPT_TOKEN", "1.x")
    # Whoever becomes root for a moment is root here.
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    told = {each.name: typed(*words_of(each)) for each in every_command() if finds_home(each)}
    told |= {"": typed(), "open --server": typed("open", "--server", "http://localhost:1")}
    obeyed = {
        name: said
        for name, said in told.items()
        if said.code != 5 or said.out or f"holdfast trust {home}" not in said.err
    }
    assert obeyed == {}
    assert len(told) > len(FIND_NONE)
    assert sorted((each, each.stat().st_mtime_ns) for each in home.rglob("*")) == before
    assert complete_id("") == complete_workflow("") == complete_schedule("") == []


@pytest.mark.usefixtures("known")
def test_a_home_of_another_is_refused_with_one_sentence_and_used_once_it_is_trusted(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = make_home(typed, tmp_path / "project")
    give_away(home, monkeypatch)
    below = tmp_path / "project" / "below"
    below.mkdir()
    os.chdir(below)
    # Nobody need be able to look into it.
    home.chmod(0)
    assert "belongs to " in typed.refused(5, "runs")
    home.chmod(0o700)
    refused = typed.refused(5, "runs")
    assert refused.count("\n") == 1
    assert "belongs to " in refused
    (told,) = [json.loads(line) for line in typed("runs", "--json").out.splitlines()]
    assert told["error"]["code"] == "not_trusted"
    assert told["error"]["next"] == f"holdfast trust {home}"
    shown = typed.json("trust", str(home))["items"]
    assert [(each["path"], each["tracked"]) for each in shown] == [(str(home), False)]
    assert str(ANOTHER) in shown[0]["owner"] or os.geteuid() != 0
    assert "evil" in typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_a_moved_project_goes_on_working_and_a_copy_is_refused(
    typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    shutil.copytree(tmp_path / "project", tmp_path / "copy")
    (tmp_path / "project").rename(tmp_path / "moved")
    for folder, said in (("moved", ""), ("copy", "is a copy of")):
        os.chdir(tmp_path / folder)
        looked_at_afresh()
        if said:
            assert f"{said} {tmp_path}/moved/.holdfast" in typed.refused(5, "runs")
        else:
            assert typed("runs").code == 0
    # Moved to another disk: copied, and then removed.
    shutil.rmtree(tmp_path / "moved")
    assert typed("runs").code == 0


def test_a_home_from_an_earlier_version_is_taken_over_once_and_told(
    typed: Typed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = make_home(typed, tmp_path / "project")
    # As the earlier version left it, where new folders are open to one's own group.
    (home / "identities").unlink()
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "project", other)
    (tmp_path / "linked").mkdir()
    os.chdir(tmp_path / "linked")
    Path(".holdfast").symlink_to(home)
    assert "is a symbolic link to" in typed.refused(5, "runs")
    os.chdir(tmp_path / "project")
    home.chmod(0o777)
    assert "may be written to by other users" in typed.refused(5, "runs")
    home.chmod(0o775)
    typed.ok("runs")
    (told,) = [each.getMessage() for each in caplog.records]
    assert told.startswith(f"{home} is from before Holdfast remembered")
    assert home.stat().st_mode & 0o777 == 0o755
    looked_at_afresh()
    typed.ok("runs")
    assert len(caplog.records) == 1
    # It was there before homes were remembered, too.
    os.chdir(other)
    typed.ok("runs")
    assert len(caplog.records) == 2
    # That one was not.
    shutil.copytree(tmp_path / "project", tmp_path / "unpacked")
    (tmp_path / "unpacked" / ".holdfast" / "identities").unlink()
    os.chdir(tmp_path / "unpacked")
    assert "was not made here" in typed.refused(5, "runs")
    known = read_known_homes()
    assert known is not None
    assert known.file.stat().st_mode & 0o777 == 0o600
    assert known.file.parent.stat().st_mode & 0o777 == 0o700
    known.file.write_text("{")
    damaged = typed.refused(5, "runs")
    assert f"{known.file}, where it is remembered which homes are yours, is damaged" in damaged


def test_a_home_that_others_may_write_to_is_refused(typed: Typed, tmp_path: Path) -> None:
    typed.ok("init", "--bare")
    home = tmp_path / "project" / ".holdfast"
    for mode in (0o770, 0o777):
        home.chmod(mode)
        looked_at_afresh()
        assert "may be written to by other users" in typed.refused(5, "runs")
    assert typed.json("trust", str(home))["items"][0]["writable"] is True
    typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_a_home_that_is_a_symbolic_link_is_refused_and_used_once_it_is_trusted(
    typed: Typed, tmp_path: Path
) -> None:
    Path(".holdfast").symlink_to(tmp_path / "project" / "before" / ".holdfast")
    refused = typed.refused(5, "runs")
    assert f"is a symbolic link to {tmp_path}/project/before/.holdfast" in refused
    typed.ok("trust", ".")
    typed.ok("runs")
    Path("deeper").mkdir()
    os.chdir("deeper")
    Path(".holdfast").symlink_to(tmp_path / "project" / "before" / ".holdfast")
    assert "is a symbolic link to" in typed.refused(5, "runs")


def test_a_store_or_home_of_another_user_is_used_where_it_is_named(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = make_home(typed, tmp_path / "project")
    give_away(home, monkeypatch)
    typed.refused(5, "runs")
    assert "evil" in typed.ok("runs", "--db", str(home / "holdfast.db"))
    monkeypatch.setenv("HOLDFAST_DB", str(home / "holdfast.db"))
    assert "evil" in typed.ok("runs")
    # But its token is another's still, and so is the place that it would be sent to.
    assert "it belongs to another user" in typed.refused(2, "token")
    # Also where a home of one's own once stood.
    entry = KnownHome(path=str(home), owner=os.geteuid() + 1, id="x")
    assert record_home(entry)
    assert "it belongs to another user" in typed.refused(2, "token")
    monkeypatch.delenv("HOLDFAST_DB")
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    assert "evil" in typed.ok("runs")
    assert typed.ok("token").startswith("hf_")


@pytest.mark.usefixtures("known")
def test_a_container_goes_on_with_its_old_volume(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_home(typed, tmp_path / "data")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "root"))
    (tmp_path / "root").mkdir()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "data" / ".holdfast"))
    said = typed("runs")
    assert ("evil" in said.out, said.err) == (True, "")


@pytest.mark.parametrize("home", [None, "/nonexistent", "/proc/nothing", "file", "of-another"])
def test_a_service_whose_user_has_no_home_folder_goes_on_working(
    home: str | None, typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME")
    if home is None:
        # The home folder that the system knows of is that of whoever runs the tests.
        monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError()))
    elif home == "of-another":
        state = tmp_path / "theirs" / ".local" / "state" / "holdfast"
        state.mkdir(parents=True)
        state.chmod(0o777)
        monkeypatch.setenv("HOME", str(tmp_path / "theirs"))
    else:
        (tmp_path / "file").touch()
        monkeypatch.setenv("HOME", home if home.startswith("/") else str(tmp_path / home))
    if home == "/nonexistent":
        # Root could make it.
        monkeypatch.setenv("HOME", "/dev/null/nonexistent")
    typed.ok("init", "--bare")
    looked_at_afresh()
    said = typed("runs")
    assert (said.code, said.err.count("\n")) == (0, 1), said
    assert "No runs yet" in said.err
    # What is another's is refused all the same, and what is to be typed then works.
    give_away(tmp_path / "project" / ".holdfast", monkeypatch)
    refused = typed.refused(5, "runs")
    assert "first set XDG_STATE_HOME to a folder of yours" in refused
    assert "cannot be remembered" in typed.refused(5, "trust", ".")


def test_past_the_home_of_another_above_a_folder_gets_its_own(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    give_away(make_home(typed, tmp_path / "project"), monkeypatch)
    Path("own").mkdir()
    os.chdir("own")
    said = typed("init", "--bare")
    assert (said.code, "this folder gets a home of its own" in said.err) == (0, True)
    typed.ok("runs")


def test_the_home_that_a_store_on_a_server_uses_is_remembered_when_a_worker_makes_it(
    typed: Typed,
) -> None:
    assert typed("runs").code == 5
    make_private_directory(find_state_directory("postgresql://host/jobs").root / "logs")
    Path(".holdfast/logs/t_1").mkdir()
    looked_at_afresh()
    assert find_state_directory("postgresql://host/jobs").root == Path.cwd() / ".holdfast"
