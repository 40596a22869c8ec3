"""Waits for signals and children under every interleaving: none is missed, none is heard twice."""

from __future__ import annotations

from holdfast.engine.core.operation import AdvancePlan
from holdfast.engine.state.durable import SendSignal, Spawn, Suspend, TakeSignal
from holdfast.model.effect import CHILDREN, write_awaited
from holdfast.model.workflow.graph import Step
from holdfast.store.database import Transaction
from tests.race.explorer import Plans, Stage
from tests.race.worlds import World


def signal(world: World, to: str) -> SendSignal:
    return SendSignal(
        id=f"s_{world.number}", target=world.ids[to], signal="go", payload="1", key=None, actor="me"
    )


def wait(world: World, name: str, target: str, *others: str) -> Suspend:
    awaited = write_awaited(world.ids[target], ["go", *others], children=False)
    return Suspend(task_id=world.ids[name], fence=world.fences[name], awaited=awaited)


def wait_for_children(world: World, name: str) -> Suspend:
    return Suspend(task_id=world.ids[name], fence=world.fences[name], awaited=CHILDREN)


def listen(world: World, name: str, target: str) -> TakeSignal:
    return TakeSignal(
        task_id=world.ids[name],
        fence=world.fences[name],
        target=world.ids[target],
        signal="go",
        name="wait go",
    )


def family(world: World) -> None:
    """A running parent without a run, with two running children."""
    parent = world.task("parent")
    assignment = world.start("parent")
    children = [world.new_task(name) for name in ("elder", "younger")]
    made = world.engine.work.spawn(parent, assignment.token, children, name="map")
    for name, identifier in zip(("elder", "younger"), made.value, strict=True):
        world.know(name, identifier)
        world.start(name)


def test_a_signal_against_the_wait_for_it(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        world.start("only")
        return [wait(world, "only", "only")], [signal(world, "only")]

    for outcome in stage.explore(scenario):
        assert "task.woken" in str(outcome.state)


def test_a_signal_against_the_wait_for_it_and_for_others(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="one"))
        world.start("one")
        return [wait(world, "one", "run", "stop", "halt")], [signal(world, "run")]

    for outcome in stage.explore(scenario):
        assert "task.woken" in str(outcome.state)


def test_a_signal_to_a_run_against_the_wait_of_its_task(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="one"))
        world.start("one")
        return [wait(world, "one", "run")], [signal(world, "run")]

    for outcome in stage.explore(scenario):
        assert "task.woken" in str(outcome.state)


def test_one_of_two_listeners_for_one_signal_finds_it(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="left"), Step(id="right"))
        world.start("left")
        world.start("right")
        world.engine.signals.send(world.ids["run"], "go")
        return [listen(world, "left", "run")], [listen(world, "right", "run")]

    for outcome in stage.explore(scenario):
        assert str(outcome).count("found=True") == 1


def test_a_signal_against_cancel_of_its_run(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="one"))
        return [signal(world, "run")], [world.cancel("run")]

    stage.explore(scenario)


def test_the_last_two_children_end_at_once_and_wake_their_parent_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        family(world)
        world.engine.commits.submit(wait_for_children(world, "parent")).result()
        return [world.complete("elder")], [world.complete("younger")]

    for outcome in stage.explore(scenario):
        assert str(outcome.state).count("task.woken") == 1


def test_the_last_child_ends_while_its_parent_begins_to_wait(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        family(world)
        world.engine.commits.submit(world.complete("elder")).result()
        return [wait_for_children(world, "parent")], [world.complete("younger")]

    for outcome in stage.explore(scenario):
        assert str(outcome.state).count("task.woken") == 1


def test_new_children_against_cancel_of_their_parent(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("parent")
        world.start("parent")
        (row,) = world.create("child").tasks
        spawn = Spawn(
            task_id=world.ids["parent"],
            fence=world.fences["parent"],
            name="map",
            tasks=(row,),
            actor="worker",
        )
        return [spawn], [world.cancel("parent")]

    for outcome in stage.explore(scenario):
        assert "queued" not in str(outcome.state)


def leave(world: World, name: str, heir: str, lost: str) -> None:
    """Have a task need what counts no more, as a release did that passed nothing on."""

    def write(tx: Transaction) -> None:
        tx.run("delete_needs", task_id=world.ids[name], ids=[world.ids[heir]])
        tx.run("insert_needs", rows=[(world.ids[name], world.ids[lost], 1)])

    world.engine.database.transact(write)


def test_a_need_that_an_older_release_left_against_the_end_of_what_it_is_passed_on_to(
    stage: Stage,
) -> None:
    def scenario(world: World) -> Plans:
        maker = world.task("maker")
        world.task("aside")
        attempt = world.start("maker")
        new = [world.new_task("child")]
        (child,) = world.engine.work.spawn(maker, attempt.token, new, name="map").value
        world.know("child", child)
        assert world.engine.tasks.block(world.ids["aside"], [child]).ok
        assert world.engine.work.complete(maker, attempt.token, None).ok
        assert world.engine.tasks.reopen(maker).ok
        leave(world, "aside", "maker", "child")
        world.start("maker")
        looked = AdvancePlan(task_id=world.ids["aside"], actor="doctor")
        return [looked], [world.complete("maker")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["aside"] == "queued"
        assert outcome.history("aside")[-1] == "task.unblocked"
