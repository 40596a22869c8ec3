"""A preview tells exactly what the same command changes when it is really given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.status import Status
from holdfast.model.workflow.graph import OnFailure, Step, Workflow
from holdfast.model.workflow.step import Concurrency
from holdfast.service.commands.commands import Commands
from holdfast.service.commands.previews import Previews
from holdfast.service.commands.request_errors import Refused
from holdfast.service.queries.queries import Queries
from tests.contract import called_workflows
from tests.contract.engine.state.loops.test_loops import begin, loop, of
from tests.contract.engine.state.plans.test_nested_plans import nested, unfinalized
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.engine.state.verdicts.test_verifiers import ACCEPT, REJECT, body, do, judge
from tests.contract.raw_store import Raw, raw
from tests.contract.task_states import (
    CHAIN,
    FORK,
    break_for_good,
    bring,
    create,
    finish,
    start,
    take,
)

ENDS = ("done", "failed", "cancelled", "superseded")
World = Callable[[Engine], list[str]]
AFTER = Step(id="after", needs=("build",))
STEPS = ("plan", "work", "left", "build", "build.2", "build.2.implement", "ship", "after")


def _of_run(engine: Engine, run: str) -> list[str]:
    return [run, *(task.id for task in engine.runs.tasks(run))]


def _alone(engine: Engine) -> list[str]:
    """Tasks without a run, one in each status."""
    return [bring(engine, status).task_id for status in Status]


def _links(engine: Engine) -> list[str]:
    """Tasks that need each other: done, failed, and what is blocked behind them."""
    first = bring(engine, Status.DONE).task_id
    second = create(engine, needs=[first])
    third = create(engine, needs=[second])
    failed = bring(engine, Status.FAILED).task_id
    return [first, second, third, failed, create(engine, needs=[failed, first])]


def _idle_plan(engine: Engine) -> list[str]:
    parent, children = plan(engine, "one", "two")
    return [parent, *children, create(engine, needs=[parent])]


def _plan(engine: Engine) -> list[str]:
    parent, children = plan(engine, "one", "two", "three")
    behind = create(engine, needs=[parent])
    assert engine.tasks.finalize_plan(parent).ok
    return [parent, *children, behind]


def _part_of_a_plan_is_done(engine: Engine) -> list[str]:
    ids = _plan(engine)
    finish(engine, ids[1])
    take(engine, ids[2])
    return ids


def _done_plan(engine: Engine) -> list[str]:
    ids = _plan(engine)
    for each in ids[1:4]:
        finish(engine, each)
    return ids


def _failed_plan(engine: Engine) -> list[str]:
    ids = _plan(engine)
    finish(engine, ids[1])
    break_for_good(engine, ids[2])
    return ids


def _cancelled_plan(engine: Engine) -> list[str]:
    ids = _part_of_a_plan_is_done(engine)
    assert engine.tasks.cancel(ids[0]).ok
    return ids


def _plan_in_plan(engine: Engine) -> list[str]:
    ids = nested(engine, chain=True)
    finish(engine, ids["first"])
    break_for_good(engine, ids["one"])
    return [*ids.values()]


def _done_plan_in_plan(engine: Engine) -> list[str]:
    ids = nested(engine, chain=True)
    for each in ("first", "one", "two"):
        finish(engine, ids[each])
    return [*ids.values()]


def _deep_plan(engine: Engine) -> list[str]:
    return [*unfinalized(engine).values()]


def _blocked(engine: Engine) -> list[str]:
    run = start(engine, FORK)
    run.finish("plan")
    run.take("left")
    return _of_run(engine, run.id)


def _failing(engine: Engine) -> list[str]:
    """A run of which something failed while something else still runs."""
    run = start(engine, FORK)
    run.finish("plan")
    run.take("left")
    run.break_for_good("right")
    return _of_run(engine, run.id)


def _failed(engine: Engine) -> list[str]:
    run = start(engine)
    run.finish("plan")
    run.break_for_good("work")
    return _of_run(engine, run.id)


def _cancelled(engine: Engine) -> list[str]:
    run = start(engine)
    run.finish("plan")
    run.take("work")
    assert engine.runs.cancel(run.id).ok
    return _of_run(engine, run.id)


def _completed(engine: Engine) -> list[str]:
    run = start(engine)
    run.finish("plan", "work", "review")
    return _of_run(engine, run.id)


def _paused(engine: Engine) -> list[str]:
    run = start(engine, FORK)
    run.finish("plan")
    run.take("left")
    assert engine.runs.pause(run.id).ok
    return _of_run(engine, run.id)


def _verified_loop(engine: Engine) -> list[str]:
    """The first item is accepted, the second rejected once, the third has not begun."""
    run = begin(engine, _checked(parallel=2), AFTER, given=["a", "b", "c"])
    for place, verdict in enumerate((ACCEPT, REJECT)):
        for step in ("implement", "lint"):
            finish(engine, of(engine, run, step)[place].id)
        assert judge(engine, run, verdict, place=place).ok
    do(engine, run, "commit")
    return _of_run(engine, run)


def _spent_verifier(engine: Engine) -> list[str]:
    run = begin(engine, _checked(parallel=2, max_rounds=1), AFTER, given=["a", "b"])
    finish(engine, of(engine, run, "implement")[1].id)
    do(engine, run, "implement", "lint")
    judge(engine, run, REJECT)
    assert of(engine, run, "verify")[0].status is Status.FAILED
    return _of_run(engine, run)


def _loop_is_done(engine: Engine) -> list[str]:
    run = begin(engine, loop("input", parallel=2), AFTER, given=["a", "b"])
    for step in ("implement", "test"):
        for place in range(2):
            finish(engine, of(engine, run, step)[place].id)
    return _of_run(engine, run)


def _checked(*, parallel: int, **verifier: int) -> Step:
    return loop("input", body=body(**verifier), parallel=parallel)


def _call_runs(engine: Engine) -> list[str]:
    run = called_workflows.begin(engine, called_workflows.call(), called_workflows.LAST)
    called_workflows.of(run).finish("pack")
    return _with_called(engine, run.id, called_workflows.of(run).id)


def _call_failed(engine: Engine) -> list[str]:
    run = called_workflows.begin(engine, called_workflows.call(), called_workflows.LAST)
    below = called_workflows.of(run)
    below.finish("pack")
    below.break_for_good("send")
    return _with_called(engine, run.id, below.id)


def _call_asks(engine: Engine) -> list[str]:
    run = called_workflows.begin(
        engine, called_workflows.call(on_failure=OnFailure(action="ask")), called_workflows.LAST
    )
    below = called_workflows.of(run)
    below.break_for_good("pack")
    return _with_called(engine, run.id, below.id)


def _call_is_done(engine: Engine) -> list[str]:
    run = called_workflows.begin(engine, called_workflows.call(), called_workflows.LAST)
    below = called_workflows.of(run)
    below.finish("pack", "send")
    return _with_called(engine, run.id, below.id)


def _with_called(engine: Engine, *runs: str) -> list[str]:
    return [each for run in runs for each in _of_run(engine, run)]


def _waits_for_its_slot(engine: Engine) -> list[str]:
    one = Workflow.define("one", CHAIN.steps, concurrency=Concurrency(key="dock", limit=1))
    first, second = start(engine, one), start(engine, one)
    return _with_called(engine, first.id, second.id)


PLANS: tuple[World, ...] = (
    _alone,
    _links,
    _idle_plan,
    _plan,
    _part_of_a_plan_is_done,
    _done_plan,
    _failed_plan,
    _cancelled_plan,
    _plan_in_plan,
    _done_plan_in_plan,
    _deep_plan,
)
RUNS: tuple[World, ...] = (
    _blocked,
    _failing,
    _failed,
    _cancelled,
    _completed,
    _paused,
    _verified_loop,
    _spent_verifier,
    _loop_is_done,
    _call_runs,
    _call_failed,
    _call_asks,
    _call_is_done,
    _waits_for_its_slot,
)


def _name(world: World) -> str:
    return world.__name__.strip("_")


class Store:
    """What is recorded in a store, what would be done there, and what is."""

    def __init__(self, engine: Engine, run: Raw) -> None:
        self._run = run
        self._previews = Previews(engine)
        self._commands = Commands(engine, Queries(engine.database.view, lambda: engine))

    def compare(self, verb: str, identifier: str, *given: object, **options: object) -> list[str]:
        """Where what a command would do differs from what it does."""
        asked = f"{verb} {identifier} {options or ''}"
        before, known = self._last_event(), self._tasks()
        (would,) = self._previews.preview_each(verb, [identifier], *given, **options)
        if (self._last_event(), self._tasks()) != (before, known):
            return [f"{asked}: the preview has changed something"]
        try:
            getattr(self._commands, verb)(identifier, *given, **options)
        except Refused as refused:
            return [] if str(would) == str(refused) else [f"{asked}: {would} but {refused}"]
        if isinstance(would, Refused):
            return [f"{asked}: {would} but it was done"]
        changed = self._changed(before) - self._unseen(verb, identifier)
        there = sorted(each["id"] for each in would.tasks)
        made = len(changed - known.keys())
        now = self._tasks()
        became = {each["id"]: each["becomes"] in ENDS for each in would.tasks}
        ended = {each: now[each] in ENDS for each in became}
        if (there, len(would.new_tasks), became) == (sorted(changed & known.keys()), made, ended):
            return []
        return [f"{asked}: {there} but {sorted(changed)}, {made} of them new"]

    def _unseen(self, verb: str, identifier: str) -> set[str]:
        """What runs goes on as it did, whatever its run is told, and a plan is not its own part."""
        if verb in {"pause", "resume"}:
            return {task for task, status in self._tasks().items() if status == "running"}
        return {identifier} if verb == "finalize_plan" else set()

    def _last_event(self) -> int:
        (row,) = self._run("SELECT COALESCE(max(seq), 0) AS seq FROM holdfast_event")
        return int(row["seq"])

    def _tasks(self) -> dict[str, str]:
        rows = self._run("SELECT id, status FROM holdfast_task")
        return {row["id"]: row["status"] for row in rows}

    def _changed(self, before: int) -> set[str]:
        rows = self._run("SELECT entity FROM holdfast_event WHERE seq > ?", before)
        return {row["entity"] for row in rows if row["entity"].startswith("t_")}


@pytest.fixture
def store(engine: Engine, store_url: str) -> Iterator[Store]:
    with raw(store_url) as run:
        yield Store(engine, run)


def _compare_all(engine: Engine, store: Store, world: World, verb: str, kind: str) -> list[str]:
    """Each thing of a world in a new one like it: what was done to the first changed others."""
    places = [place for place, each in enumerate(world(engine)) if each[:2] in kind]
    return [wrong for place in places for wrong in store.compare(verb, world(engine)[place])]


@pytest.mark.parametrize("verb", ["cancel", "retry"])
@pytest.mark.parametrize("world", [*PLANS, *RUNS], ids=_name)
def test_a_preview_tells_what_is_changed_then(
    engine: Engine, store: Store, world: World, verb: str
) -> None:
    assert _compare_all(engine, store, world, verb, "r_ t_") == []


@pytest.mark.parametrize("world", [_alone, _plan, *RUNS], ids=_name)
def test_a_preview_of_a_pause_or_its_end_tells_what_is_changed_then(
    engine: Engine, store: Store, world: World
) -> None:
    for verb in ("pause", "resume"):
        assert _compare_all(engine, store, world, verb, "r_ t_") == []


@pytest.mark.parametrize("world", [*PLANS, *RUNS], ids=_name)
def test_a_preview_of_doing_a_task_again_tells_what_is_changed_then(
    engine: Engine, store: Store, world: World
) -> None:
    assert _compare_all(engine, store, world, "reopen", "t_") == []


@pytest.mark.parametrize("world", RUNS, ids=_name)
def test_a_preview_of_a_retry_from_a_step_tells_what_is_changed_then(
    engine: Engine, store: Store, world: World
) -> None:
    compared = [store.compare("retry", world(engine)[0], step=step) for step in STEPS]
    assert [wrong for each in compared for wrong in each] == []


@pytest.mark.parametrize("world", PLANS, ids=_name)
def test_a_preview_of_finalizing_a_plan_tells_what_is_changed_then(
    engine: Engine, store: Store, world: World
) -> None:
    places = range(len(world(engine)))
    compared = [store.compare("finalize_plan", world(engine)[place], None) for place in places]
    assert [wrong for each in compared for wrong in each] == []
