"""Tables of runs and steps: what was done is done, the rest runs in its order, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Context, Holdfast
from holdfast.engine.engine import engine_of
from holdfast.importing import ImportReport, import_runs
from holdfast.model.status import RunStatus
from tests.contract.worker.function_workers import worker_of
from tests.older_files import change, make
from tests.race.racers import eventually

BECAME = {
    "new": ("running", "ready", "blocked", "blocked"),
    "halfway": ("running", "done", "ready", "blocked"),
    "between": ("running", "done", "ready", "blocked"),
    "race": ("running", "done", "ready", "done"),
    "mixed": ("running", "ready", "done", "blocked"),
    "through": ("completed", "done", "done", "done"),
    "completed": ("completed", "done", "done", "done"),
    "failed": ("failed", "done", "failed", "stalled"),
    "healed": ("failed", "done", "failed", "stalled"),
    "failed-alone": ("failed", "done", "failed", "stalled"),
    "cancelled": ("cancelled", "done", "cancelled", "cancelled"),
}
IN_ORDER = {
    "new": ["plan", "work", "review"],
    "halfway": ["work", "review"],
    "between": ["work", "review"],
    "race": ["work"],
    "mixed": ["plan", "review"],
    "stories": ["implement.3", "verify.3", "implement.4", "verify.4", "test"],
    "unseen": ["verify.2", "implement.3", "verify.3"],
    "cut-off": ["verify.1", "implement.2", "verify.2"],
    "unplanned": ["plan", "implement", "verify"],
}
AGENTS = ["default", "dev_plan", "dev_work", "dev_review"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make(tmp_path / "older.db", "older_runs")


@pytest.fixture
def report(hf: Holdfast, source: Path) -> Iterator[ImportReport]:
    yield import_runs(source, into=hf)
    assert import_runs(source, into=hf).created == 0


def states(report: ImportReport, run: str) -> list[tuple[str, str]]:
    steps = [each for each in report.moved if each.old.startswith(f"{run}/")]
    return [(each.old.partition("/")[2], each.became) for each in steps]


def ids(report: ImportReport) -> dict[str, str]:
    return {each.old: str(each.id) for each in report.moved}


def test_runs_and_steps_stand_where_they_stood(report: ImportReport) -> None:
    became = {each.old: each.became for each in report.moved}
    steps = ("plan", "work", "review")
    assert {
        run: (became[run], *(became[f"{run}/{step}"] for step in steps)) for run in BECAME
    } == BECAME


def test_a_loop_goes_on_with_its_open_story_and_its_verifiers(report: ImportReport) -> None:
    done = [
        ("plan", "done"),
        ("implement.1", "done"),
        ("verify.1", "done"),
        ("implement.2", "done"),
    ]
    assert states(report, "stories") == [
        *done,
        ("verify.2", "done"),
        ("implement.3", "ready"),
        ("verify.3", "blocked"),
        ("implement.4", "blocked"),
        ("verify.4", "blocked"),
        ("test", "blocked"),
    ]
    # Called done before anybody had looked at it: it is verified before the next begins.
    assert states(report, "unseen") == [
        *done,
        ("verify.2", "ready"),
        ("implement.3", "blocked"),
        ("verify.3", "blocked"),
    ]


def test_a_run_that_contradicts_itself_is_left_out_with_the_reason(report: ImportReport) -> None:
    assert {each.old: each.reason for each in report.left_out} == {
        "empty": "it has no steps",
        "untrue": "it is completed, and its step work is waiting",
        "too-late": "it is cancelled, and every step of it is done",
        "untold": "its loop is done, and the story x1 is pending",
    }
    assert [each.old for each in report.remarks] == ["failed-alone"]
    assert "left out: empty: it has no steps" in str(report)


def test_a_step_carries_what_it_was_and_gave(hf: Holdfast, report: ImportReport) -> None:
    tasks = ids(report)
    plan, story = (hf.tasks.get(tasks[name]) for name in ("halfway/plan", "stories/implement.2"))
    assert (plan.output, plan.agent, plan.attempt) == ("halfway plan", "dev_plan", 1)
    assert (story.output, story.payload["story"]["title"]) == ("second made", "Second")
    assert hf.runs.get(tasks["halfway"]).input["task"] == "in its second step"
    assert hf.runs.get(tasks["failed"]).error == "it had failed when it was imported"


def test_a_real_worker_ends_every_open_run_in_order_and_does_nothing_again(
    hf: Holdfast, source: Path
) -> None:
    ran: list[tuple[str, str]] = []
    names: dict[str, str] = {}

    def work(ctx: Context) -> None:
        task = hf.tasks.get(ctx.task_id)
        ran.append((names[str(task.run_id)], str(task.step)))

    report = import_runs(source, into=hf)
    runs = {name: each for name, each in ids(report).items() if name in IN_ORDER}
    names.update({run: name for name, run in runs.items()})
    with worker_of(engine_of(hf), work, agents=AGENTS, concurrency=4):
        assert eventually(lambda: all(hf.runs.get(each).terminal for each in runs.values()))
    assert {hf.runs.get(each).status for each in runs.values()} == {RunStatus.COMPLETED}
    assert {run: [step for name, step in ran if name == run] for run in IN_ORDER} == IN_ORDER
    assert len(ran) == sum(map(len, IN_ORDER.values()))


def test_a_run_that_had_failed_or_was_cancelled_goes_on_with_a_retry(
    hf: Holdfast, report: ImportReport
) -> None:
    runs = [ids(report)[name] for name in ("failed", "healed", "failed-alone", "cancelled")]
    for run in runs:
        assert hf.runs.retry(run).ok
    for run in runs:
        assert [task.state for task in hf.runs.tasks(run)] == ["done", "ready", "blocked"]


def test_a_step_that_ran_too_early_is_done_again_with_what_it_should_have_followed(
    hf: Holdfast, report: ImportReport
) -> None:
    run = ids(report)["race"]
    assert hf.runs.retry(run, step="plan").ok
    assert [task.state for task in hf.runs.tasks(run)] == ["ready", "blocked", "blocked"]


def test_an_open_loop_whose_stories_nobody_verifies_is_remarked_on(
    hf: Holdfast, source: Path
) -> None:
    change(source, "UPDATE steps SET step_id = 'look' WHERE step_id = 'verify'")
    remarks = {each.old: each.reason for each in import_runs(source, into=hf).remarks}
    assert sorted(remarks) == ["cut-off", "failed-alone", "stories", "unplanned", "unseen"]
    assert remarks["stories"] == (
        "implement has each story verified by 'verify', and no step behind it is that: "
        "its stories go on unverified"
    )


LOOP = """INSERT INTO steps (id, run_id, step_id, step_index, status, type, loop_config)
  VALUES ('stories-polish', 'stories', 'polish', 4, ?, 'loop',
    '{"verify_each": true, "verify_step": "look"}')"""


def test_stories_that_no_step_goes_through_leave_their_run_out(hf: Holdfast, source: Path) -> None:
    change(source, "UPDATE steps SET type = 'single' WHERE run_id IN ('stories', 'unplanned')")
    report = import_runs(source, into=hf)
    told = {each.old: each.reason for each in report.left_out}
    assert told["stories"] == "the story s1 is done, and none of its steps is a loop over stories"
    assert states(report, "stories") == []
    assert states(report, "unplanned") == [
        ("plan", "ready"),
        ("implement", "blocked"),
        ("verify", "blocked"),
    ]


@pytest.mark.parametrize("status", ["waiting", "failed"])
def test_a_second_loop_that_is_open_leaves_its_run_out(
    hf: Holdfast, source: Path, status: str
) -> None:
    change(source, LOOP.replace("?", f"'{status}'"))
    report = import_runs(source, into=hf)
    assert {each.old: each.reason for each in report.left_out}["stories"] == (
        f"its second loop polish is {status}, and whether the story s1 is of that one or of "
        "implement is not said"
    )
    assert states(report, "stories") == []


def test_a_second_loop_comes_over_that_is_done_or_has_no_stories_yet(
    hf: Holdfast, source: Path
) -> None:
    change(
        source,
        LOOP.replace("?", "'done'"),
        LOOP.replace("stories", "unplanned").replace("?", "'waiting'"),
    )
    report = import_runs(source, into=hf)
    assert states(report, "stories")[-3:] == [
        ("verify.4", "blocked"),
        ("test", "blocked"),
        ("polish", "done"),
    ]
    assert [name for name, _ in states(report, "unplanned")] == [
        "plan",
        "implement",
        "verify",
        "polish",
    ]
    assert {each.old: each.reason for each in report.remarks}["unplanned"] == (
        "polish has each story verified by 'look', and no step behind it is that: "
        "its stories go on unverified"
    )


def test_a_file_without_stories_is_read_all_the_same(hf: Holdfast, source: Path) -> None:
    change(source, "DROP TABLE stories")
    report = import_runs(source, into=hf)
    assert [name for name, _ in states(report, "stories")] == [
        "plan",
        "implement",
        "verify",
        "test",
    ]
