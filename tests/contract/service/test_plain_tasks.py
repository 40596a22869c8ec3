"""A task that is seen straight from its row is seen as the record of it would be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.engine.read.task_records import read_task
from holdfast.model.status import Status
from holdfast.model.task import Renewal
from holdfast.model.workflow.graph import Concurrency
from holdfast.service.protocol.protocol import view_assignment
from holdfast.service.queries.plain_tasks import is_plain, view_plain
from holdfast.service.queries.queries import view_rows, view_tasks
from holdfast.service.queries.views import view_task
from holdfast.store.database import Row, Transaction
from tests.contract.task_states import bring, create, start, take

RICH: dict[str, Any] = {
    "payload": {"text": "é", "list": [1, 2.5, None]},
    "tags": ["linux", "gpu"],
    "key": "order-7",
    "priority": 3,
    "position": 2,
    "timeout": 90.0,
    "step": "job",
}


def in_every_status(engine: Engine) -> None:
    for status in Status:
        bring(engine, status)
        bring(engine, status, **{**RICH, "key": f"key-{status}"})


def with_all_that_is_special(engine: Engine) -> None:
    clock = engine.clock
    assert isinstance(clock, ManualClock)
    needed = create(engine)
    create(engine, needs=[needed])
    create(engine, parent=needed)
    create(engine, scheduled_for=clock.now() + 10_000_000)
    create(engine, concurrency=Concurrency(key="key", limit=1))
    engine.tasks.hold(create(engine), "paused")
    engine.tasks.start_planning(create(engine, enqueue=False))
    engine.tasks.run_now(create(engine))
    asking = take(engine, create(engine))
    engine.work.ask(asking.task_id, asking.token, "which?")
    again = take(engine, create(engine))
    engine.work.fail(again.task_id, again.token, "broken")
    telling = take(engine, create(engine))
    engine.work.renew(
        [Renewal(task_id=telling.task_id, token=telling.token, progress=1, usage={"usd": 1})]
    )
    clock.advance(600)
    used = take(engine, again.task_id)
    engine.work.complete(used.task_id, used.token, {"done": True}, usage={"usd": 2})
    limited = take(engine, create(engine, agent="limited"))
    engine.work.reach_limit(limited.task_id, limited.token, "1h")
    create(engine, agent="limited")
    start(engine)


@pytest.mark.parametrize("arrange", [in_every_status, with_all_that_is_special])
def test_a_view_of_a_row_is_the_view_of_its_task(
    engine: Engine, arrange: Callable[[Engine], None]
) -> None:
    arrange(engine)
    ids = [task.id for task in engine.tasks.list(limit=1_000)]

    def compare(tx: Transaction) -> list[Row]:
        rows = tx.read("tasks_by_id", ids=ids)
        for row in rows:
            if is_plain(row):
                assert view_plain(row) == view_task(read_task(row))
        seen = {each["id"]: each for each in view_rows(tx, rows)}
        known = {each["id"]: each for each in view_tasks(tx, map(read_task, rows))}
        assert seen == known
        return rows

    rows = engine.database.view(compare)
    assert {is_plain(row) for row in rows} >= {True}


def test_an_assignment_is_seen_with_the_view_of_its_task(engine: Engine) -> None:
    create(engine, **RICH)
    create(engine, payload=None)
    start(engine)
    got = engine.work.claim("worker", agents=["default"], tags=["linux", "gpu"], count=9)
    assert len(got) >= 3
    for each in got:
        seen = view_assignment(each)["task"]
        more = {"payload": each.payload_with_context, "workflow": each.workflow}
        whole = view_task(each.task) | {name: v for name, v in more.items() if v is not None}
        assert seen == whole
