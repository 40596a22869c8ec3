"""Whole runs on the command line: logs and events with their steps, loops unfolded, old rounds."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import OnFailure, Step, Workflow
from holdfast.worker.files.state_directory import find_state_directory
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_loops import begin, loop, of, planned, work_off
from tests.contract.task_states import create, finish, start, take

NARROW = 44


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: these are the queries of the service."""
    return store_url


def write_log(url: str, task_id: str, attempt: int, text: str) -> None:
    path = find_state_directory(url).log(task_id, attempt)
    path.write(text.encode())


def test_the_logs_of_a_run_tell_the_step_of_each_line(
    engine: Engine, typed: Typed, url: str
) -> None:
    run = begin(engine, loop("input", body=(Step(id="make"),), parallel=2), given=["a", "b"])
    first, second = of(engine, run, "make")
    assert typed("logs", run).err == f"{run} has no logs yet: holdfast why {run}\n"
    take(engine, first.id)
    lost = take(engine, second.id)
    assert engine.work.release(second.id, lost.token).ok
    take(engine, second.id)
    write_log(url, first.id, 1, "one\n\ntwo")
    write_log(url, second.id, 1, "gone\n")
    write_log(url, second.id, 2, "again\n")
    assert typed.ok("logs", run).splitlines() == [
        "build.1.make  one",
        "build.1.make  ",
        "build.1.make  two",
        "build.2.make attempt 1  gone",
        "build.2.make attempt 2  again",
    ]
    told = typed.json("logs", run)["items"]
    assert [(each["step"], each["attempt"], each["log"]) for each in told] == [
        ("build.1.make", 1, "one\n\ntwo"),
        ("build.2.make", 1, "gone\n"),
        ("build.2.make", 2, "again\n"),
    ]
    assert "is for one task: holdfast logs" in typed.refused(2, "logs", run, "--attempt", "1")
    assert engine.runs.cancel(run).ok
    assert typed.ok("logs", run, "--follow").splitlines()[:3] == [
        "build.1.make  one",
        "build.1.make  ",
        "build.1.make  two",
    ]


def test_the_attempts_of_a_run_are_told_in_the_order_in_which_they_began(
    engine: Engine, typed: Typed, url: str
) -> None:
    build, verify = Step(id="build"), Step(id="verify", needs=("build",), verifies="build")
    run = start(engine, Workflow.define("judged", (build, verify)))
    for verdict in ({"verdict": "reject", "feedback": "again"}, {"verdict": "accept"}):
        for step, output in (("build", None), ("verify", verdict)):
            attempt = take(engine, run.steps[step])
            write_log(url, attempt.task_id, attempt.attempt, f"log of {attempt.attempt}")
            assert engine.work.complete(attempt.task_id, attempt.token, output).ok
    lines = [
        f"{step} attempt {number}  log of {number}"
        for number in (1, 2)
        for step in ("build", "verify")
    ]
    assert typed.ok("logs", run.id).splitlines() == lines
    assert typed.ok("logs", run.id, "--follow").splitlines() == lines


def test_an_event_has_the_step_and_title_of_its_task_and_the_workflow_of_its_run(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine)
    lone = create(engine, "Tidy the shed")
    about = [
        (each.get("task_id", each.get("run_id")), each.get("step"), each["title"])
        for words in (("events",), ("events", run.id), ("events", lone))
        for each in typed.json(*words)["items"]
    ]
    assert {*about} == {
        (run.id, None, "chain"),
        *((run.steps[step], step, step) for step in ("plan", "work", "review")),
        (lone, None, "Tidy the shed"),
    }


def test_a_finished_loop_is_unfolded_on_demand(engine: Engine, typed: Typed) -> None:
    run = planned(engine, loop(needs=("plan",)), stories=["a", "b"])
    work_off(engine, run)
    folded, unfolded = typed.ok("show", run), typed.ok("show", run, "--all")
    assert "implement" not in folded
    assert [line.split()[:2] for line in unfolded.splitlines()[1:]] == [
        ["✓", "plan"],
        ["✓", "build"],
        *[["✓", "1"], ["✓", "implement"], ["✓", "test"]],
        *[["✓", "2"], ["✓", "implement"], ["✓", "test"]],
    ]
    (group, *_) = of(engine, run, "build")
    assert "implement" in typed.ok("show", group.id, "--all")
    assert "implement" not in typed.ok("show", group.id)


def test_tasks_mark_those_of_an_older_epoch(engine: Engine, typed: Typed) -> None:
    run = planned(engine, loop(needs=("plan",)), stories=["a"])
    (old,) = of(engine, run, "implement")
    finish(engine, old.id)
    assert engine.runs.retry(run, step="plan").ok
    listed = typed.ok("tasks", "--run", run)
    (line,) = [each for each in listed.splitlines() if each.startswith(old.id)]
    assert "build.1.implement" in line
    assert "done superseded" in line
    assert listed.count("superseded") == sum(each.superseded for each in engine.runs.tasks(run))


def test_a_step_that_was_skipped_after_failure_shows_what_failed(
    engine: Engine, typed: Typed
) -> None:
    lint = Step(id="lint", on_failure=OnFailure(action="skip"))
    run = start(engine, Workflow.define("release", (lint, Step(id="ship", needs=("lint",)))))
    run.break_for_good("lint")
    assert typed.ok("show", run.id).splitlines()[1].endswith("skipped after broken")
    (line,) = [each for each in typed.ok("tasks").splitlines() if "lint" in each]
    assert " done skipped " in line


def test_runs_tell_the_key_the_cost_and_what_needs_a_person(engine: Engine, typed: Typed) -> None:
    steps = (Step(id="plan"), Step(id="merge", needs=("plan",), approval="Merge it?"))
    run = start(engine, Workflow.define("stories", steps), key="monday")
    assert "needs_you" not in typed.json("runs")["items"][0]
    taken = run.take("plan")
    assert engine.work.complete(taken.task.id, taken.token, 1, usage={"usd": 0.5}).ok
    heading, line = typed.ok("runs").splitlines()
    assert heading.split()[:4] == ["ID", "WORKFLOW", "KEY", "STATUS"]
    for word in ("monday", "$0.50", f"needs you: {run.id}:merge  Merge it?"):
        assert word in line
    (told,) = typed.json("runs")["items"]
    assert [each["id"] for each in told["needs_you"]] == [run.steps["merge"]]
    assert engine.runs.pause(run.id).ok
    assert "needs_you" not in typed.json("runs")["items"][0], "it cannot be settled now"


def test_no_word_of_why_is_broken_on_a_narrow_terminal(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.workers.register("crew", agents=["default"], concurrency=1)
    engine.work.claim_by_id(create(engine, step="busy"), "crew", agents=["default"])
    waiting = create(engine, step="ship")
    run = start(engine)
    wide = [typed.ok("why", each) for each in (waiting, run.id)]
    monkeypatch.setattr("holdfast.cli.app.terminal.terminal_width", lambda: NARROW)
    narrow = [typed.ok("why", each) for each in (waiting, run.id)]
    for whole, folded in zip(wide, narrow, strict=True):
        assert folded.replace(" \\\n", "\n").split() == whole.split()
        assert all(len(line) <= NARROW or len(line.split()) == 1 for line in folded.splitlines()), (
            folded
        )


def test_why_of_a_run_folds_tasks_of_which_the_same_is_said(engine: Engine, typed: Typed) -> None:
    steps = tuple(Step(id=f"s{number}") for number in range(9))
    run = start(engine, Workflow.define("wide", (*steps, Step(id="last", needs=("s0",)))))
    head, first, others, blocked, fix = typed.ok("why", run.id).splitlines()
    assert head == f"wide {run.id} is running, 0 of 10 tasks done"
    ready = 's0 is queued, not running (ready): 0 of 0 live workers serve "default"'
    assert first == f"  {run.steps['s0']}  {ready}"
    assert others == "      and so are s1, s2, s3, s4, s5 and 3 more"
    assert blocked.endswith("last is queued, not running (blocked): waits for s0 (queued)")
    assert fix == "Fix:   holdfast worker MODULE:NAME"
    engine.workers.register("crew", agents=["default"], concurrency=1)
    assert engine.work.claim_by_id(create(engine, "busy"), "crew", agents=["default"])
    assert "      crew runs busy t_" in typed.ok("why", run.id)
    told = typed.json("why", run.id)["tasks"]
    assert [len(each.get("alike", ())) for each in told] == [8, 0]


def test_why_of_a_run_leaves_out_groups_whose_tasks_tell_more(engine: Engine) -> None:
    run = planned(engine, loop(needs=("plan",)), stories=["a", "b"])
    told = [(each.task.step, each.task.state) for each in engine.why_run(run).tasks]
    assert told == [("build", "idle"), ("implement", "ready"), ("test", "blocked")]
