"""Tasks with one status for everything: what becomes of each, and in which order they run.

Seed 004 derived who blocks whom by looking at waiting tasks alone, which left the first of them
free to overtake the one it waited for.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast import Context, Holdfast
from holdfast.engine.engine import engine_of
from holdfast.importing import ImportReport, import_tasks
from holdfast.model.status import PlanningPhase, Status
from holdfast.model.task import Task
from tests.contract.task_states import break_for_good, finish
from tests.older_files import TASKS, change, make

IN_ORDER = ["nulls", "running", "queued", "c.2", "b.one", "b.two", "b.three", "a.2", "a.3"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make(tmp_path / "older.db", "older_tasks")


class Arrived:
    """What came over, by its id in the older file."""

    def __init__(self, hf: Holdfast, report: ImportReport) -> None:
        self._hf = hf
        self.ids = {each.old: str(each.id) for each in report.moved}
        self._names = {new: old for old, new in self.ids.items()}

    def __getitem__(self, name: str) -> Task:
        return self._hf.tasks.get(self.ids[name])

    def blocked_by(self, name: str) -> list[str]:
        return sorted(self._names[each] for each in self._hf.tasks.blocked_by(self.ids[name]))

    def finish(self, *names: str) -> None:
        for name in names:
            finish(engine_of(self._hf), self.ids[name])

    def types(self, name: str) -> list[str]:
        return [event.type.removeprefix("task.") for event in self._hf.tasks.events(self.ids[name])]


@pytest.fixture
def arrived(hf: Holdfast, source: Path) -> Arrived:
    return Arrived(hf, import_tasks(source, into=hf))


BECAME = {
    "manual": (Status.IDLE, PlanningPhase.NONE, "idle"),
    "draft": (Status.IDLE, PlanningPhase.NONE, "idle"),
    "queued": (Status.QUEUED, PlanningPhase.NONE, "ready"),
    "running": (Status.QUEUED, PlanningPhase.NONE, "ready"),
    "done": (Status.DONE, PlanningPhase.NONE, "done"),
    "failed": (Status.FAILED, PlanningPhase.NONE, "failed"),
    "planning": (Status.IDLE, PlanningPhase.ACTIVE, "planning"),
    "planned": (Status.IDLE, PlanningPhase.ACTIVE, "planning"),
    "waiting": (Status.IDLE, PlanningPhase.NONE, "idle"),
    "a": (Status.IDLE, PlanningPhase.FINALIZED, "in progress 1/3"),
    "a.3": (Status.QUEUED, PlanningPhase.NONE, "blocked"),
    "later": (Status.QUEUED, PlanningPhase.NONE, "scheduled"),
    "nulls": (Status.QUEUED, PlanningPhase.NONE, "ready"),
    "d": (Status.FAILED, PlanningPhase.FINALIZED, "failed"),
    "d.3": (Status.QUEUED, PlanningPhase.NONE, "stalled"),
    "g": (Status.DONE, PlanningPhase.FINALIZED, "done"),
}


def test_one_status_becomes_orthogonal_fields(arrived: Arrived) -> None:
    tasks = {name: arrived[name] for name in BECAME}
    assert {
        name: (task.status, task.planning_phase, task.state) for name, task in tasks.items()
    } == BECAME


def test_a_child_whose_name_comes_first_arrives_with_its_parent(hf: Holdfast, source: Path) -> None:
    change(
        source,
        "UPDATE tasks SET id = 'zz' WHERE id = 'a'",
        "UPDATE tasks SET parent_task_id = 'zz' WHERE parent_task_id = 'a'",
    )
    arrived = Arrived(hf, import_tasks(source, into=hf))
    assert {arrived[name].parent_id for name in ("a.1", "a.2", "a.3")} == {arrived.ids["zz"]}


def test_tasks_that_ended_in_the_source_arrive_with_an_ended_attempt_and_its_result(
    arrived: Arrived,
) -> None:
    assert (arrived["done"].output, arrived["done"].attempt) == ("all of it", 1)
    assert (arrived["failed"].error, arrived["failed"].failures) == ("no disk", 1)
    assert arrived["d"].error == "tests are red"
    assert arrived.types("done") == ["created", "running", "done"]
    assert arrived.types("g.3") == ["created", "unblocked", "running", "done"]


def test_a_parent_that_had_a_result_of_its_own_keeps_it_until_it_is_done_again(
    hf: Holdfast, source: Path
) -> None:
    change(
        source,
        "UPDATE tasks SET result = 'in short' WHERE id IN ('d', 'g')",
        "UPDATE tasks SET result = '' WHERE id = 'g.2'",
    )
    arrived = Arrived(hf, import_tasks(source, into=hf))
    assert (arrived["g"].output, arrived["g"].error) == ("in short", None)
    assert (arrived["d"].output, arrived["d"].error) == (None, "in short")
    assert arrived["g.2"].output == [None]
    assert hf.tasks.reopen(arrived.ids["g"]).ok
    arrived.finish("g.1", "g.2.1", "g.3")
    assert arrived["g"].output == ["output", ["output"], "output"]


def test_a_waiting_task_is_blocked_by_the_open_task_before_it(arrived: Arrived) -> None:
    assert arrived.blocked_by("a.3") == ["a.2"]
    assert arrived.blocked_by("b.two") == ["b.one"]
    assert arrived.blocked_by("b.three") == ["b.two"]


BEHIND = {
    "manual": "blocked",
    "draft": "blocked",
    "queued": "blocked",
    "running": "blocked",
    "planning": "blocked",
    "planned": "blocked",
    "failed": "stalled",
    "done": "ready",
}


def test_a_waiting_task_is_blocked_by_a_task_before_it_in_any_state_but_done(
    hf: Holdfast, source: Path
) -> None:
    for before, state in BEHIND.items():
        change(source, f"UPDATE tasks SET status = '{before}' WHERE id = 'b.one'")  # noqa: S608
        arrived = Arrived(hf, import_tasks(source, into=hf, name=before))
        assert arrived["b.two"].state == state
        assert arrived.blocked_by("b.two") == ([] if before == "done" else ["b.one"])
        assert arrived.blocked_by("b.three") == ["b.two"]


def test_a_waiting_task_is_blocked_by_every_task_before_it_that_is_not_done(
    hf: Holdfast, source: Path
) -> None:
    for middle, blocked_by in (("done", ["e.1"]), ("queued", ["e.1", "e.2"])):
        change(source, f"UPDATE tasks SET status = '{middle}' WHERE id = 'e.2'")  # noqa: S608
        arrived = Arrived(hf, import_tasks(source, into=hf, name=middle))
        assert arrived.blocked_by("e.3") == blocked_by


def test_plans_go_on_as_if_they_had_been_made_here(hf: Holdfast, arrived: Arrived) -> None:
    assert hf.tasks.retry(arrived.ids["d"]).ok
    assert (arrived["d.2"].state, arrived["d.3"].state) == ("ready", "blocked")
    arrived.finish("d.2", "d.3")
    assert (arrived["d"].status, arrived["d.1"].attempt) == (Status.DONE, 1)
    assert hf.tasks.reopen(arrived.ids["g"]).ok
    assert [arrived[name].state for name in ("g.1", "g.3")] == ["ready", "blocked"]
    assert hf.tasks.finalize_plan(arrived.ids["planning"]).ok
    assert arrived.blocked_by("planning.2") == ["planning.1"]
    break_for_good(engine_of(hf), arrived.ids["a.2"])
    assert (arrived["a"].status, arrived["a.3"].state) == (Status.FAILED, "stalled")


def test_a_real_worker_runs_every_chain_in_its_order_and_nothing_that_was_done(
    hf: Holdfast, source: Path
) -> None:
    ran: list[str] = []
    through = threading.Event()

    @hf.task(name="work")
    def work(ctx: Context, id: str, title: str, status: str) -> str:  # noqa: A002 - a column
        assert status != "done"
        ran.append(id)
        if len(ran) == len(IN_ORDER):
            through.set()
        return f"{title}, attempt {ctx.attempt}"

    arrived = Arrived(hf, import_tasks(source, into=hf, step="work"))
    with hf.worker(concurrency=1):
        assert through.wait(30)
    assert ran == IN_ORDER
    assert [arrived[name].status for name in ("a", "b", "c")] == [Status.DONE] * 3
    assert arrived["a.3"].output == "a, third, attempt 1"


def test_a_worker_that_is_there_first_gets_nothing_that_was_done(
    hf: Holdfast, source: Path
) -> None:
    ran: list[str] = []
    through = threading.Event()

    @hf.task(name="work")
    def work(id: str) -> None:  # noqa: A002 - a column
        ran.append(id)
        if len(ran) == len(IN_ORDER):
            through.set()

    with hf.worker(concurrency=4):
        import_tasks(source, into=hf, step="work")
        assert through.wait(30)
    assert sorted(ran) == sorted(IN_ORDER)
    for chain in ("a.", "b."):
        own = [name for name in ran if name.startswith(chain)]
        assert own == [name for name in IN_ORDER if name.startswith(chain)]


def test_importing_a_file_twice_makes_nothing_twice(hf: Holdfast, source: Path) -> None:
    first = import_tasks(source, into=hf)
    finish(engine_of(hf), Arrived(hf, first).ids["a.2"])
    again = import_tasks(source, into=hf)
    assert (first.created, again.created) == (TASKS, 0)
    assert [each.id for each in again.moved] == [each.id for each in first.moved]
    assert len(hf.tasks.list()) == TASKS
    assert {each.old: each.became for each in again.moved}["a.2"] == "done"


def test_tasks_deleted_since_the_import_do_not_come_back(hf: Holdfast, source: Path) -> None:
    arrived = Arrived(hf, import_tasks(source, into=hf))
    for name in ("planning.2", "manual"):
        assert hf.tasks.delete(arrived.ids[name]).ok
    again = {each.old: each for each in import_tasks(source, into=hf).moved}
    assert (again["planning.2"].became, again["planning.2"].id) == ("deleted", None)
    # A whole tree that is gone leaves no trace to know it by.
    assert again["manual"].created


def test_tasks_that_came_later_follow_and_leave_the_others_alone(
    hf: Holdfast, source: Path
) -> None:
    import_tasks(source, into=hf)
    new = "INSERT INTO tasks (id, list_id, title, status) VALUES ('new', 'inbox', 'New', 'queued')"
    change(source, new)
    report = import_tasks(source, into=hf)
    assert [each.old for each in report.moved if each.created] == ["new"]


def test_the_report_tells_what_became_of_each_status_and_what_a_person_has_to_see(
    hf: Holdfast, source: Path
) -> None:
    change(source, "UPDATE tasks SET scheduled_for = '2126-01-01' WHERE id = 'running'")
    before = source.read_bytes()
    report = import_tasks(str(source), into=hf, agent="developer")
    assert report.counts["waiting", "blocked"] == 5
    assert report.counts["running", "ready"] == 2
    assert str(report).startswith(f"{TASKS} made, 0 here before\n  done → done: 10\n")
    assert [each.old for each in report.remarks] == ["planned", "waiting", "e.3", "f.2"]
    arrived = Arrived(hf, report)
    assert (arrived["f.2"].status, arrived.blocked_by("f.3")) == (Status.IDLE, ["f.2"])
    assert arrived["later"].scheduled_for == datetime(2126, 4, 1, 8, tzinfo=UTC)
    assert len(hf.tasks.list(agent="developer")) == TASKS
    # The older file is only read.
    assert source.read_bytes() == before
    assert sorted(each.name for each in source.parent.glob("older*")) == ["older.db"]


def test_each_idle_task_that_somebody_waits_for_is_told_once(hf: Holdfast, source: Path) -> None:
    change(source, "UPDATE tasks SET status = 'draft' WHERE id = 'e.2'")
    remarks = import_tasks(source, into=hf).remarks
    assert [each.reason[:13] for each in remarks if each.old == "e.3"] == [
        "waits for e.1",
        "waits for e.2",
    ]
