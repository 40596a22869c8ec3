"""Files of every shape that chance comes upon: whatever stood there, order holds from here on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import apsw

from holdfast import Holdfast
from holdfast.importing import ImportReport, import_runs, import_tasks
from holdfast.importing.loops import STEP_STATUSES
from holdfast.importing.runs import RUN_STATUSES
from holdfast.importing.task_forest import TaskForest
from holdfast.model.status import Status
from holdfast.model.task import Task
from tests.older_files import make

TREES = 60
RUNS = 60


def chance() -> random.Random:
    return random.Random(7)  # noqa: S311 - the same for every run of this test


def random_trees(dice: random.Random) -> Iterator[tuple[str, str, str | None, int]]:
    """Rows of tasks: id, status, parent, place."""
    for tree in range(TREES):
        names: list[str] = []
        for number in range(dice.randint(1, 8)):
            parent = dice.choice(names) if names else None
            names.append(f"{tree:03}.{number}")
            yield names[-1], dice.choice(list(TaskForest.statuses)), parent, dice.randint(0, 3)


def random_runs(dice: random.Random) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Runs: id, status, the statuses of their steps, those of their stories."""
    for run in range(RUNS):
        steps = dice.choices(list(STEP_STATUSES), k=dice.randint(1, 5))
        stories = dice.choices(["pending", "running", "done", "failed"], k=dice.randint(0, 4))
        yield f"{run:03}", dice.choice(RUN_STATUSES), steps, stories


def drain(hf: Holdfast, check: Callable[[Task], None]) -> list[str]:
    """Do whatever can be done, one after another; each is looked at before it begins."""
    began: list[str] = []
    while claimed := hf.work.claim("worker", count=1):
        for each in claimed:
            check(each.task)
            began.append(each.task.id)
            assert hf.work.complete(each.task.id, each.token).ok
    return began


def check_ends(hf: Holdfast, report: ImportReport, began: Sequence[str]) -> None:
    """Nothing ran twice, and nothing that was done there ran at all."""
    assert len(set(began)) == len(began) > 0
    done = [str(each.id) for each in report.moved if each.was == each.became == "done"]
    assert {hf.tasks.get(each).attempt for each in done} <= {0, 1}
    assert set(done).isdisjoint(began)


def test_no_task_of_any_tree_overtakes_the_one_it_waits_for(hf: Holdfast, tmp_path: Path) -> None:
    rows = list(random_trees(chance()))
    source = make(tmp_path / "older.db", "older_tasks", "DELETE FROM tasks")
    with closing(apsw.Connection(str(source))) as connection:
        connection.executemany(
            "INSERT INTO tasks (id, list_id, title, status, parent_task_id, sort_order)"
            " VALUES (?1, 'inbox', ?1, ?2, ?3, ?4)",
            rows,
        )
    report = import_tasks(source, into=hf)
    assert hf.doctor().ok
    ids = {each.old: str(each.id) for each in report.moved}
    waited = {name: (parent, place) for name, status, parent, place in rows if status == "waiting"}

    def check(task: Task) -> None:
        if task.title in waited:
            parent, place = waited[task.title]
            before = [n for n, _, p, at in rows if p == parent and (at, n) < (place, task.title)]
            assert before
            assert {hf.tasks.get(ids[name]).status for name in before} == {Status.DONE}

    check_ends(hf, report, drain(hf, check))


def test_no_step_of_any_run_overtakes_another(hf: Holdfast, tmp_path: Path) -> None:
    source = make(
        tmp_path / "older.db",
        "older_runs",
        *(f"DELETE FROM {table}" for table in ("stories", "steps", "runs")),  # noqa: S608
    )
    loop = '{"verify_each": true, "verify_step": "step2"}'
    with closing(apsw.Connection(str(source))) as connection:
        for run, status, steps, stories in random_runs(chance()):
            connection.execute("INSERT INTO runs VALUES (?, 'w', '', ?, '', '', '')", (run, status))
            for n, each in enumerate(steps):
                kind = ("loop", loop) if n == 1 else ("single", None)
                connection.execute(
                    "INSERT INTO steps VALUES (?, ?, ?, NULL, ?, ?, NULL, ?, ?, NULL)",
                    (f"{run}.{n}", run, f"step{n}", n, each, *kind),
                )
            for n, each in enumerate(stories):
                connection.execute(
                    "INSERT INTO stories VALUES (?, ?, ?, 'story', ?, NULL, NULL)",
                    (f"{run}.{n}", run, n, each),
                )
    report = import_runs(source, into=hf)
    assert hf.doctor().ok
    moved = {each.old for each in report.moved if "/" not in each.old}
    assert moved.isdisjoint(each.old for each in report.left_out)
    assert len(moved) + len(report.left_out) == RUNS

    def check(task: Task) -> None:
        before = [each for each in hf.runs.tasks(str(task.run_id)) if each.id < task.id]
        assert {each.status for each in before} <= {Status.DONE}

    check_ends(hf, report, drain(hf, check))
