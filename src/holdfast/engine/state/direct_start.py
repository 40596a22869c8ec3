"""Direct start (ADR 29, 1.1 to 1.2 times as fast) of a task at once when its last need is done."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.engine.core.unit_of_work import DirectStartRoom
from holdfast.store.database import Contended, Row

if TYPE_CHECKING:
    from holdfast.engine.core.unit_of_work import UnitOfWork

log = logging.getLogger("holdfast.engine")


def unblock_dependents(work: UnitOfWork, done: Sequence[str]) -> list[Row]:
    """Unblock the tasks that needed some finished ones, and start as many as there is room for."""
    start = work.direct_start
    runs = _locked_runs(work) if start and start.room > 0 and _nothing_may_come_first(work) else []
    query, parameters = describe_unblocking(start, done, runs)
    if not start or not runs:
        return work.change_tasks(query, **parameters)
    try:
        rows = work.change_tasks(query, **parameters)
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


def describe_unblocking(
    start: DirectStartRoom | None, done: Sequence[str], runs: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """The statement that unblocks what needed some finished tasks, and its parameters.

    If the tasks are those of locked runs, it starts what it can.
    """
    ids = sorted(done)
    if start is None or not runs:
        return "unblock_dependents", {"ids": ids}
    told = {"worker": start.worker, "lease": start.lease, "count": start.room}
    return "hand_on", {"ids": ids, "runs": runs, "agent": start.agent, "tags": start.tags, **told}


def _nothing_may_come_first(work: UnitOfWork) -> bool:
    """Whether no freed slot and no group is left that could make a task ready before these."""
    return not work.freed and not work.groups_to_settle


def _locked_runs(work: UnitOfWork) -> list[str]:
    """The runs that the reports have locked; none of them if one run does not stand alone."""
    runs = work.run_cache.read_facts(work.tx, work.runs_with_usage).values()
    return sorted(run.id for run in runs) if all(run.stands_alone for run in runs) else []
