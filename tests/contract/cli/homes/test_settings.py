"""Settings of another, and stores that settings name, are refused unless they are trusted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.cli.app.session import worker_settings
from holdfast.engine.engine import engine_of
from tests.contract.cli.command_line import Typed
from tests.contract.cli.homes.foreign_homes import (
    SETTINGS,
    cloned,
    git,
    give_away,
    looked_at_afresh,
)


def test_settings_of_another_are_refused_here_and_above(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    settings = tmp_path / "project" / "holdfast.yaml"
    settings.write_text("concurrency: {agents: 3}\n")
    typed.ok("runs")
    settings.chmod(0o666)
    assert "may be written to by other users" in typed.refused(5, "runs")
    settings.chmod(0o664)
    typed.ok("runs")
    (tmp_path / "project" / "below").mkdir()
    give_away(settings, monkeypatch)
    for folder in ("project", "project/below"):
        os.chdir(tmp_path / folder)
        assert f"{settings} belongs to" in typed.refused(5, "worker")
        assert f"holdfast trust {settings}" in typed.refused(5, "runs")
    typed.ok("trust", str(tmp_path / "project" / ".holdfast"))
    typed.ok("trust", str(settings))
    typed.ok("runs")
    # Others of the same user are not trusted with it.
    (tmp_path / "second").mkdir()
    os.chdir(tmp_path / "second")
    Path("holdfast.yaml").write_text("concurrency: {agents: 3}\n")
    give_away(Path("holdfast.yaml"), monkeypatch)
    assert "second/holdfast.yaml belongs to" in typed.refused(5, "runs")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("named", [["runs"], ["runs", "--db", "data/jobs.db"]])
def test_a_committed_copy_is_not_told_of_as_what_was_saved_here(
    named: list[str], typed: Typed, tmp_path: Path
) -> None:
    home = cloned(typed, tmp_path)
    Path("data").mkdir()
    shutil.move(home / "holdfast.db", "data/jobs.db.saved-20260101-000000-1.db")
    shutil.rmtree(home)
    Path("holdfast.yaml").write_text(SETTINGS.format("data/jobs.db"))
    git(Path(), "add", "-f", ".")
    refused = typed.refused(5, *named)
    assert "is tracked by git" in refused
    assert "db restore" not in refused


@pytest.mark.usefixtures("known")
def test_a_store_that_settings_name_is_used_once_it_is_restored(
    typed: Typed, tmp_path: Path
) -> None:
    Path("data").mkdir()
    Path("holdfast.yaml").write_text(SETTINGS.format("data/jobs.db"))
    typed.ok("task", "add", "one")
    typed.ok("db", "backup", str(tmp_path / "copy.db"))
    shutil.rmtree("data")
    Path("data").mkdir()
    typed.ok("db", "restore", str(tmp_path / "copy.db"), "--db", "data/jobs.db")
    assert "one" in typed.ok("tasks")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("named", ["data/jobs.db", ".holdfast/holdfast.db"])
def test_a_committed_store_that_committed_settings_name_is_refused(
    named: str, typed: Typed, tmp_path: Path
) -> None:
    home = cloned(typed, tmp_path)
    Path("data").mkdir()
    shutil.copy(home / "holdfast.db", "data/jobs.db")
    if not named.startswith("."):
        shutil.rmtree(home)
    Path("holdfast.yaml").write_text(SETTINGS.format(named))
    git(Path(), "add", "-f", ".")
    assert "is tracked by git" in typed.refused(5, "runs")
    assert "is tracked by git" in typed.refused(5, "worker")
    # The state beside a store that is not there may be committed, with a token in it.
    if not named.startswith("."):
        Path("data/jobs.db").unlink()
        Path("data/jobs.db.state").mkdir()
        Path("data/jobs.db.state/token").write_text(f"hf_{'k' * 40}\n")
        git(Path(), "add", "-f", ".")
        refused = typed.refused(5, "token")
        assert "jobs.db.state is tracked by git" in refused
        typed.ok("trust", "data/jobs.db.state")
        typed.ok("token")


def test_a_store_that_settings_name_and_that_was_made_here_goes_on_working(
    typed: Typed, tmp_path: Path
) -> None:
    git(Path(), "init", "-q")
    Path("holdfast.yaml").write_text(SETTINGS.format("jobs.db"))
    git(Path(), "add", ".")
    typed.ok("init", "--bare")
    looked_at_afresh()
    assert typed("runs").code == 0
    git(Path(), "add", "-f", "jobs.db")
    assert "jobs.db is tracked by git" in typed.refused(5, "runs")
    # Another's store of another folder is not made one's own by settings either.
    os.chdir(tmp_path)
    Path("holdfast.yaml").write_text(SETTINGS.format("theirs.db"))
    engine_of(Holdfast(f"sqlite:///{tmp_path}/theirs.db")).close()
    assert "theirs.db was not made here" in typed.refused(5, "runs")
    typed.ok("trust", "theirs.db")
    typed.ok("runs")


def test_committed_settings_that_name_a_server_of_databases_are_refused_until_they_are_trusted(
    typed: Typed,
) -> None:
    Path("holdfast.yaml").write_text(SETTINGS.format("postgresql://127.0.0.1:1/jobs"))
    git(Path(), "init", "-q")
    assert "127.0.0.1" in typed.refused(5, "runs")
    git(Path(), "add", ".")
    assert "names a database and is tracked by git" in typed.refused(5, "runs")
    typed.ok("trust", ".")
    assert "holdfast trust" not in typed.refused(5, "runs")


def test_committed_commands_of_agents_are_run_by_no_worker_until_they_are_trusted(
    typed: Typed,
) -> None:
    typed.ok("init", "--bare")
    Path("holdfast.yaml").write_text("agents: {coder: {command: [./evil.sh]}}\n")
    git(Path(), "init", "-q")
    assert [*worker_settings().commands] == ["coder"]
    git(Path(), "add", "holdfast.yaml")
    for words in (("worker",), ("worker", "--server", "http://127.0.0.1:1"), ("up",)):
        told = typed.refused(5, *words)
        assert "names commands of agents and is tracked by git" in told, words
    typed.ok("tasks")
    typed.ok("trust", ".")
    assert [*worker_settings().commands] == ["coder"]
