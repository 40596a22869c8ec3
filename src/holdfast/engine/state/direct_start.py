"""What has all it needs goes straight to a worker with room for it: its row changes once."""

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
    """Unblock what needed some finished tasks, and start as much of it as there is room for."""
    offer = work.direct_start
    runs = _locked_runs(work) if offer and offer.room > 0 and _nothing_may_come_first(work) else []
    if not offer or not runs:
        return work.change_tasks("unblock_dependents", ids=done)
    try:
        rows = _start_dependents(work, offer, done, runs)
    except Contended:
        raise
    except Exception as error:
        log.warning("the group is written again, and nothing is handed on in it: %r", error)
        raise Contended(str(error)) from error
    started = [row for row in rows if row["status"] == "running"]
    offer.started += started
    offer.room -= len(started)
    # It was ready for a moment, and others show how a run goes on.
    work.wakes |= bool(started)
    return rows


def _start_dependents(
    work: UnitOfWork, offer: DirectStartRoom, done: Sequence[str], runs: Sequence[str]
) -> list[Row]:
    return work.change_tasks(
        "hand_on",
        ids=done,
        runs=runs,
        agent=offer.agent,
        tags=offer.tags,
        worker=offer.worker,
        lease=offer.lease,
        count=offer.room,
    )


def _nothing_may_come_first(work: UnitOfWork) -> bool:
    """Whether nothing more follows of which somebody may come that stands before them in line."""
    return not work.freed and not work.groups_to_settle


def _locked_runs(work: UnitOfWork) -> list[str]:
    """The runs that the reports of a group have locked; none if one of them concerns others."""
    runs = work.run_cache.of(work.tx, work.runs_with_usage).values()
    return sorted(run.id for run in runs) if all(run.stands_alone for run in runs) else []
