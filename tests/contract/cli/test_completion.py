"""What a shell offers: the ids and names that are in the store, and nothing where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.app.command_registry import build_command_line
from holdfast.cli.app.options import complete_id, complete_schedule, complete_workflow
from holdfast.engine.engine import Engine
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import start


@pytest.mark.usefixtures("typed")
def test_ids_and_names_are_completed_from_the_store(engine: Engine) -> None:
    run = start(engine, key="order-7")
    engine.schedules.put(NewSchedule(name="nightly", cron="0 2 * * *", starts=NewTask(title="t")))
    assert complete_id("r_") == [run.id]
    assert set(complete_id("t_")) == set(run.steps.values())
    assert (complete_id("key:or"), complete_id("key:x")) == (["key:order-7"], [])
    assert complete_id("@l") == ["@last"]
    assert complete_id(run.id[:-1]) == [run.id]
    assert (complete_workflow("ch"), complete_workflow("x")) == (["chain"], [])
    assert (complete_schedule("n"), complete_schedule("x")) == (["nightly"], [])


@pytest.mark.usefixtures("typed")
def test_without_a_store_nothing_is_offered_and_none_is_made(tmp_path: Path) -> None:
    assert (complete_id("r_"), complete_workflow(""), complete_schedule("")) == ([], [], [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("engine")
def test_a_shell_can_be_told_how_to_complete(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise it looks which shell it was started from, and the tests may have been from none.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    build_command_line.cache_clear()
    assert "_HOLDFAST_COMPLETE" in typed.ok("--show-completion", "bash")
    build_command_line.cache_clear()
