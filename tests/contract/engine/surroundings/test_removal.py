"""What ended long ago is removed whole, with all its events; what anybody waits for stays."""

from __future__ import annotations

import pytest

from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.engine.surroundings.removal import DELETED, RUNS, TASKS, RemovalLimits
from holdfast.errors import KeyConflict, NotFound
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask
from holdfast.model.trace import Trace
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.called_workflows import begin, call, of
from tests.contract.raw_store import Row, count_rows, raw
from tests.contract.task_states import CHAIN, break_for_good, create, finish, start, take

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
NEWEST = "SELECT max(seq) AS seq FROM holdfast_event"
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

    def remove_all(self, limits: RemovalLimits) -> list[list[str]]:
        """What goes of the tasks, by the pages that anything goes of."""
        walk = self.engine.removals.remove_all(TASKS, self.before, limits)
        return [list(page.gone) for page in walk if page.gone]

    def ended_run(self) -> str:
        """A run that ended long enough ago."""
        run = start(self.engine, CHILD)
        run.finish("only")
        self.wait()
        return run.id

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
    run = start(engine, CHAIN, key="k", trace=TRACE, labels={"customer": "7", "env": "prod"})
    assert left(store_url)["label"] == 2
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


def test_rows_of_other_runs_and_tasks_stay_when_a_run_is_removed(
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


def test_the_key_of_a_removed_task_takes_no_other_key(engine: Engine, keeper: Keeper) -> None:
    task = create(engine, key="k")
    finish(engine, task)
    keeper.wait()
    assert keeper.remove(TASKS) == [task]
    assert engine.tasks.create(NewTask(title="task", key="other")).created


def test_the_key_of_a_removed_run_is_free_for_a_task(engine: Engine, keeper: Keeper) -> None:
    run = start(engine, CHILD, key="k")
    run.finish("only")
    keeper.wait()
    assert keeper.remove(RUNS) == [run.id]
    assert engine.tasks.create(NewTask(title="task", key="k")).created


def test_runs_and_tasks_that_a_consumer_group_has_not_acknowledged_stay(
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
        newest = write(NEWEST)[0]["seq"]
        moved = "UPDATE holdfast_position SET passed = ?, holes = ? WHERE consumers = 'slow'"
        for passed, holes in ((0, "[]"), (newest, "[[1, 1, 9]]")):
            write(moved, passed, holes)
            assert (keeper.remove(RUNS), keeper.remove(TASKS)) == ([], [])
        write(moved, newest, "[]")
    create(engine, "not read yet")
    assert (keeper.remove(RUNS), keeper.remove(TASKS)) == ([run.id], [task])
    bus.close()


def test_runs_that_a_group_on_redis_was_not_told_or_has_not_acknowledged_stay(
    keeper: Keeper, store_url: str
) -> None:
    run = keeper.ended_run()
    with raw(store_url) as write:
        write(POSITION, "elsewhere/far", 0, 0)
        assert keeper.remove(RUNS) == [], "no relay has told it anything"
        newest = write(NEWEST)[0]["seq"]
        write(POSITION, "relay/redis", 0, newest)
        write(POSITION, "relay/redis", 1, 0)
        assert keeper.remove(RUNS) == [], "nothing is acknowledged"
        write("UPDATE holdfast_position SET passed = ? WHERE consumers = 'relay/redis'", newest)
    assert keeper.remove(RUNS) == [run]


def test_runs_relayed_to_a_redis_without_a_group_are_removed(
    keeper: Keeper, store_url: str
) -> None:
    run = keeper.ended_run()
    with raw(store_url) as write:
        newest = write(NEWEST)[0]["seq"]
        write(POSITION, "relay/redis", 0, newest - 1)
        write(POSITION, "relay/redis", 1, 0)
        assert keeper.remove(RUNS) == [], "Redis was not told its end"
        write("UPDATE holdfast_position SET passed = ? WHERE place = 0", newest)
    assert keeper.remove(RUNS) == [run]


def test_a_reader_keeps_what_may_come_late_and_nothing_before_that(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    early, late = start(engine, CHILD), start(engine, CHILD)
    early.finish("only")
    with raw(store_url) as write:
        hole = write(NEWEST)[0]["seq"] + 1
        late.finish("only")
        keeper.wait()
        write(POSITION, "slow", 0, write(NEWEST)[0]["seq"])
        write("UPDATE holdfast_position SET holes = ?", f"[[{hole}, {hole}, 9]]")
    assert keeper.remove(RUNS) == [early.id]


def test_runs_and_tasks_that_an_undelivered_message_is_about_stay(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
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


def test_a_task_that_others_need_stays_until_they_go_and_goes_with_them(
    engine: Engine, keeper: Keeper
) -> None:
    needed, fresh = create(engine), create(engine)
    between = create(engine, needs=(needed,))
    for each in (needed, fresh, between):
        finish(engine, each)
    dependent = create(engine, needs=(between,))
    keeper.wait()
    assert keeper.remove(TASKS) == [fresh]
    finish(engine, dependent)
    assert keeper.remove(TASKS) == []
    keeper.wait()
    assert keeper.remove(TASKS) == [needed, between, dependent]


def test_tasks_that_need_each_other_are_removed_in_one_walk_over_several_pages(
    engine: Engine, keeper: Keeper
) -> None:
    oldest, newer, newest = (create(engine) for _ in range(3))
    assert engine.tasks.block(oldest, [newest]).ok
    assert engine.tasks.block(newer, [oldest]).ok
    for each in (newest, oldest, newer):
        finish(engine, each)
    keeper.wait()
    assert keeper.remove_all(RemovalLimits(tops=1)) == [[newer], [oldest], [newest]]


def test_a_tree_of_tasks_goes_whole_also_what_never_ran_in_it(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    top = create(engine, enqueue=False)
    engine.tasks.start_planning(top)
    children = [create(engine, parent=top, enqueue=False, key=key) for key in ("a", None)]
    assert engine.tasks.finalize_plan(top).ok
    keeper.wait()
    assert keeper.remove(TASKS) == [], "it has not ended"
    break_for_good(engine, children[0])
    assert engine.tasks.get(top).status == "failed"
    assert keeper.remove(TASKS) == [], "it has just ended"
    keeper.wait()
    assert keeper.remove(TASKS) == [top]
    assert left(store_url) == {}
    assert {row["entity"] for row in tombstones(store_url)} == {top, children[0]}


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
        write(DELIVERY, "m", tasks[-1])
    assert keeper.remove_all(RemovalLimits(tops=2)) == [[tasks[3]], tasks[1:3], [tasks[0]]]


def test_a_page_ends_before_it_has_too_many_members_unless_one_tree_has(
    engine: Engine, keeper: Keeper
) -> None:
    trees = []
    for children in (1, 4, 0, 1):
        top = create(engine)
        for _ in range(children):
            finish(engine, create(engine, parent=top))
        finish(engine, top)
        trees.append(top)
    keeper.wait()
    assert keeper.remove_all(RemovalLimits(members=3)) == [trees[2:], [trees[1]], [trees[0]]]


def knot(engine: Engine, children: int = 2) -> list[str]:
    """Trees of which each needs a part of the next, and the last a part of the first."""
    tops = [create(engine) for _ in range(3)]
    below = [[create(engine, parent=top) for _ in range(children)] for top in tops]
    for place, own in enumerate(below):
        assert engine.tasks.block(own[0], [below[(place + 1) % len(below)][1]]).ok
    for own in below:
        finish(engine, own[1])
    for own, top in zip(below, tops, strict=True):
        finish(engine, own[0])
        finish(engine, top)
    return tops


@pytest.mark.parametrize("limits", [RemovalLimits(tops=1), RemovalLimits(members=4)])
def test_trees_that_need_each_other_go_together_whatever_pages_they_are_on(
    engine: Engine, keeper: Keeper, limits: RemovalLimits
) -> None:
    first = create(engine)
    tops = knot(engine)
    after = create(engine)
    assert engine.tasks.block(first, [tops[0]]).ok
    for each in (first, after):
        finish(engine, each)
    keeper.wait()
    gone = keeper.remove_all(limits)
    assert tops in gone
    assert sorted(each for page in gone for each in page) == sorted([first, *tops, after])


def test_trees_that_need_each_other_stay_while_one_of_them_does(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    tops, other = knot(engine), create(engine)
    finish(engine, other)
    keeper.wait()
    with raw(store_url) as write:
        write(DELIVERY, "m", tops[1])
        assert keeper.remove_all(RemovalLimits(tops=1)) == [[other]]
        write("DELETE FROM holdfast_delivery")
    assert keeper.remove_all(RemovalLimits(tops=1)) == [tops]


def test_the_past_of_what_was_deleted_goes_once_it_was_kept_and_read(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    kept = create(engine)
    before = left(store_url)
    gone, unread, waiting = (create(engine, trace=TRACE, key=str(each)) for each in range(3))
    for each in (gone, unread, waiting):
        assert engine.tasks.delete(each).ok
    assert keeper.remove(DELETED) == []
    keeper.wait()
    with raw(store_url) as write:
        write(POSITION, "slow", 0, write("SELECT min(seq) AS seq FROM holdfast_event")[0]["seq"])
        assert keeper.remove(DELETED) == []
        last = write("SELECT seq FROM holdfast_event WHERE entity = ? ORDER BY seq DESC", unread)
        write("UPDATE holdfast_position SET passed = ?", last[0]["seq"] - 1)
        write(DELIVERY, "m", waiting)
        assert keeper.remove(DELETED) == [gone]
        write("DELETE FROM holdfast_position")
        assert keeper.remove(DELETED) == [unread]
        write("DELETE FROM holdfast_delivery")
    assert keeper.remove(DELETED) == [waiting]
    assert (left(store_url), tombstones(store_url)) == (before, [])
    assert engine.tasks.get(kept).status == "queued"


def test_a_tombstone_without_a_key_is_forgotten_in_the_end(
    engine: Engine, keeper: Keeper, store_url: str
) -> None:
    tasks = [create(engine, key=key) for key in (None, None, "k")]
    for each in tasks:
        finish(engine, each)
    keeper.wait()
    assert keeper.remove(TASKS) == tasks
    assert engine.removals.forget_tombstones(keeper.before) == 0
    keeper.wait()
    assert engine.removals.forget_tombstones(keeper.before, 1) == 1
    assert engine.removals.forget_tombstones(keeper.before) == 1
    assert [row["key"] for row in tombstones(store_url)] == ["k"]
