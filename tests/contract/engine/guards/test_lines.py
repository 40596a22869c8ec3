"""What attempts record of commits is guarded statement by statement: fence, lease, run and turn."""

from __future__ import annotations

from typing import Any

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.task import Assignment
from tests.contract.engine.read.test_step_texts import begin, only
from tests.contract.engine.state.test_lines import BASE, FLOW, LOOP, TWINS, A, B, C, commit, opened
from tests.contract.engine.state.test_lines import take as claimed
from tests.contract.raw_store import raw
from tests.contract.single_statements import keep, write


def held_twins(engine: Engine) -> tuple[str, Assignment, Assignment]:
    """A run with two steps under way; its line has not begun."""
    return begin(engine, TWINS), claimed(engine), claimed(engine)


def insert_line(engine: Engine, task_id: str, fence: int = 1) -> int:
    told: dict[str, Any] = {"base": BASE, "repository": None, "host": None, "branch": "b"}
    return len(keep(engine, "insert_run_line", task_id=task_id, fence=fence, **told))


def test_a_line_begins_once_and_for_an_attempt_that_holds_its_lease(
    engine: Engine, clock: ManualClock
) -> None:
    run, left, right = held_twins(engine)
    assert insert_line(engine, left.task_id, 2) == 0
    clock.advance(31)
    assert insert_line(engine, left.task_id) == 0
    engine.work.recover()
    assert insert_line(engine, left.task_id) == 0
    (heir,) = engine.work.claim_by_id(left.task_id, "heir", agents=["dev"])
    assert insert_line(engine, heir.task_id, 2) == 1
    assert insert_line(engine, heir.task_id, 2) == 0
    assert engine.runs.cancel(run).ok
    assert insert_line(engine, right.task_id) == 0


def test_a_line_begins_for_the_run_of_its_task_alone(engine: Engine) -> None:
    _, left, _ = held_twins(engine)
    begin(engine, FLOW)
    claimed(engine)
    assert insert_line(engine, left.task_id) == 1


def test_the_line_of_an_item_begins_once_and_for_an_attempt_that_holds_its_lease(
    engine: Engine, clock: ManualClock
) -> None:
    run = begin(engine, LOOP)
    plan = claimed(engine)
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=["one", "two"]).ok
    write_, beside = claimed(engine), claimed(engine)
    item = engine.tasks.get(write_.task_id).parent_id
    assert commit(engine, beside, C).ok
    other = begin(engine, TWINS)
    opened(engine, claimed(engine), BASE)

    def insert(
        fence: int = 1,
        around: str = run,
        line: str | None = item,
        task_id: str = write_.task_id,
    ) -> int:
        named = {"task_id": task_id, "line": line, "around": around}
        return len(keep(engine, "insert_item_line", fence=fence, **named))

    assert insert(2) == insert(task_id=plan.task_id) == 0
    assert insert(around=other) == 0
    clock.advance(31)
    assert insert() == 0
    engine.work.recover()
    assert insert() == 0
    (heir,) = engine.work.claim_by_id(write_.task_id, "heir", agents=["dev"])
    inner = engine.tasks.get(beside.task_id).parent_id
    assert inner is not None
    assert insert(2, inner, "t_deeper") == 1
    (deeper,) = engine.database.view(lambda tx: tx.read("line_states", ids=["t_deeper"]))
    assert deeper["base"] == C
    assert (insert(2), insert(2)) == (1, 0)
    assert opened(engine, heir).base == A


def test_a_head_is_recorded_for_a_running_attempt_on_the_newest_head_of_its_own_run(
    engine: Engine,
) -> None:
    run, left, right = held_twins(engine)
    opened(engine, left, BASE)
    foreign = begin(engine, FLOW)
    (plan,) = engine.work.claim_by_id(only(engine, foreign, "plan").id, "me", agents=["dev"])
    opened(engine, plan, BASE)

    def insert(task_id: str, fence: int = 1, line: str = run, place: int = 0) -> int:
        row = (task_id, fence, line, place, BASE, A)
        return len(keep(engine, "insert_heads", rows=[row]))

    assert insert(left.task_id, 2) == 0
    assert insert(left.task_id, line=foreign) == 0
    assert insert(left.task_id, place=1) == 0
    rows = [(each, 1, run, 0, BASE, A) for each in sorted((left.task_id, right.task_id))]
    (first,) = keep(engine, "insert_heads", rows=rows)
    report = (first["task_id"], 1, "{}", "digest", None, False, True)
    assert write(engine, "complete_with_heads", rows=[report])
    assert engine.runs.cancel(run).ok
    assert insert(right.task_id, place=1) == insert(left.task_id, place=1) == 0


def test_a_verifier_records_no_head(engine: Engine) -> None:
    run = begin(engine, FLOW)
    plan = claimed(engine)
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=[]).ok
    assert commit(engine, claimed(engine), B).ok
    check = claimed(engine)
    assert keep(engine, "insert_heads", rows=[(check.task_id, 1, run, 2, B, C)]) == []


def test_a_task_is_done_with_a_head_only_by_the_attempt_that_recorded_it(engine: Engine) -> None:
    run, left, right = held_twins(engine)
    opened(engine, left, BASE)

    def complete(held: Assignment, fence: int = 1) -> set[str]:
        row = (held.task_id, fence, "{}", "digest", None, False, True)
        return write(engine, "complete_with_heads", rows=[row])

    assert complete(left) == set()
    assert keep(engine, "insert_heads", rows=[(left.task_id, 1, run, 0, BASE, A)])
    assert complete(left, 2) == set()
    assert complete(right) == set()
    assert complete(left) == {left.task_id}
    assert complete(left) == set()
    assert engine.tasks.reopen(left.task_id).ok
    (again,) = engine.work.claim_by_id(left.task_id, "me", agents=["dev"])
    assert complete(again, 1) == complete(again, 2) == set()
    assert keep(engine, "insert_drafts", rows=[(left.task_id, 2, "draft", run, A, B)])
    assert complete(again, 2) == set()


def test_a_draft_is_recorded_once_for_a_running_attempt_on_a_line_of_its_run(
    engine: Engine,
) -> None:
    run, left, right = held_twins(engine)
    opened(engine, left, BASE)
    foreign = begin(engine, FLOW)
    (plan,) = engine.work.claim_by_id(only(engine, foreign, "plan").id, "me", agents=["dev"])
    opened(engine, plan, BASE)

    def insert(task_id: str, fence: int = 1, line: str = run) -> int:
        row = (task_id, fence, "draft", line, BASE, A)
        return len(keep(engine, "insert_drafts", rows=[row]))

    assert insert(left.task_id, 2) == 0
    assert insert(left.task_id, line=foreign) == 0
    assert (insert(left.task_id), insert(left.task_id)) == (1, 0)
    assert engine.runs.cancel(run).ok
    assert insert(right.task_id) == 0


def test_what_a_former_attempt_left_is_recorded_once_by_a_later_one(
    engine: Engine, clock: ManualClock
) -> None:
    run, left, right = held_twins(engine)
    opened(engine, left, BASE)
    foreign = begin(engine, FLOW)
    (plan,) = engine.work.claim_by_id(only(engine, foreign, "plan").id, "me", agents=["dev"])
    opened(engine, plan, BASE)
    clock.advance(31)
    engine.work.recover()
    engine.work.claim_by_id(left.task_id, "heir", agents=["dev"])

    def insert(
        fence: int = 2, former: int = 1, line: str = run, task_id: str = left.task_id
    ) -> int:
        told: dict[str, Any] = {
            "fence": fence,
            "former": former,
            "line": line,
            "base": BASE,
            "sha": A,
        }
        return len(keep(engine, "keep_aside", task_id=task_id, **told))

    assert insert(task_id=right.task_id) == 0
    assert insert(fence=1) == insert(former=2) == insert(line=foreign) == 0
    assert (insert(), insert()) == (1, 0)
    assert engine.runs.cancel(run).ok
    assert insert(former=0) == 0


def test_a_line_begins_anew_once_for_a_running_landing_between_lines_of_its_run(
    engine: Engine,
) -> None:
    run = begin(engine, LOOP)
    plan = claimed(engine)
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=["one"]).ok
    held = claimed(engine)
    line = opened(engine, held)
    other = begin(engine, TWINS)
    opened(engine, claimed(engine), BASE)

    def begin_anew(
        fence: int = 1, own: str = line.id, around: str = run, task_id: str = held.task_id
    ) -> int:
        told: dict[str, Any] = {"fence": fence, "line": own, "around": around}
        return len(keep(engine, "begin_line_anew", task_id=task_id, **told))

    assert begin_anew(task_id=plan.task_id) == 0
    assert begin_anew(2) == begin_anew(own=other) == begin_anew(around=other) == 0
    assert (begin_anew(), begin_anew()) == (1, 0)
    state = opened(engine, held)
    assert (state.base, state.head, state.number) == (A, A, 1)
    assert engine.work.fail(held.task_id, held.token, "a conflict").ok
    with raw(engine.settings.url) as sql:
        sql("DELETE FROM holdfast_commit WHERE kind = 'anew'")
    assert begin_anew() == 0
