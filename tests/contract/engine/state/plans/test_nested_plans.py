"""A plan inside a plan: its children wait for what it waits for, and the topmost plan ends last."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.status import Status
from tests.contract.engine.state.plans.test_plans import plan, states
from tests.contract.single_statements import write
from tests.contract.task_states import break_for_good, create, finish, take


def nested(engine: Engine, *, chain: bool, inner_first: bool = False) -> dict[str, str]:
    """The plan `top` of `first` and `inner`, which is a plan of `one` and `two`."""
    top, (first, inner) = plan(engine, "first", "inner")
    assert engine.tasks.start_planning(inner).ok
    one, two = (create(engine, name, parent=inner, enqueue=False) for name in ("one", "two"))
    for each in (inner, top) if inner_first else (top, inner):
        assert engine.tasks.finalize_plan(each, graph=None if chain and each == top else {}).ok
    return {"top": top, "first": first, "inner": inner, "one": one, "two": two}


def healthy(engine: Engine) -> bool:
    diagnosis = engine.doctor()
    assert diagnosis.ok, str(diagnosis)
    return True


@pytest.mark.parametrize("inner_first", [False, True])
def test_the_children_of_a_plan_in_a_chain_wait_for_what_it_waits_for(
    engine: Engine, *, inner_first: bool
) -> None:
    ids = nested(engine, chain=True, inner_first=inner_first)
    below = [ids["one"], ids["two"]]
    for _ in range(2):
        assert states(engine, [ids["first"], *below]) == ["ready", "blocked", "blocked"]
        assert healthy(engine)
        finish(engine, ids["first"])
        assert states(engine, below) == ["ready", "ready"]
        for each in below:
            finish(engine, each)
        assert states(engine, [ids["inner"], ids["top"]]) == ["done", "done"]
        assert engine.tasks.reopen(ids["top"]).ok


def unfinalized(engine: Engine) -> dict[str, str]:
    """The open plan `top` of `first` and `inner`, finalized: of `one` and the plan `deep`."""
    top, (first, inner) = plan(engine, "first", "inner")
    for each in (top, inner):
        assert engine.tasks.edit(each, {"agent": each[-1]}).ok
    assert engine.tasks.start_planning(inner).ok
    one, deep = (create(engine, name, parent=inner, enqueue=False) for name in ("one", "deep"))
    assert engine.tasks.start_planning(deep).ok
    two, three = (create(engine, name, parent=deep, enqueue=False) for name in ("two", "three"))
    for each in (deep, inner):
        assert engine.tasks.finalize_plan(each).ok
    around = {"top": top, "first": first, "inner": inner, "deep": deep}
    return {**around, "one": one, "two": two, "three": three}


def test_nothing_below_a_plan_starts_while_a_plan_around_it_is_being_made(engine: Engine) -> None:
    ids = unfinalized(engine)
    below = [ids["one"], ids["two"], ids["three"]]
    assert states(engine, below) == ["idle"] * 3
    assert engine.tasks.cancel(ids["top"]).ok
    assert engine.tasks.retry(ids["top"]).ok
    assert states(engine, [ids["top"], ids["first"], *below]) == ["planning", *["idle"] * 4]
    assert healthy(engine)
    assert engine.tasks.finalize_plan(ids["top"]).ok
    assert states(engine, [ids["first"], *below]) == ["ready", *["blocked"] * 3]
    assert engine.tasks.get(ids["one"]).agent == ids["inner"][-1]
    for each in (ids["first"], *below):
        finish(engine, each)
    assert states(engine, [ids["inner"], ids["top"]]) == ["done", "done"]
    assert healthy(engine)


def test_a_plan_that_runs_again_waits_for_one_around_it_that_is_being_made(engine: Engine) -> None:
    ids = unfinalized(engine)
    below = [ids["one"], ids["two"], ids["three"]]
    for each in below:
        finish(engine, each)
    assert engine.tasks.get(ids["inner"]).status is Status.DONE
    assert engine.tasks.reopen(ids["inner"]).ok
    assert states(engine, below) == ["idle"] * 3
    assert engine.tasks.finalize_plan(ids["top"]).ok
    assert states(engine, below) == ["blocked"] * 3
    assert healthy(engine)


def test_a_plan_that_waits_for_the_plan_around_it_can_be_planned_anew_and_its_inner_plans_stay(
    engine: Engine,
) -> None:
    ids = unfinalized(engine)
    assert engine.tasks.start_planning(ids["inner"]).ok
    assert needs_of(engine, ids["deep"]) == set()
    assert needs_of(engine, ids["three"]) == {ids["two"]}
    assert engine.tasks.finalize_plan(ids["top"]).ok
    below = [ids["one"], ids["two"], ids["three"]]
    assert states(engine, [ids["first"], *below]) == ["ready", "idle", "idle", "idle"]
    assert engine.tasks.finalize_plan(ids["inner"], graph={}).ok
    assert states(engine, below) == ["blocked"] * 3
    finish(engine, ids["first"])
    assert states(engine, below) == ["ready", "ready", "blocked"]


def test_a_child_added_later_and_a_need_added_later_reach_all_below(engine: Engine) -> None:
    ids = nested(engine, chain=True)
    late = create(engine, "late", parent=ids["inner"])
    assert states(engine, [late]) == ["blocked"]
    finish(engine, ids["first"])
    assert states(engine, [late, ids["one"]]) == ["ready", "ready"]
    other = create(engine)
    assert engine.tasks.block(ids["inner"], on=[other]).ok
    assert states(engine, [late, ids["one"]]) == ["blocked", "blocked"]
    assert healthy(engine)
    finish(engine, other)
    assert states(engine, [late, ids["one"]]) == ["ready", "ready"]


@pytest.mark.parametrize("broken", ["first", "one"])
def test_after_a_failure_anywhere_nothing_below_the_topmost_plan_starts_and_it_ends_last(
    engine: Engine, broken: str
) -> None:
    ids = nested(engine, chain=False)
    runs, waits = ("one", "two") if broken == "first" else ("first", "two")
    attempt = take(engine, ids[runs])
    break_for_good(engine, ids[broken])
    assert engine.tasks.get(ids["top"]).status is Status.IDLE
    late = create(engine, "late", parent=ids["inner"]) if broken == "first" else ids[waits]
    assert not engine.work.claim("other", count=5, agents=["developer", "default"])
    assert engine.work.complete(ids[runs], attempt.token).ok
    assert engine.tasks.get(ids["top"]).status is Status.FAILED
    assert engine.tasks.get(ids["top"]).error == "broken"
    assert not engine.work.claim("other", count=5, agents=["developer", "default"])
    assert healthy(engine)
    assert engine.tasks.retry(ids[broken]).ok
    for each in dict.fromkeys((ids[broken], ids[waits], late)):
        finish(engine, each)
    assert states(engine, [ids["inner"], ids["top"]]) == ["done", "done"]


def test_a_plan_that_runs_again_brings_back_those_around_it(engine: Engine) -> None:
    ids = nested(engine, chain=False)
    for each in ("first", "one", "two"):
        finish(engine, ids[each])
    assert engine.tasks.get(ids["top"]).status is Status.DONE
    assert engine.tasks.reopen(ids["inner"]).ok
    around = states(engine, [ids["top"], ids["inner"], ids["first"]])
    assert around == ["in progress 1/2", "in progress 0/2", "done"]
    assert healthy(engine)
    for each in ("one", "two"):
        finish(engine, ids[each])
    assert states(engine, [ids["inner"], ids["top"]]) == ["done", "done"]


def test_a_reset_lets_all_go_on_once_nothing_else_has_failed(engine: Engine) -> None:
    ids = nested(engine, chain=False)
    running = {each: take(engine, ids[each]) for each in ("first", "one")}
    for each, attempt in running.items():
        assert engine.work.fail(ids[each], attempt.token, "broken", retryable=False).ok
    assert states(engine, [ids["inner"], ids["top"]]) == ["failed", "failed"]
    assert engine.tasks.reset(ids["one"]).ok
    assert not engine.work.claim("other", count=5, agents=["developer", "default"])
    assert engine.tasks.get(ids["top"]).status is Status.FAILED
    assert healthy(engine)
    assert engine.tasks.reset(ids["first"]).ok
    for each in ("first", "one", "two"):
        finish(engine, ids[each])
    assert states(engine, [ids["inner"], ids["top"]]) == ["done", "done"]


def test_a_plan_is_not_planned_anew_while_anything_below_it_moves(engine: Engine) -> None:
    ids = nested(engine, chain=False)
    finish(engine, ids["first"])
    assert not engine.tasks.start_planning(ids["top"]).ok


def needs_of(engine: Engine, task_id: str) -> set[str]:
    rows = engine.database.view(lambda tx: tx.read("needs_of", task_id=task_id))
    return {row["need_id"] for row in rows}


def test_needs_are_passed_on_by_plans_alone_to_what_has_not_begun(engine: Engine) -> None:
    ids = nested(engine, chain=True)
    stranger = nested(engine, chain=False)
    finish(engine, ids["first"])
    take(engine, ids["one"])
    other, made = create(engine), create(engine, parent=ids["two"])
    assert engine.tasks.block(ids["two"], on=[other]).ok
    itself = [(ids["inner"], ids["two"], 9)]
    engine.database.transact(lambda tx: tx.run("insert_needs", rows=itself))
    assert engine.tasks.block(ids["inner"], on=[create(engine, "more")]).ok
    assert needs_of(engine, ids["one"]) == {ids["first"]}
    assert len(needs_of(engine, ids["two"])) == 3
    assert needs_of(engine, made) == set()
    assert needs_of(engine, stranger["one"]) == set()


def test_only_tasks_below_a_plan_that_have_not_begun_are_blocked_and_once(engine: Engine) -> None:
    ids, stranger = nested(engine, chain=False), nested(engine, chain=False)
    running = take(engine, ids["one"])
    missing = create(engine)
    there = create(engine)
    finish(engine, there)
    rows = [(each, missing, 9) for each in (ids["one"], ids["two"], stranger["two"])]
    rows.append((stranger["one"], there, 9))
    engine.database.transact(lambda tx: tx.run("insert_needs", rows=rows))
    for expected in ({ids["two"]}, set[str]()):
        assert write(engine, "block_children", ids=[ids["top"]], actor="user") == expected
    found = write(engine, "block_children", ids=[stranger["top"]], actor="user")
    assert found == {stranger["two"]}
    assert engine.work.complete(ids["one"], running.token).ok
    finish(engine, missing)


def test_a_failure_below_an_inner_plan_holds_no_task_of_an_outer_plan_still_being_planned(
    engine: Engine,
) -> None:
    top, (first, inner) = plan(engine, "first", "inner")
    assert engine.tasks.start_planning(inner).ok
    one, two = (create(engine, name, parent=inner, enqueue=False) for name in ("one", "two"))
    assert engine.tasks.finalize_plan(inner, graph={}).ok
    break_for_good(engine, one)
    assert engine.tasks.get(two).run_holds
    assert not engine.tasks.get(first).run_holds
    assert engine.tasks.get(top).planning_phase == "active"


def test_a_failure_below_a_plan_still_being_planned_holds_no_task_of_the_plan_around_it(
    engine: Engine,
) -> None:
    top, (beside, middle) = plan(engine, "beside", "middle")
    assert engine.tasks.start_planning(middle).ok
    inner = create(engine, "inner", parent=middle, enqueue=False)
    assert engine.tasks.start_planning(inner).ok
    one, two = (create(engine, name, parent=inner, enqueue=False) for name in ("one", "two"))
    for finalized in (inner, top):
        assert engine.tasks.finalize_plan(finalized, graph={}).ok
    break_for_good(engine, one)
    assert engine.tasks.get(two).run_holds
    assert not engine.tasks.get(beside).run_holds
    assert engine.tasks.get(middle).planning_phase == "active"
