"""Definitions that are kept before anything is started from them: each version once."""

from __future__ import annotations

from typing import Any, cast

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.raw_store import raw
from tests.contract.task_states import CHAIN, FORK, start


def test_a_version_is_kept_once_and_the_first_stands(
    engine: Engine, store_url: str, clock: ManualClock
) -> None:
    begun = clock.now()
    assert engine.workflows.add(CHAIN)
    clock.advance(60)
    assert not engine.workflows.add(CHAIN)
    start(engine, CHAIN)
    start(engine, FORK)
    assert not engine.workflows.add(FORK)
    with raw(store_url) as ask:
        rows = ask("SELECT name, version, created_at FROM holdfast_workflow ORDER BY name")
    assert [(row["name"], row["version"]) for row in rows] == [
        ("chain", CHAIN.version),
        ("fork", FORK.version),
    ]
    assert rows[0]["created_at"] == begun


def test_a_name_means_the_version_that_was_added_last_known_before_or_not(
    engine: Engine, store_url: str, clock: ManualClock
) -> None:
    first, second = (Workflow.define("letters", (Step(id=name),)) for name in ("write", "send"))
    beside = Workflow.define("others", (Step(id="write"),))

    def meant() -> str:
        (row,) = engine.database.view(lambda tx: tx.read("newest_version", name="letters"))
        return str(row["version"])

    def moments() -> dict[tuple[str, str], int]:
        with raw(store_url) as ask:
            rows = ask("SELECT name, version, created_at FROM holdfast_workflow")
        return {(row["name"], row["version"]): row["created_at"] for row in rows}

    begun = clock.now()
    for added in (first, second, first, second):
        engine.workflows.add(added)
        assert meant() == added.version
    clock.advance(60)
    engine.workflows.add(beside)
    start(engine, first)
    assert meant() == second.version
    stood = moments()
    engine.workflows.add(second)
    assert moments() == stood
    engine.workflows.add(first)
    assert moments() == stood | {("letters", first.version): begun + 60_000_000}
    assert meant() == first.version


def test_an_object_that_is_no_workflow_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="workflow: must be a Workflow, not str"):
        engine.workflows.add(cast("Any", "chain"))
