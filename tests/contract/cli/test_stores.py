"""Stores that cannot be opened, and where one is looked for: exit code 5, and a way out."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from holdfast.cli.commands.workers import open_program
from tests.contract.cli.command_line import Typed
from tests.contract.raw_store import raw
from tests.contract.read_only_folders import read_only_folder


@pytest.fixture
def alone(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """A person in a folder where nothing was set up."""
    monkeypatch.delenv("HOLDFAST_DB")
    return typed


def test_without_a_store_looking_makes_none_and_says_how_to_begin(
    alone: Typed, tmp_path: Path
) -> None:
    for arguments in (["runs"], ["doctor"], ["show", "@last"], ["cancel", "r_0"]):
        told = alone.refused(5, *arguments)
        assert "no store found here or above" in told
        assert "`holdfast init`" in told
    assert "next:  holdfast init" in alone.ok()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_made_by_what_makes_something_and_found_from_below(
    alone: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = alone.json("task", "add", "first")
    assert (tmp_path / ".holdfast/.gitignore").read_text() == "*\n"
    assert (tmp_path / ".holdfast/holdfast.db").stat().st_mode & 0o777 == 0o600
    below = tmp_path / "deep/below"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert alone.json("show", task["id"]) == alone.json("show", task["id"][:-1])
    assert not (below / ".holdfast").exists()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "elsewhere"))
    assert alone.json("tasks") == {"items": []}
    assert (tmp_path / "elsewhere/.gitignore").read_text() == "*\n"


def test_a_store_that_a_token_begins_is_named_and_one_that_was_there_is_not(
    alone: Typed, tmp_path: Path
) -> None:
    first, again = alone("token"), alone("token", "create", "ci", "--role", "worker")
    assert (
        first.err == f"store sqlite:///{tmp_path}/.holdfast/holdfast.db   (new: there was none)\n"
    )
    assert (first.code, again.code, again.err) == (0, 0, "")
    assert alone("token", "create", "eyes").err.startswith("a viewer, which only looks; --role ")


def test_init_writes_a_workflow_to_try_and_leaves_what_is_there(
    alone: Typed, tmp_path: Path
) -> None:
    assert "hello.yaml: a workflow to try" in alone.ok("init")
    assert "hello.yaml is valid" in alone.ok("workflow", "validate", "hello.yaml")
    written = tmp_path / "hello.yaml"
    written.write_text("mine")
    assert "is unchanged" in alone.ok("init")
    assert written.read_text() == "mine"


def test_settings_of_holdfast_yaml_hold_below_it_and_its_mistakes_are_shown_in_place(
    alone: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "holdfast.yaml: the settings of the project" in alone.ok("init")
    settings = tmp_path / "holdfast.yaml"
    settings.write_text("database: jobs.db\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    alone.ok("task", "add", "one")
    assert len(alone.json("tasks", "--db", "../jobs.db")["items"]) == 1
    assert alone.json("tasks", "--db", "../.holdfast/holdfast.db")["items"] == []
    settings.write_text("databsae: jobs.db\nleast_disk: none\n")
    told = alone.refused(2, "runs")
    assert f"{settings}:1:1: holdfast.yaml has no key 'databsae'" in told
    assert "    databsae: jobs.db\n    ^\n    did you mean 'database'?" in told
    assert f"{settings}:2:13: least_disk: 'none' is not a size" in told
    assert "next:  holdfast runs   (once it is mended)" in told
    said = alone("runs", "--json")
    error = json.loads(said.out)["error"]
    assert (error["code"], len(error["mistakes"])) == ("invalid_project_file", 2)


def test_servers_and_workers_have_the_connections_that_the_project_or_the_environment_says(
    alone: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "holdfast.yaml").write_text("connections: 12\n")
    with open_program(None, None) as program:
        assert program.settings.connections == 12
    monkeypatch.setenv("HOLDFAST_CONNECTIONS", "5")
    with open_program(None, "20s") as program:
        assert (program.settings.connections, program.settings.lease) == (5, 20)
    monkeypatch.setenv("HOLDFAST_CONNECTIONS", "3")
    told = alone.refused(2, "worker")
    assert "HOLDFAST_CONNECTIONS: must be a whole number of at least 4, not 3" in told


def test_init_makes_the_store_that_was_named(alone: Typed, tmp_path: Path) -> None:
    told = alone.ok("init", "--bare", "--db", "new.db")
    assert f"✓ sqlite:///{tmp_path / 'new.db'}: the store\n" in told
    assert alone.json("runs", "--db", "new.db") == {"items": []}
    assert "the store" in alone.ok("init", "--bare", "--db", "sqlite:///other.db")
    assert (tmp_path / "other.db").stat().st_size
    assert not (tmp_path / ".holdfast").exists()
    assert "-i name=Ada --wait --db new.db\n" in alone.ok("init", "--db", "new.db")


def test_init_here_makes_the_database_in_the_folder(alone: Typed, tmp_path: Path) -> None:
    assert "✓ .holdfast: the store, kept out of git\n" in alone.ok("init")
    assert (tmp_path / ".holdfast/holdfast.db").stat().st_size


def test_init_says_why_it_can_make_no_store(
    alone: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.service.service.PATIENCE", 0.05)
    (tmp_path / "notes.txt").write_text("dear diary, " * 500)
    told = alone.refused(5, "init", "--db", "notes.txt")
    assert "notes.txt is not a SQLite database" in told
    away = alone.refused(5, "init", "--db", "postgresql://127.0.0.1:1/jobs")
    assert "PostgreSQL does not answer" in away
    assert "does its folder exist?" in alone.refused(5, "init", "--db", "nowhere/new.db")


def test_a_home_in_a_folder_that_is_read_only_is_told(
    alone: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(read_only_folder(tmp_path))
    told = alone.refused(5, "init")
    assert ".holdfast cannot be made: its folder is read-only (" in told
    assert "; go to another one, or set HOLDFAST_HOME\n" in told


@pytest.mark.parametrize("schema", ["", "CREATE TABLE theirs (a)"])
def test_looking_writes_nothing_into_a_file_that_is_no_store(
    alone: Typed, tmp_path: Path, schema: str
) -> None:
    theirs = tmp_path / "theirs.db"
    with apsw.Connection(str(theirs)) as connection:
        connection.execute(schema)
    connection.close()
    theirs.touch()
    before = theirs.read_bytes()
    making = "holdfast db upgrade --db theirs.db"
    for arguments in (["runs"], ["show"], ["cancel", "r_0"], ["doctor"], ["logs", "t_0"]):
        told = alone.refused(5, *arguments, "--db", "theirs.db")
        assert f"theirs.db is not a Holdfast store; `{making}` creates one" in told
    assert theirs.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["theirs.db"]
    alone.ok("db", "upgrade", "--db", "theirs.db")
    assert alone.json("runs", "--db", "theirs.db") == {"items": []}


def test_looking_writes_nothing_into_somebody_elses_database_that_the_environment_names(
    typed: Typed, tmp_path: Path
) -> None:
    theirs = tmp_path / "holdfast.db"
    with apsw.Connection(str(theirs)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = theirs.read_bytes()
    assert "`holdfast db upgrade` creates one in it" in typed.refused(5, "runs")
    assert theirs.read_bytes() == before


def test_looking_makes_no_store_in_a_postgresql_database(alone: Typed, postgres_url: str) -> None:
    chosen = ("--db", postgres_url)
    for _ in range(2):
        told = alone.refused(5, "runs", *chosen)
        assert "this PostgreSQL database is not a Holdfast store" in told
    alone.ok("init", "--bare", *chosen)
    assert alone.json("runs", *chosen) == {"items": []}


def test_a_file_that_is_no_database_is_refused(alone: Typed, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary, " * 500)
    told = alone.refused(5, "runs", "--db", "notes.txt")
    assert "notes.txt is not a SQLite database; name another file" in told
    assert "it is a folder: name a file in it" in alone.refused(5, "runs", "--db", str(tmp_path))
    assert "'mysql' is not a database" in alone.refused(2, "runs", "--db", "mysql://localhost/x")


def test_a_store_that_is_damaged_is_told_how_to_get_its_backup_back(
    alone: Typed, tmp_path: Path
) -> None:
    alone.ok("db", "upgrade", "--db", "a.db")
    alone.ok("db", "backup", "b.db", "--db", "a.db")
    with (tmp_path / "a.db").open("r+b") as file:
        file.seek(20_000)
        file.write(b"damage" * 20_000)
    told = alone.refused(5, "runs", "--db", "a.db")
    assert told.endswith("next:  holdfast db restore FILE --db a.db   (its last backup)\n")
    alone.ok("db", "restore", "b.db", "--db", "a.db")
    assert alone.json("runs", "--db", "a.db") == {"items": []}


def test_a_database_of_a_newer_version_is_refused(typed: Typed, url: str) -> None:
    typed.ok("db", "upgrade")
    with raw(url) as run_sql:
        run_sql("INSERT INTO holdfast_migration VALUES (9999, 'future', 'x', 0)")
    told = typed.refused(5, "runs")
    assert "which this version of Holdfast does not know" in told
    assert told.endswith("next:  pip install --upgrade .   (in a newer clone of Holdfast)\n")


def test_a_locked_database_can_be_looked_at_and_a_change_is_told_who_waits(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed.ok("db", "upgrade")
    monkeypatch.setattr("holdfast.service.service.PATIENCE", 0.05)
    holder = apsw.Connection(str(tmp_path / "holdfast.db"))
    holder.execute("BEGIN IMMEDIATE")
    assert typed.json("runs") == {"items": []}
    told = typed.refused(5, "task", "add", "late")
    assert "another process, or a connection of this one, has kept" in told
    assert "stop it, or try again when it is done" in told
    holder.execute("ROLLBACK")
    holder.close()
    typed.ok("task", "add", "in time")


def test_a_server_that_is_away_is_told_without_its_password(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.service.service.PATIENCE", 0.05)
    url = "postgresql://ada:geheim@127.0.0.1:1/jobs"
    told = typed.refused(5, "runs", "--db", url)
    assert "PostgreSQL does not answer" in told
    assert "geheim" not in told
    reason = typed.refused(2, "db", "backup", "x.db", "--db", url)
    assert "use `pg_dump` for a PostgreSQL database" in reason
    assert "geheim" not in reason


def test_on_postgresql_the_commands_are_the_same(typed: Typed, postgres_store_url: str) -> None:
    chosen = ("--db", postgres_store_url)
    task = typed.json("task", "add", "there", *chosen)
    got = json.loads(typed.ok("work", "claim", *chosen))
    assert got["assignments"][0]["task"]["id"] == task["id"]
    token = got["assignments"][0]["token"]
    typed.ok("work", "complete", task["id"], "--token", token, *chosen)
    assert typed.json("show", task["id"][:-1], *chosen)["status"] == "done"
    assert typed.json("doctor", *chosen)["ok"]
    assert typed.json(*chosen)["needs_you"] == []
