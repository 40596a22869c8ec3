"""`holdfast` alone: what happened, what runs, and what to type."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.cli.render import report
from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import Step
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_loops import begin, loop
from tests.contract.task_states import FORK, break_for_good, create, start


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: these are the queries of the service."""
    return store_url


def test_the_report_tells_what_happened_what_runs_and_what_to_type(
    engine: Engine, typed: Typed
) -> None:
    done, failed, running = start(engine), start(engine, FORK), start(engine)
    done.finish("plan", "work", "review")
    failed.break_for_good("plan")
    shown = typed.ok()
    assert "1 completed, 1 failed" in shown
    assert f"✗ fork {failed.id}  broken" in shown
    assert f"● chain {running.id}  0/3" in shown
    assert f"next:  holdfast why {failed.id}" in shown
    assert f"       holdfast show {running.id} --follow" in shown
    told = typed.json()
    assert told["counts"] == {"completed": 1, "failed": 1}
    assert [each["id"] for each in told["running"]] == [running.id]
    assert datetime.fromisoformat(told["since"]) < datetime.now(UTC)


def test_the_report_points_at_a_task_without_a_run_that_failed(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone = create(engine, "Send the mail")
    break_for_good(engine, lone)
    shown = typed.ok()
    assert "no run has ended; 1 task without a run failed\n" in shown
    assert shown.endswith(
        f"  ✗ Send the mail {lone}  broken\n"
        f"next:  holdfast why {lone}\n"
        f"       holdfast retry {lone}\n"
    )
    run = start(engine)
    run.break_for_good("plan")
    newest = create(engine)
    break_for_good(engine, newest)
    monkeypatch.setattr(report, "SHOWN", 1)
    shown = typed.ok()
    assert "1 failed; 2 tasks without a run failed\n" in shown
    assert "  and 1 more task that failed: holdfast tasks --status failed\n" in shown
    assert shown.endswith(
        f"next:  holdfast why {run.id}\n"
        f"       holdfast retry {run.id}\n"
        f"       holdfast why {newest}\n"
        f"       holdfast retry {newest}\n"
    )
    start(engine).break_for_good("plan")
    assert "  and 1 more run that failed: holdfast runs --status failed\n" in typed.ok()


def test_the_report_lists_what_of_runs_nobody_has_put_in_the_queue(
    engine: Engine, typed: Typed
) -> None:
    create(engine, "for later", enqueue=False)
    begin(engine, loop("input", body=(Step(id="one"),)), given=["a", "b"])
    run = start(engine)
    assert "Needs you" not in typed.ok()
    assert engine.tasks.reset(run.steps["work"]).ok
    assert "Needs you" not in typed.ok(), "it waits for another"
    run.finish("plan")
    work = run.steps["work"]
    shown = typed.ok()
    assert f"  ◆ {run.id}:work  it is not in the queue\n    holdfast task enqueue {work}\n" in shown
    typed.ok("task", "enqueue", work)
    assert "Needs you" not in typed.ok()
