"""What ended long ago is removed whole, with all its events; what anybody waits for stays."""

from __future__ import annotations

import pytest

from holdfast.bus.channel import Channel
from holdfast.bus.execution_bus import Subscription
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.engine.removal_desk import RUNS, TASKS
from holdfast.errors import KeyConflict, NotFound
from holdfast.model.graph import Step, Workflow
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask
from holdfast.model.trace import Trace
from tests.contract.called import begin, call, of
from tests.contract.raw import Row, count_rows, raw
from tests.contract.stages import CHAIN, break_for_good, create, finish, start, take

DAY = 86_400
TRACE = Trace(trace_id="4bf92f3577b34da6a3ce929d0e0e4736")
DELIVERY = """
INSERT INTO holdfast_delivery (handler, message_id, channel, about, slot, envelope, tries)
VALUES ('g/h', ?, 'workflow.events', ?, 0, '{}', 1)
"""
POSITION = """
INSERT INTO holdfast_position (channel, consumers, place, passed)
VALUES ('workflow.events', ?, ?, ?)
"""
CHILD = Workflow.define("child", (Step(id="only"),))


class Keeper:
    """Removes what ended more than a day ago."""

    def __init__(self, engine: Engine, clock: ManualClock) -> None:
        self.engine, self.clock = engine, clock

    @property
    def before(self) -> int:
        return self.clock.now() - DAY * MICROSECONDS

    def remove(self, kind: str) -> list[str]:
        return list(self.engine.removals.remove(kind, self.before).gone)

    def wait(self) -> None:
        self.clock.advance(DAY + 1)


@pytest.fixture
def keeper(engine: Engine, clock: ManualClock) -> Keeper:
    return Keeper(engine, clock)


def left(url: str) -> dict[str, int]:
    """How many rows each table has, but for those that are kept."""
    kept = {"meta", "migration", "workflow", "tombstone", "slot", "lease"}
    counted = {name.removeprefix("holdfast_"): rows for name, rows in count_rows(url).items()}
    return {name: rows for name, rows in counted.items() if rows and name not in kept}


def tombstones(url: str) -> list[Row]:
    with raw(url) as run:
        return run("SELECT * FROM holdfast_tombstone ORDER BY entity")


def test_a_run_goes_with_all_that_was_its_and_leaves_a_tombstone(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    run = start(engine, CHAIN, key="k", trace=TRACE)
    engine.signals.send(run.id, "go")
    taken = take(engine, run.steps["plan"])
    engine.work.record_effect(run.steps["plan"], taken.token, "paid", 1)
    assert engine.work.complete(run.steps["plan"], taken.token, None).ok
    run.finish("work", "review")
    assert keeper.remove(RUNS) == []
    keeper.wait()
    assert keeper.remove(RUNS) == [run.id]
    assert left(store_url) == {}
    (tombstone,) = tombstones(store_url)
    assert (tombstone["entity"], tombstone["kind"], tombstone["name"]) == (run.id, "run", "chain")
    assert (tombstone["key"], tombstone["status"]) == ("k", "completed")
    with pytest.raises(NotFound):
        engine.runs.get(run.id)


def test_what_others_have_stays_when_a_run_goes(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    kept = start(engine, CHAIN, trace=TRACE)
    engine.signals.send(kept.id, "go")
    lone = create(engine, trace=TRACE)
    before = left(store_url)
    gone = start(engine, CHAIN, trace=TRACE)
    gone.break_for_good("plan")
    task = create(engine, "short")
    finish(engine, task)
    keeper.wait()
    assert keeper.remove(RUNS) == [gone.id]
    assert keeper.remove(TASKS) == [task]
    assert left(store_url) == before
    assert engine.tasks.get(lone).status == "queued"
    assert kept.status == "running"


def test_the_key_of_what_was_removed_is_never_given_again(engine: Engine, keeper: Keeper) -> None:
    run = start(engine, CHILD, key="k")
    run.finish("only")
    task = create(engine, key="k", payload=1)
    finish(engine, task)
    keeper.wait()
    assert (keeper.remove(RUNS), keeper.remove(TASKS)) == ([run.id], [task])
    again = engine.runs.start(NewRun(workflow=CHILD, key="k"))
    assert (again.id, again.created) == (run.id, False)
    with pytest.raises(KeyConflict):
        engine.runs.start(NewRun(workflow=CHILD, key="k", input={"other": 1}))
    made = engine.tasks.create(NewTask(title="task", key="k", payload=1))
    assert (made.id, made.created) == (task, False)
    with pytest.raises(KeyConflict):
        engine.tasks.create(NewTask(title="task", key="k", payload=2))


def test_what_a_group_has_not_acknowledged_stays(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    bus = SqlBus(engine, partitions=1)
    bus.subscribe(Subscription(channel=Channel.EVENTS, group="slow"))
    bus.subscribe(Subscription(channel=Channel.COMMANDS, group="other"))
    run, task = start(engine, CHILD), create(engine)
    run.finish("only")
    finish(engine, task)
    keeper.wait()
    with raw(store_url) as write:
        newest = write("SELECT max(seq) AS seq FROM holdfast_event")[0]["seq"]
        moved = "UPDATE holdfast_position SET passed = ?, holes = ? WHERE consumers = 'slow'"
        for passed, holes in ((0, "[]"), (newest, "[[1, 1, 9]]")):
            write(moved, passed, holes)
            assert (keeper.remove(RUNS), keeper.remove(TASKS)) == ([], [])
        write(moved, newest, "[]")
    create(engine, "not read yet")
    assert (keeper.remove(RUNS), keeper.remove(TASKS)) == ([run.id], [task])
    bus.close()


def test_what_redis_was_not_told_or_has_not_acknowledged_stays(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    run = start(engine, CHILD)
    run.finish("only")
    keeper.wait()
    with raw(store_url) as write:
        write(POSITION, "elsewhere/far", 0, 0)
        assert keeper.remove(RUNS) == [], "no relay has told it anything"
        newest = write("SELECT max(seq) AS seq FROM holdfast_event")[0]["seq"]
        write(POSITION, "relay/redis", 0, newest)
        write(POSITION, "relay/redis", 1, 0)
        assert keeper.remove(RUNS) == [], "nothing is acknowledged"
        write("UPDATE holdfast_position SET passed = ? WHERE consumers = 'relay/redis'", newest)
    assert keeper.remove(RUNS) == [run.id]


def test_what_a_message_waits_about_stays(engine: Engine, keeper: Keeper, store_url: str) -> None:
    run, other, task = start(engine, CHILD), start(engine, CHILD), create(engine)
    for each in (run, other):
        each.finish("only")
    finish(engine, task)
    keeper.wait()
    with raw(store_url) as write:
        for number, about in enumerate((run.id, task)):
            write(DELIVERY, str(number), about)
        assert (keeper.remove(RUNS), keeper.remove(TASKS)) == ([other.id], [])
        write("DELETE FROM holdfast_delivery")
    assert (keeper.remove(RUNS), keeper.remove(TASKS)) == ([run.id], [task])


def test_a_task_that_others_need_stays_until_they_go(engine: Engine, keeper: Keeper) -> None:
    needed, fresh = create(engine), create(engine)
    finish(engine, needed)
    finish(engine, fresh)
    dependent = create(engine, needs=(needed,))
    keeper.wait()
    assert keeper.remove(TASKS) == [fresh]
    finish(engine, dependent)
    assert keeper.remove(TASKS) == []
    keeper.wait()
    assert keeper.remove(TASKS) == [dependent]
    assert keeper.remove(TASKS) == [needed]


def test_a_tree_of_tasks_goes_whole_also_what_never_ran_in_it(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    top = create(engine, enqueue=False)
    engine.tasks.start_planning(top)
    children = [create(engine, name, parent=top, enqueue=False, key=name) for name in ("a", "b")]
    assert engine.tasks.finalize_plan(top).ok
    keeper.wait()
    assert keeper.remove(TASKS) == [], "it has not ended"
    break_for_good(engine, children[0])
    assert engine.tasks.get(top).status == "failed"
    assert keeper.remove(TASKS) == [], "it has just ended"
    keeper.wait()
    assert keeper.remove(TASKS) == [top]
    assert left(store_url) == {}
    assert {row["key"] for row in tombstones(store_url)} == {None, "a", "b"}


def test_a_called_run_goes_with_the_run_that_called_it(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    run = begin(engine, call(workflow=CHILD), workflow=CHILD)
    called = of(run)
    keeper.wait()
    assert keeper.remove(RUNS) == []
    called.finish("only")
    assert run.status == "completed"
    keeper.wait()
    assert keeper.remove(RUNS) == [run.id]
    assert left(store_url) == {}
    assert {row["entity"] for row in tombstones(store_url)} == {run.id, called.id}


def test_pages_go_past_what_has_to_stay(engine: Engine, keeper: Keeper, store_url: str) -> None:
    tasks = [create(engine) for _ in range(5)]
    for each in tasks:
        finish(engine, each)
    keeper.wait()
    with raw(store_url) as write:
        write(DELIVERY, "m", tasks[0])
    gone, after = list[str](), ""
    while True:
        page = engine.removals.remove(TASKS, keeper.before, after=after, count=2)
        gone += page.gone
        if page.next is None:
            break
        after = page.next
    assert gone == tasks[1:]
