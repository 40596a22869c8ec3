"""An import killed between its commits and begun again comes to the same as one undisturbed."""

from __future__ import annotations

import itertools
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from holdfast import Holdfast
from holdfast.engine.engine import Engine, engine_of
from holdfast.importing import import_runs, import_tasks
from tests.chaos.process_jobs import Replies
from tests.chaos.processes import send
from tests.chaos.statement_boundaries import Boundary, watch
from tests.contract.raw_store import dump, raw
from tests.older_files import RUNS_AND_STEPS, TASKS, make

FURTHER = 60
# As many different parts of the whole at least are what a killed import left.
SEEN = 4
# When it was written, and in which order.
LEFT = {"at", "changed_at", "created_at", "started_at", "finished_at", "leased_at", "seq"}
# What each store has of its own.
OWN = {"holdfast_meta", "holdfast_migration"}


class Still(Holdfast):
    """A store with its writer alone: the loops beside it would send statements of their own."""

    @property
    def engine(self) -> Engine:
        if not hasattr(self, "_still"):
            self._still = Engine(self.settings.url, settings=self.settings)
            self._still.commits.start()
        return self._still


def bring(report: Connection, url: str, folder: Path, place: int | None) -> None:
    """Import both fixtures, each unit in a commit of its own; at a statement, die."""
    boundary = Boundary(place, report)
    watch(boundary)
    hf = Still(url, group_size=1)
    with closing(engine_of(hf)):
        boundary.armed = True
        made = [import_tasks(folder / "tasks.db", into=hf).created]
        made.append(import_runs(folder / "runs.db", into=hf).created)
        boundary.armed = False
        report.send(Replies(given=(made, hf.doctor().ok)))


def portrait(url: str) -> dict[str, list[str]]:
    """Every row that does not depend on when it was written, in the names of the older files."""
    tables = dump(url)
    runs = {row["id"]: row["key"] for row in tables["holdfast_run"]}
    steps = tables["holdfast_task"]
    names = runs | {row["id"]: row["key"] or (runs[row["run_id"]], row["step"]) for row in steps}

    def plain(row: dict[str, Any]) -> str:
        kept = sorted(row.keys() - LEFT)
        return repr([(name, names.get(row[name], row[name])) for name in kept])

    return {table: sorted(map(plain, rows)) for table, rows in tables.items() if table not in OWN}


def test_an_import_killed_anywhere_and_begun_again_is_as_if_undisturbed(
    store_url: str, tmp_path: Path
) -> None:
    make(tmp_path / "tasks.db", "older_tasks")
    make(tmp_path / "runs.db", "older_runs")
    whole = f"sqlite:///{tmp_path}/whole.db"
    assert send(bring, whole, tmp_path, None).replies == ([TASKS, RUNS_AND_STEPS], True)
    made: list[int] = []
    places = itertools.count(FURTHER, FURTHER)
    while (ended := send(bring, store_url, tmp_path, next(places))).killed:
        with raw(store_url) as run:
            made += [row["n"] for row in run("SELECT count(*) AS n FROM holdfast_task")]
    assert ended.replies[1], ended
    assert len(set(made)) >= SEEN, made
    assert portrait(store_url) == portrait(whole)
