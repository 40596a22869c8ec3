"""A run that is started for later from a shell: how it is told, and what it is refused for."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from tests.contract.cli.command_line import Typed

LETTERS = "name: letters\nsteps: [{id: write, agent: writer}]\nagents: {writer: {external: true}}"


@pytest.fixture
def letters(tmp_path: Path) -> str:
    path = tmp_path / "letters.yaml"
    path.write_text(LETTERS)
    return str(path)


def test_a_run_for_later_is_shown_as_scheduled_until_it_starts(
    engine: Engine, typed: Typed, letters: str
) -> None:
    options = ("--key", "k", "--at", "2h", "--priority", "5", "--concurrency", "repo:a=2")
    made = typed.json("run", letters, *options)
    run = engine.runs.get(made["id"])
    assert (run.priority, run.concurrency_key, made["holds"]) == (5, "run:repo:a", ["scheduled"])
    assert (
        engine.database.view(lambda tx: tx.read("slot_by_key", key="run:repo:a"))[0]["capacity"]
        == 2
    )
    again = typed.ok("run", letters, "--key", "k", "--at", "5h", "--priority", "9")
    assert again == f"letters {run.id} already exists: scheduled\n"
    assert engine.runs.get(run.id) == run
    listed = typed.ok("runs").splitlines()[1]
    assert " scheduled " in listed
    assert " UTC, in 2h 00m" in listed or " UTC, in 1h 59m" in listed
    assert " · scheduled " in typed.ok("show", "key:k").splitlines()[0]
    told = typed.ok("why", "key:k")
    assert ", starts 20" in told
    assert f"Fix:   holdfast resume {run.id}" in told
    assert typed.ok("resume", "key:k") == f"letters {run.id} is running\n"
    assert engine.runs.get(run.id).holds == 0


@pytest.mark.usefixtures("engine")
def test_options_that_cannot_be_are_refused_by_their_names(typed: Typed, letters: str) -> None:
    assert typed.refused(2, "run", letters, "--at", "soon").startswith("error: at: 'soon' is no")
    told = typed.refused(2, "run", letters, "--concurrency", f"repo={'9' * 5_000}")
    assert told.startswith("error: concurrency.limit: must be a whole number")
    told = typed.refused(2, "run", letters, "--concurrency", " ")
    assert told.startswith("error: concurrency.key: must be non-empty")
    assert "no time zone" not in typed.ok("run", letters, "--at", "2040-01-31T09:00")
