"""Direct start: a task goes from blocked to running at once when its last need is done."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.engine.core.unit_of_work import DirectStartRoom
from holdfast.store.database import Contended, Row

if TYPE_CHECKING:
    from holdfast.engine.core.unit_of_work import UnitOfWork

log = logging.getLogger("holdfast.engine")


def unblock_dependents(work: UnitOfWork, done: Sequence[str]) -> list[Row]:
    """Unblock the tasks that needed some finished ones, and start as many as there is room for."""
    start = work.direct_start
    runs = _locked_runs(work) if start and start.room > 0 and _nothing_may_come_first(work) else []
    if not start or not runs:
        return work.change_tasks("unblock_dependents", ids=done)
    try:
        rows = _start_dependents(work, start, done, runs)
    except Contended:
        raise
    except Exception as error:
        log.warning("the group is written again, and nothing is handed on in it: %r", error)
        raise Contended(str(error)) from error
    started = [row for row in rows if row["status"] == "running"]
    start.started += started
    start.room -= len(started)
    # The tasks were ready for a moment, and other processes show how a run goes on.
    work.wakes |= bool(started)
    return rows


def _start_dependents(
    work: UnitOfWork, start: DirectStartRoom, done: Sequence[str], runs: Sequence[str]
) -> list[Row]:
    return work.change_tasks(
        "hand_on",
        ids=done,
        runs=runs,
        agent=start.agent,
        tags=start.tags,
        worker=start.worker,
        lease=start.lease,
        count=start.room,
    )


def _nothing_may_come_first(work: UnitOfWork) -> bool:
    """Whether no freed slot and no group is left that could make a task ready before these."""
    return not work.freed and not work.groups_to_settle


def _locked_runs(work: UnitOfWork) -> list[str]:
    """The runs that the reports have locked; none of them if one run does not stand alone."""
    runs = work.run_cache.read_facts(work.tx, work.runs_with_usage).values()
    return sorted(run.id for run in runs) if all(run.stands_alone for run in runs) else []
