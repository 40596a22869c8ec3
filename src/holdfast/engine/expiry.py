"""Attempts whose lease has run out: their tasks are taken back, each by itself."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future

from holdfast.engine.desk import Desk
from holdfast.engine.operations import Lose
from holdfast.model.result import TransitionResult

AT_ONCE = 1_000

Lost = tuple[str, int]


def take_back(desk: Desk, under_way: Collection[Lost]) -> dict[Lost, Future[TransitionResult]]:
    """Ask for each expired attempt (task and number) but for those that are under way.

    So it is for one whose lease was taken before the clock was set back: that is shortened.

    The row of one may be locked for long: the others do not wait for it.
    """
    count = AT_ONCE + len(under_way)
    rows = desk.view(
        lambda tx: [*tx.read("expired_tasks", count=count), *tx.read("leases_ahead", count=count)]
    )
    expired = sorted({(row["id"], row["attempt"]) for row in rows}.difference(under_way))
    lost = [Lose(task_id=task, fence=fence) for task, fence in expired]
    return dict(zip(expired, desk.submit_many(lost), strict=True))
