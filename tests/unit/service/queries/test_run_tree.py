"""The tree of a run, its addresses, and what it used up."""

from __future__ import annotations

from typing import Any

from holdfast.service.queries.run_tree import build_task_trees, name_item, name_steps
from holdfast.service.queries.views import read_cost, usage_by_owner


def task(identifier: str, step: str, **fields: Any) -> dict[str, Any]:
    given = {"id": identifier, "run_id": "r_1", "kind": "work", "step": step, "title": step}
    return given | {"position": 0, "status": "queued", "holds": [], "state": "ready", **fields}


LOOP = [
    task("1", "plan", status="done", started_at="2030-01-01T00:00:00Z"),
    task("2", "build", kind="group"),
    task("3", "build", kind="group", parent_id="2", item=1, position=1, title="The way out"),
    task("4", "build", kind="group", parent_id="2", item=0, title="build.0", payload="In"),
    task("8", "build", kind="group", parent_id="2", item=2, position=2, title="build.3"),
    task("5", "implement", parent_id="4", item=0, status="done"),
    task("6", "verify", parent_id="4", item=0, status="done"),
    task("7", "build", kind="group", parent_id="2", item=0, superseded=True),
]


def test_items_stand_in_their_order_under_their_loop_without_the_superseded() -> None:
    plan, build = build_task_trees(LOOP)
    assert (plan.label, build.label) == ("plan", "build")
    assert [node.label for node in build.children] == ["1 In", "2 The way out", "3"]
    assert build.items_done == (0, 3)
    assert build.is_under_way
    assert plan.duration_until(1_893_456_060_000_000) == 60_000_000
    assert name_steps(LOOP)["6"] == "build.1.verify"


def test_a_superseded_task_keeps_the_address_that_it_had() -> None:
    tasks = [*LOOP, task("9", "implement", parent_id="7", item=0, superseded=True)]
    assert (name_steps(tasks)["7"], name_steps(tasks)["9"]) == ("build.1", "build.1.implement")
    child = {"id": "r_2", "superseded": True, "tasks": tasks}
    called = name_steps([task("10", "stories", kind="group", calls="w", child=child)])
    assert (called["r_2"], called["9"]) == ("stories", "stories.build.1.implement")


def test_a_step_takes_from_its_first_start_to_its_end_with_what_it_waited() -> None:
    begun, ended = "2030-01-01T00:00:00Z", "2030-01-01T00:14:00Z"
    tasks = [
        task("1", "ship", status="done", started_at=begun, finished_at=ended),
        task("2", "pack", parent_id="1", status="done", started_at="2030-01-01T00:10:00Z"),
        task("3", "nap", state="scheduled", started_at=begun, position=1),
        task("4", "later", position=2),
    ]
    ship, nap, later = build_task_trees(tasks)
    hour = 1_893_459_600_000_000
    assert (ship.duration_until(hour), nap.duration_until(hour)) == (
        14 * 60_000_000,
        60 * 60_000_000,
    )
    assert later.duration_until(hour) is None


def test_a_task_that_waits_for_a_limit_that_lifts_by_itself_needs_nobody() -> None:
    until = {"held_until": "2030-01-01T00:00:00Z"}
    tasks = [
        task("1", "limited", state="held", holds=["limit"], **until),
        task("2", "for good", state="held", holds=["limit"]),
        task("3", "paused too", state="held", holds=["paused", "limit"], **until),
    ]
    assert [node.is_moving for node in build_task_trees(tasks)] == [True, False, False]


def test_an_item_is_called_by_its_title_or_by_itself() -> None:
    named = [name_item(each) for each in ({"title": "A"}, {"name": "B"}, "C", 4, [1], {"x": 1})]
    assert named == ["A", "B", "C", "4", "", ""]


def test_each_attempt_is_counted_once_and_the_running_one_as_far_as_it_told() -> None:
    rows = [
        {"owner": "r", "id": "a", "data": '{"usage":{"usd":1,"tokens":5}}', "usage": None},
        {"owner": "r", "id": "a", "data": '{"usage":7,"lost":1}', "usage": None},
        {"owner": "r", "id": "b", "data": None, "usage": '{"usd": 0.5, "note": "x"}'},
    ]
    assert usage_by_owner(rows) == {"r": {"usd": 1.5, "tokens": 5}}
    assert (read_cost({"usd": 2}), read_cost({"usd": True}), read_cost("x"), read_cost(None)) == (
        2.0,
        None,
        None,
        None,
    )
