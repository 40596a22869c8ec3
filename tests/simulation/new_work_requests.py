"""Asking for new tasks and runs: keyed or not, needing others, scheduled, idle, limited."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from hypothesis import strategies as st

from holdfast.model.retry import RetryPolicy
from holdfast.model.run import CreateResult, NewRun
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.simulation.model_comparison import Ask, Bench, Phase
from tests.simulation.plain import creation
from tests.simulation.request_kinds import kind, later, picks, seconds

SHORT = RetryPolicy(max_attempts=2, max_lost=2, backoff=4, backoff_max=6)
ONCE = RetryPolicy(max_attempts=1, max_lost=1, backoff=4, backoff_max=6)
ONE_AT_A_TIME = Concurrency(key="narrow", limit=1)

CHAIN = (
    Step(id="plan", retry=SHORT),
    Step(id="work", needs=("plan",), retry=SHORT),
    Step(id="review", needs=("work",), agent="reviewer", retry=ONCE),
)
DIAMOND = (
    Step(id="top", retry=ONCE),
    Step(id="left", needs=("top",), retry=SHORT, concurrency=ONE_AT_A_TIME),
    Step(id="right", needs=("top",), retry=SHORT, concurrency=ONE_AT_A_TIME, priority=1),
    Step(id="bottom", needs=("left", "right"), retry=SHORT),
)
APART = (Step(id="one", retry=ONCE), Step(id="two", retry=ONCE, tags=("gpu",)))

WORKFLOWS = {
    "chain": Workflow.define("chain", CHAIN),
    "diamond": Workflow.define("diamond", DIAMOND),
    "apart": Workflow.define("apart", APART),
    "single": Workflow.define("single", CHAIN, concurrency=Concurrency(key="lane", limit=1)),
    "pair": Workflow.define("pair", APART, concurrency=Concurrency(key="lane-2", limit=2)),
    "widened": Workflow.define("widened", APART, concurrency=Concurrency(key="road", limit=2)),
    "narrowed": Workflow.define("narrowed", APART, concurrency=Concurrency(key="road", limit=1)),
}


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a new task; needs and parent are picks, the time is seconds from now."""
    plain = draw(st.booleans())
    if plain:
        return {"needs": (), "parent": None, "after": None, "fields": {"title": "plain"}}
    limits = st.sampled_from([None, None, ONE_AT_A_TIME, Concurrency(key="wide", limit=2)])
    return {
        "needs": draw(st.lists(picks, max_size=2)),
        "parent": draw(st.none() | picks),
        "after": draw(st.none() | seconds),
        "fields": {
            "title": draw(st.sampled_from(["first", "second"])),
            "agent": draw(st.sampled_from(["default", "reviewer"])),
            "key": draw(st.sampled_from([None, None, "red", "blue"])),
            "payload": draw(st.sampled_from([None, None, 7])),
            "priority": draw(st.integers(0, 2)),
            "position": draw(st.integers(0, 1)),
            "tags": draw(st.sampled_from([(), (), ("gpu",), ("gpu", "big")])),
            "retry": draw(st.sampled_from([ONCE, SHORT, RetryPolicy()])),
            "concurrency": draw(limits),
            "timeout": draw(st.sampled_from([None, 60.0])),
            "enqueue": draw(st.sampled_from([True, True, False])),
        },
    }


def _new(bench: Bench, shape: dict[str, Any]) -> NewTask:
    needs = dict.fromkeys(bench.lone_task(pick) for pick in shape["needs"])
    return NewTask(
        needs=tuple(needs),
        parent=None if shape["parent"] is None else bench.lone_task(shape["parent"]),
        scheduled_for=later(bench, shape["after"]),
        **shape["fields"],
    )


@kind(shape=shapes())
def create(bench: Bench, *, shape: dict[str, Any]) -> Ask:
    new = _new(bench, shape)
    return Ask(
        name="create",
        phase=Phase.CREATE,
        submit=lambda: bench.engine.tasks.create.submit(new),
        expect=lambda reply: _judged(
            bench, reply, creation.create(bench.world, [new], _ids(reply))
        ),
    )


@kind(each=st.lists(shapes(), min_size=2, max_size=4))
def create_many(bench: Bench, *, each: list[dict[str, Any]]) -> Ask:
    new = [_new(bench, shape) for shape in each]
    return Ask(
        name="create_many",
        phase=Phase.CREATE,
        submit=lambda: bench.engine.tasks.create_many.submit(new),
        expect=lambda reply: _judged(bench, reply, creation.create(bench.world, new, _ids(reply))),
    )


@kind(
    name=st.sampled_from(sorted(WORKFLOWS)),
    key=st.sampled_from([None, None, None, "order"]),
    given=st.sampled_from([None, 1]),
)
def start(bench: Bench, *, name: str, key: str | None, given: object) -> Ask:
    # Two capacities for one key in one group have no order among them.
    shared = {"road"} if name in {"widened", "narrowed"} else set()
    return start_run(bench, NewRun(workflow=WORKFLOWS[name], key=key, input=given), shared)


def start_run(bench: Bench, new: NewRun, shared: Collection[str] = ()) -> Ask:
    def expect(reply: object) -> object:
        ids = _ids(reply)
        if not ids:
            return creation.start(bench.world, new, "", [""] * len(new.workflow.steps))
        rows = bench.tables.rows("holdfast_task")
        own = [row for row in rows if row["run_id"] == ids[0] and row["parent_id"] is None]
        made = sorted(own, key=lambda row: row["id"])
        tasks = [row["id"] for row in made]
        if ids[0] not in bench.runs:
            assert [row["step"] for row in made] == [step.id for step in new.workflow.steps]
            bench.runs.append(ids[0])
            bench.tasks += tasks
        expected = creation.start(bench.world, new, ids[0], tasks)
        return _judged(bench, reply, expected)

    return Ask(
        name="start",
        phase=Phase.START,
        keys=frozenset(shared),
        submit=lambda: bench.engine.runs.start.submit(new),
        expect=expect,
    )


def _ids(reply: object) -> list[str]:
    created = reply if isinstance(reply, list) else [reply]
    return [each.id for each in created if isinstance(each, CreateResult)]


def _judged(bench: Bench, reply: object, made: creation.Made) -> object:
    """The model's answer in the form of the reply, so that the two can be compared."""
    if isinstance(made, str):
        return made
    bench.tasks += [each for each, new in made if new and each in bench.world.tasks]
    created: Sequence[CreateResult] = [CreateResult(id=each, created=new) for each, new in made]
    return created if isinstance(reply, list) else created[0]
