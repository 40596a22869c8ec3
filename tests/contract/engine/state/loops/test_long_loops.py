"""A long loop looks for open items from where the first of them is, and misses none before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.engine import Engine
from holdfast.engine.state import loops
from holdfast.model.workflow.graph import Step
from holdfast.store.postgresql.connection import Connection, ServerAddress
from holdfast.store.sql_text import queries
from tests.contract.engine.state.loops.test_loops import begin, loop, of, planned, ready, work_off
from tests.contract.engine.state.verdicts.test_verifiers import ACCEPT, REJECT, judge
from tests.contract.raw_store import raw
from tests.contract.store.costs.test_writer_query_plans import A_FEW_PAGES, plan_of
from tests.contract.task_states import finish

ONE = (Step(id="one"),)
LISTED = list("abcdef")
NOWHERE = "-2147483648"

# Each by itself, so that what the index held before is dead, and nobody has vacuumed.
LONG = [
    "INSERT INTO holdfast_workflow VALUES ('many', '1', '', 1)",
    """
    INSERT INTO holdfast_run (id, workflow, workflow_version, body_digest, status, input,
      changed_by, changed_at, created_at) VALUES ('r_1', 'many', '1', '', 'running', '', '', 1, 1)
    """,
    """
    INSERT INTO holdfast_task (id, kind, run_id, parent_id, step, item, position, status, total,
      made, ended_before, title, body_digest, max_attempts, max_lost, backoff, backoff_max, payload,
      changed_by, changed_at, created_at)
    SELECT made.*, '', '', 3, 5, 0, 0, '', '', 1, 1 FROM (
      SELECT 't_loop', 'group', 'r_1', NULL, 'build', NULL::int, 0, 'queued', 9000, 6000, 5990
      UNION ALL
      SELECT 't_item' || n, 'group', 'r_1', 't_loop', 'build', n, n, 'idle', NULL, 0, NULL
      FROM generate_series(0, 5999) AS n) AS made
    """,
    "UPDATE holdfast_task SET status = 'queued' WHERE item < 5995",
    "UPDATE holdfast_task SET status = 'done', finished_at = 1 WHERE item < 5990",
]


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "ITEMS_AT_ONCE", 3)


@pytest.fixture
def writer(postgres_store_url: str) -> Iterator[Connection]:
    with ServerAddress(postgres_store_url).connect_writer(lock_timeout=1) as connection:
        for statement in LONG:
            connection.execute(statement.encode(), prepare=False)
        yield connection


@pytest.mark.parametrize("query", ["loops_with_room", "first_open_item", "start_items"])
def test_the_search_for_open_items_reads_no_items_that_have_ended(
    writer: Connection, query: str
) -> None:
    known = queries.load("postgresql")[query]
    asked = {"ids": "'[\"t_loop\"]'", "loop_id": "'t_loop'", "count": "1"}
    near = plan_of(writer, known, {**asked, "first": "5990"}, followed=True)["Shared Hit Blocks"]
    writer.execute("UPDATE holdfast_task SET ended_before = NULL WHERE id = 't_loop'")
    far = plan_of(writer, known, {**asked, "first": NOWHERE}, followed=True)["Shared Hit Blocks"]
    assert near + A_FEW_PAGES < far


def marked(store_url: str, run: str) -> int | None:
    """Before which place every item of the loop of a run has ended, as its row says."""
    with raw(store_url) as read:
        asked = "SELECT ended_before FROM holdfast_task WHERE run_id = ? AND total IS NOT NULL"
        (row,) = read(asked, run)
    place: int | None = row["ended_before"]
    return place


def half_way(engine: Engine, *more: Step) -> str:
    """A run with a loop of six items, the first three of which have ended."""
    run = begin(engine, loop("input", body=ONE), *more, given=LISTED)
    for place in range(3):
        finish(engine, of(engine, run, "one")[place].id)
    return run


def test_a_loop_notes_before_which_place_all_have_ended(engine: Engine, store_url: str) -> None:
    run = half_way(engine)
    assert marked(store_url, run) == 3
    assert work_off(engine, run) == ["one 3", "one 4", "one 5"]


def test_an_item_that_is_under_way_is_counted_however_many_have_ended_behind_it(
    engine: Engine, store_url: str
) -> None:
    run = begin(engine, loop("input", body=ONE, parallel=2), given=LISTED)
    for place in range(1, 5):
        finish(engine, of(engine, run, "one")[place].id)
    assert marked(store_url, run) == 0
    assert ready(engine, run) == ["one 0", "one 5"]


def test_an_item_that_is_sent_back_is_done_again_before_the_loop_goes_on(
    engine: Engine, store_url: str
) -> None:
    run = half_way(engine, Step(id="verify", verifies="build"))
    for place in range(3, 6):
        finish(engine, of(engine, run, "one")[place].id)
    assert judge(engine, run, {**REJECT, "items": [1]}).ok
    assert marked(store_url, run) is None
    assert ready(engine, run) == ["one 1"]


def test_an_item_that_is_put_in_front_is_the_next(engine: Engine, store_url: str) -> None:
    run = half_way(engine)
    last = of(engine, run, "build")[-1]
    assert engine.tasks.edit(last.id, {"position": -1}).ok
    assert marked(store_url, run) is None
    assert work_off(engine, run) == ["one 3", "one 5", "one 4"]


def test_a_loop_that_begins_again_begins_with_its_first_item(
    engine: Engine, store_url: str
) -> None:
    run = half_way(engine)
    assert engine.runs.retry(run, step="build").ok
    assert marked(store_url, run) == 0
    assert work_off(engine, run) == [f"one {place}" for place in range(6)]


def listed(engine: Engine, *more: Step) -> tuple[str, str, str]:
    """A run, its plan and its loop over what that gave, which by a person's word needs it no more.

    Three of six items are made, and the first two have ended.
    """
    run = planned(engine, loop(body=ONE, needs=("plan",)), *more, stories=LISTED)
    plan, build = (of(engine, run, step)[0].id for step in ("plan", "build"))
    assert engine.tasks.unblock(build).ok
    for place in range(2):
        finish(engine, of(engine, run, "one")[place].id)
    return run, plan, build


def test_a_loop_whose_list_has_gone_waits_for_the_new_one_and_begins_again(engine: Engine) -> None:
    run, plan, build = listed(engine)
    assert engine.tasks.reset(plan).ok
    finish(engine, of(engine, run, "one")[2].id)
    assert (ready(engine, run), engine.tasks.blocked_by(build)) == ([], [plan])
    assert engine.tasks.enqueue(plan).ok
    finish(engine, plan, {"stories": ["x", "y"]})
    assert work_off(engine, run) == ["one 0", "one 1"]
    assert engine.tasks.get(build).output == ["one x", "one y"]


@pytest.mark.parametrize("stories", [["x"], list("uvwxyz"), list("stuvwxyz")])
def test_a_loop_whose_list_is_another_by_now_begins_again(
    engine: Engine, stories: list[str]
) -> None:
    run, plan, build = listed(engine)
    assert engine.runs.retry(run, step="plan").ok
    finish(engine, plan, {"stories": stories})
    assert work_off(engine, run) == ["one 2", *(f"one {place}" for place in range(len(stories)))]
    assert engine.tasks.get(build).output == [f"one {story}" for story in stories]


def test_a_loop_whose_list_waits_for_the_loop_itself_fails_and_says_so(engine: Engine) -> None:
    run, plan, build = listed(engine)
    assert engine.tasks.reset(plan).ok
    assert engine.tasks.block(plan, [build]).ok
    finish(engine, of(engine, run, "one")[2].id)
    assert engine.runs.get(run).status == "failed"
    assert engine.tasks.get(build).error == "loop 'build': step 'plan' is not done"


def test_a_loop_waits_until_the_new_list_is_accepted(engine: Engine) -> None:
    run, plan, build = listed(engine, Step(id="verify", verifies="plan"))
    assert judge(engine, run, REJECT).ok
    finish(engine, of(engine, run, "one")[2].id)
    assert len(engine.tasks.blocked_by(build)) == 2
    finish(engine, plan, {"stories": ["x"]})
    assert ready(engine, run) == ["verify None"]
    assert judge(engine, run, ACCEPT).ok
    assert work_off(engine, run) == ["one 0"]
