"""`holdfast` alone: what happened, what runs, and what to type."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.cli.render import report
from holdfast.engine.engine import Engine
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.model.worker import Overrun
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.step import OnFailure
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_loops import begin, loop
from tests.contract.raw_store import raw
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


def test_for_an_agent_with_a_command_in_the_project_a_worker_is_advised_and_no_claim(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "holdfast.yaml").write_text("agents: {coder: {command: [cat]}}\n")
    coded = create(engine, "Mend it", agent="coder", tags=("gpu",))
    claimed = create(engine, "Call mum", agent="me")
    shown = typed.ok()
    worker, claim = "holdfast worker --agent coder --tag gpu", "holdfast work claim --agent me"
    assert f"    {worker}\n" in shown
    assert f"    {claim}\n" in shown
    warnings = typed.json("doctor")["warnings"]
    assert [each.rpartition(": ")[2] for each in warnings] == [worker, claim]
    assert typed.json("why", coded)["fixes"] == [worker]
    assert typed.json("why", claimed)["fixes"] == [claim]
    (tmp_path / "holdfast.yaml").write_text("agents: 1\n")
    assert typed.json("why", coded)["fixes"] == ["holdfast work claim --agent coder --tag gpu"]


def test_the_report_and_the_doctor_tell_of_ready_work_that_nobody_serves(
    engine: Engine, typed: Typed
) -> None:
    engine.tasks.create_many([NewTask(title=f"job {n}", step="job") for n in range(1_000)])
    create(engine, "render", step="render", agent="artist", tags=("gpu",))
    create(engine, "Call mum", agent="me")
    unserved = '1,000 ready tasks for "default" are served by no live worker'
    shown = typed.ok()
    assert f"  ◆ {unserved}\n    holdfast worker MODULE:NAME\n" in shown
    render = '1 ready task for "artist" with gpu is served by no live worker'
    assert f"{render}\n    holdfast worker MODULE:NAME --agent artist --tag gpu\n" in shown
    mum = '1 ready task for "me" waits to be claimed: no live worker has a command for '
    mum += "'me' in its holdfast.yaml"
    assert f"{mum}\n    holdfast work claim --agent me\n" in shown
    told = typed.json("doctor")
    assert told["ok"]
    assert f"{unserved}: holdfast worker MODULE:NAME" in told["warnings"]
    engine.workers.register("crew", agents=["default"])
    counts = [(each["kind"], each["count"]) for each in typed.json()["standstills"]]
    assert counts == [("unserved", 1), ("unserved", 1)]


def test_the_report_and_the_doctor_tell_of_holds_that_nobody_lifts_by_waiting(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine)
    assert engine.tasks.hold(run.steps["plan"], "version").ok
    limited = create(engine, "draw", step="draw", agent="artist")
    engine.tasks.hold(limited, "limit", until="2h")
    version, limit = typed.json()["standstills"]
    assert (version["kind"], version["count"]) == ("version", 1)
    assert version["detail"].startswith("1 task on hold version: no worker so far could call")
    assert version["fix"] == f"holdfast why {run.steps['plan']}"
    assert limit["detail"].startswith("agent 'artist' is at its usage limit, 1 task on hold; it li")
    assert limit["fix"] == "holdfast resume --agent artist"
    warnings = typed.json("doctor")["warnings"]
    assert [each.partition(":")[0] for each in warnings] == [
        "1 task on hold version",
        limit["detail"],
    ]


def test_the_report_and_the_doctor_tell_of_failing_schedules_and_of_steps_skipped_after_failure(
    engine: Engine, typed: Typed, url: str
) -> None:
    engine.schedules.put(NewSchedule(name="nightly", cron="0 0 1 1 *", starts=NewTask(title="x")))
    with raw(url) as run_sql:
        run_sql("UPDATE holdfast_schedule SET last_error = 'no such zone'")
    steps = (Step(id="lint", on_failure=OnFailure(action="skip")), Step(id="ship", needs=("lint",)))
    run = start(engine, Workflow.define("release", steps))
    run.break_for_good("lint")
    run.finish("ship")
    details = [
        "schedule nightly could not start its last tick: no such zone",
        "1 step of release was skipped after failure (lint) in 1 run",
    ]
    assert [each["detail"] for each in typed.json()["standstills"]] == details
    warnings = typed.json("doctor")["warnings"]
    assert "nightly" in typed.ok("schedule", "list")
    assert warnings == [
        f"{details[0]}: holdfast schedule list",
        f"{details[1]}: holdfast show {run.id}",
    ]


def test_the_report_and_the_doctor_tell_of_slots_that_functions_keep_after_their_attempts(
    engine: Engine, typed: Typed
) -> None:
    begun = engine.workers.register("crew", agents=["default"], concurrency=2)
    assert begun is not None
    stuck = engine.tasks.create(NewTask(title="stuck", step="stuck", enqueue=False)).id
    over = Overrun(stuck, 1, begun["started_at"])
    engine.workers.announce("crew", begun["started_at"], None, [over])
    taken = "taken by a function that goes on after its attempt was over: stuck"
    (told,) = typed.json()["standstills"]
    assert told["detail"] == f"1 of 2 slots of worker crew is {taken}"
    assert typed.json("doctor")["warnings"] == [f"{told['detail']}: holdfast workers"]
