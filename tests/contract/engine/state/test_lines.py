"""Lines of commits: the head of a line moves with the completion of an attempt, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine import lines
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import Status
from holdfast.model.task import Assignment
from holdfast.model.workflow.line import Draft, Head, LineState, NewHead
from tests.contract.engine.read.test_step_texts import begin, only
from tests.contract.raw_store import raw

BASE, A, B, C, D = ("0" * 40, "a" * 40, "b" * 40, "c" * 40, "d" * 40)
FLOW = """
name: feature
workspace: {git: "https://h/shop.git", keep: 1d}
agents: {dev: {external: true}}
steps:
  - {id: plan, agent: dev, outputs: {stories: [string]}}
  - {id: write, agent: dev}
  - {id: check, agent: dev, verifies: write}
  - {id: tell, agent: dev, workspace: none}
"""
TWINS = """
name: twins
workspace: {git: "https://h/shop.git"}
agents: {dev: {external: true}}
steps: [{id: left, agent: dev, needs: []}, {id: right, agent: dev, needs: []}]
"""
LOOP = """
name: loop
workspace: {git: "https://h/shop.git"}
agents: {dev: {external: true}}
steps:
  - {id: plan, agent: dev}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 2
    steps:
      - {id: write, agent: dev}
      - {id: check, agent: dev, verifies: write}
"""


def take(engine: Engine) -> Assignment:
    (assignment,) = engine.work.claim("worker", agents=["dev"])
    return assignment


def opened(engine: Engine, held: Assignment, base: str | None = None) -> LineState:
    found = engine.work.open_line(held.task_id, held.token, base, "/work/shop", "laptop")
    assert found.answer.ok, found
    assert found.line is not None
    return found.line


def commit(engine: Engine, held: Assignment, sha: str, **output: Any) -> TransitionResult:
    """Complete with a commit made on the newest head of the line."""
    line = opened(engine, held)
    new = NewHead(line=line.id, number=line.number, base=line.head, sha=sha)
    given = {"commit": sha, **output}
    return engine.work.complete(held.task_id, held.token, given, commit=new)


def recorded(engine: Engine) -> list[tuple[Any, ...]]:
    """Kind, number and commit of all that was recorded, the oldest first."""
    with raw(engine.settings.url) as sql:
        rows = sql("SELECT kind, number, sha FROM holdfast_commit ORDER BY number, kind, sha")
    return [(row["kind"], row["number"], row["sha"]) for row in rows]


def test_a_line_begins_at_the_first_base_that_it_is_given(engine: Engine) -> None:
    run = begin(engine, TWINS)
    left, right = take(engine), take(engine)
    unknown = engine.work.open_line(left.task_id, left.token)
    assert unknown.answer.ok
    assert unknown.line is None
    first = opened(engine, left, BASE)
    assert first == LineState(
        id=run,
        run_id=run,
        base=BASE,
        head=BASE,
        number=0,
        branch=f"holdfast/twins-{run[-6:]}",
        repository="/work/shop",
        host="laptop",
    )
    assert opened(engine, right, A) == first


def test_the_head_moves_with_the_completion_and_the_event_tells_of_it(engine: Engine) -> None:
    run = begin(engine, FLOW)
    plan = take(engine)
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=[]).ok
    (done,) = [e for e in engine.tasks.events(plan.task_id) if e.type == "task.done"]
    assert (done.data["commit"], done.data["line"], done.data["number"]) == (A, run, 1)
    write = take(engine)
    line = opened(engine, write)
    assert (line.base, line.head, line.number) == (BASE, A, 1)
    assert commit(engine, write, B).ok
    check = take(engine)
    assert opened(engine, check).subject == B
    assert engine.doctor().ok


def test_the_same_completion_again_is_repeated_and_moves_nothing(engine: Engine) -> None:
    begin(engine, TWINS)
    left = take(engine)
    line = opened(engine, left, BASE)
    new = NewHead(line=line.id, number=0, base=BASE, sha=A)
    assert engine.work.complete(left.task_id, left.token, {"commit": A}, commit=new).ok
    again = engine.work.complete(left.task_id, left.token, {"commit": A}, commit=new)
    assert (again.ok, again.repeated) == (True, True)
    other = engine.work.complete(left.task_id, left.token, {"commit": B}, commit=new)
    assert other.reason is Refusal.RESULT_CONFLICT
    assert recorded(engine) == [("head", 1, A)]


def test_a_commit_on_a_head_that_moved_is_refused_and_told_the_new_head(engine: Engine) -> None:
    begin(engine, TWINS)
    left, right = take(engine), take(engine)
    line = opened(engine, left, BASE)
    new = NewHead(line=line.id, number=0, base=BASE, sha=A)
    assert engine.work.complete(left.task_id, left.token, {}, commit=new).ok
    late = engine.work.complete(
        right.task_id,
        right.token,
        {},
        commit=NewHead(line=line.id, number=0, base=BASE, sha=B),
    )
    assert (late.ok, late.reason, late.status) == (False, Refusal.HEAD_MOVED, "running")
    assert A in late.detail
    assert "number 1" in late.detail
    assert recorded(engine) == [("head", 1, A)]
    assert engine.tasks.get(right.task_id).status is Status.RUNNING
    assert commit(engine, right, C).ok
    assert recorded(engine) == [("head", 1, A), ("head", 2, C)]
    assert engine.doctor().ok


def test_an_attempt_that_lost_its_task_moves_no_head(engine: Engine, clock: ManualClock) -> None:
    begin(engine, TWINS)
    zombie = take(engine)
    opened(engine, zombie, BASE)
    clock.advance(31)
    engine.work.recover()
    ((heir,)) = engine.work.claim_by_id(zombie.task_id, "heir", agents=["dev"])
    line = opened(engine, heir)
    new = NewHead(line=line.id, number=0, base=BASE, sha=A)
    late = engine.work.complete(zombie.task_id, zombie.token, {}, commit=new)
    assert late.reason is Refusal.STALE_TOKEN
    stale = engine.work.open_line(zombie.task_id, zombie.token, A)
    assert (stale.answer.reason, stale.line) == (Refusal.STALE_TOKEN, None)
    assert recorded(engine) == []
    assert commit(engine, heir, B).ok
    assert recorded(engine) == [("head", 1, B)]


def test_after_a_cancel_no_completion_moves_the_head(engine: Engine) -> None:
    run = begin(engine, TWINS)
    left = take(engine)
    line = opened(engine, left, BASE)
    assert engine.runs.cancel(run).ok
    new = NewHead(line=line.id, number=0, base=BASE, sha=A)
    late = engine.work.complete(left.task_id, left.token, {}, commit=new)
    assert late.reason is Refusal.ALREADY_TERMINAL
    assert recorded(engine) == []


def test_an_output_that_does_not_fit_leaves_no_head(engine: Engine) -> None:
    begin(engine, FLOW)
    plan = take(engine)
    opened(engine, plan, BASE)
    refused = commit(engine, plan, A, stories="none")
    assert refused.reason is Refusal.INVALID_OUTPUT
    assert recorded(engine) == []
    assert engine.tasks.get(plan.task_id).failures == 1


@pytest.mark.parametrize("sha", ["", "HEAD", "A" * 40, "a" * 39, "a" * 41, "g" * 40])
def test_a_commit_is_named_by_its_whole_id(engine: Engine, sha: str) -> None:
    begin(engine, TWINS)
    left = take(engine)
    line = opened(engine, left, BASE)
    with pytest.raises(InvalidInput, match="sha"):
        engine.work.complete(
            left.task_id,
            left.token,
            {},
            commit=NewHead(line=line.id, number=0, base=BASE, sha=sha),
        )


def test_a_commit_goes_only_to_the_line_of_its_own_task(engine: Engine) -> None:
    other = begin(engine, TWINS)
    foreign = take(engine)
    opened(engine, foreign, BASE)
    run = begin(engine, FLOW)
    (plan,) = engine.work.claim_by_id(only(engine, run, "plan").id, "me", agents=["dev"])
    opened(engine, plan, BASE)
    for line in (other, "r_00000000000000000000", plan.task_id):
        new = NewHead(line=line, number=0, base=BASE, sha=A)
        said: dict[str, list[str]] = {"stories": []}
        refused = engine.work.complete(plan.task_id, plan.token, said, commit=new)
        assert refused.reason is Refusal.INVALID_TRANSITION
        assert "no line that this task may move" in refused.detail
    assert recorded(engine) == []


def test_a_verifier_gives_its_line_no_commit(engine: Engine) -> None:
    begin(engine, FLOW)
    plan = take(engine)
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=[]).ok
    assert commit(engine, take(engine), B).ok
    check = take(engine)
    refused = commit(engine, check, C, verdict="accept")
    assert refused.reason is Refusal.INVALID_TRANSITION
    assert recorded(engine) == [("head", 1, A), ("head", 2, B)]
    assert engine.work.complete(check.task_id, check.token, {"verdict": "accept"}).ok
    tell = take(engine)
    outside = engine.work.open_line(tell.task_id, tell.token, BASE)
    assert outside.answer.reason is Refusal.INVALID_TRANSITION
    assert "works in no workspace" in outside.answer.detail


def test_the_next_attempt_goes_on_from_a_draft_until_something_fails(engine: Engine) -> None:
    begin(engine, TWINS)
    held = take(engine)
    opened(engine, held, BASE)
    task, draft = held.task_id, Draft(base=BASE, sha=A)

    def again() -> Assignment:
        ((held,)) = engine.work.claim_by_id(task, "me", agents=["dev"])
        return held

    assert engine.work.release(task, held.token, draft=draft).ok
    held = again()
    assert opened(engine, held).draft == draft
    (released,) = [e for e in engine.tasks.events(task) if e.type == "task.released"]
    assert released.data["draft"] == A
    newer = Draft(base=BASE, sha=B)
    assert engine.work.ask(task, held.token, "which?", draft=newer).ok
    assert engine.tasks.answer(task, "this").ok
    held = again()
    assert opened(engine, held).draft == newer
    assert engine.work.release(task, held.token).ok
    held = again()
    assert opened(engine, held).draft == newer
    left = Draft(base=BASE, sha=C)
    assert engine.work.fail(task, held.token, "broken", left=left).ok
    assert recorded(engine) == [("draft", None, A), ("draft", None, B), ("left", None, C)]
    engine.tasks.run_now(task)
    held = again()
    assert opened(engine, held).draft is None
    assert commit(engine, held, D).ok
    assert engine.doctor().ok


def test_a_rejected_step_begins_at_the_head_and_not_at_a_draft(engine: Engine) -> None:
    begin(engine, FLOW)
    plan = take(engine)
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=[]).ok
    write = take(engine)
    assert engine.work.release(write.task_id, write.token, draft=Draft(base=A, sha=B)).ok
    write = take(engine)
    assert commit(engine, write, C).ok
    check = take(engine)
    assert engine.work.complete(check.task_id, check.token, {"verdict": "reject"}).ok
    again = opened(engine, take(engine))
    assert (again.head, again.draft) == (C, None)


def test_what_a_lost_attempt_left_is_kept_aside_once_and_never_a_start(
    engine: Engine, clock: ManualClock
) -> None:
    begin(engine, TWINS)
    lost = take(engine)
    opened(engine, lost, BASE)
    clock.advance(31)
    engine.work.recover()
    (heir,) = engine.work.claim_by_id(lost.task_id, "heir", agents=["dev"])
    kept = engine.work.keep_aside(heir.task_id, heir.token, lost.attempt, BASE, A)
    assert (kept.ok, kept.repeated) == (True, False)
    again = engine.work.keep_aside(heir.task_id, heir.token, lost.attempt, BASE, B)
    assert (again.ok, again.repeated) == (True, True)
    assert recorded(engine) == [("left", None, A)]
    assert opened(engine, heir).draft is None
    own = engine.work.keep_aside(heir.task_id, heir.token, heir.attempt, BASE, A)
    assert own.reason is Refusal.INVALID_TRANSITION
    stale = engine.work.keep_aside(lost.task_id, lost.token, 1, BASE, A)
    assert stale.reason is Refusal.STALE_TOKEN


def test_the_line_of_an_item_begins_at_the_head_around_it(engine: Engine) -> None:
    run = begin(engine, LOOP)
    plan = take(engine)
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=["one", "two", "three"]).ok
    one, two = take(engine), take(engine)
    first, second = opened(engine, one), opened(engine, two)
    assert first.around == second.around == Head(line=run, number=1, sha=A)
    assert len({run, first.id, second.id}) == 3
    assert (first.base, first.head, first.number) == (A, A, 0)
    assert (first.branch, first.repository) == (f"holdfast/loop-{run[-6:]}", "/work/shop")
    assert commit(engine, one, B).ok
    assert commit(engine, two, C).ok
    assert recorded(engine) == [("head", 1, A), ("head", 1, B), ("head", 1, C)]
    around = NewHead(line=run, number=1, base=A, sha=D)
    check = take(engine)
    assert opened(engine, check).subject == (B if opened(engine, check).id == first.id else C)
    refused = engine.work.complete(check.task_id, check.token, {}, commit=around)
    assert refused.reason is Refusal.INVALID_TRANSITION
    assert engine.doctor().ok


def test_an_item_that_is_first_to_open_begins_the_line_of_the_run_too(engine: Engine) -> None:
    run = begin(engine, LOOP)
    plan = take(engine)
    assert engine.work.complete(plan.task_id, plan.token, {"stories": ["one"]}).ok
    one = take(engine)
    unknown = engine.work.open_line(one.task_id, one.token)
    assert unknown.answer.ok
    assert unknown.line is None
    line = opened(engine, one, BASE)
    assert (line.base, line.around) == (BASE, Head(line=run, number=0, sha=BASE))


def test_a_host_is_told_the_lines_whose_branches_it_moves(
    engine: Engine, clock: ManualClock
) -> None:
    run = begin(engine, FLOW)
    plan = take(engine)
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=[]).ok
    (line,) = engine.work.lines_of_host("laptop")
    assert (line.run_id, line.head, line.number, line.keep) == (run, A, 1, 86_400)
    assert (line.branch, line.ended_at) == (f"holdfast/feature-{run[-6:]}", None)
    assert engine.work.lines_of_host("desktop") == []
    assert engine.runs.cancel(run).ok
    clock.advance(86_000)
    assert engine.work.lines_of_host("laptop")[0].ended_at is not None
    clock.advance(401)
    assert engine.work.lines_of_host("laptop") == []


def test_no_line_of_a_host_is_left_out_however_many_there_are(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LINES_AT_ONCE", 2)
    for _ in range(5):
        begin(engine, TWINS)
    runs = set()
    for _ in range(5):
        task = take(engine)
        opened(engine, task, BASE)
        runs.add(task.run_id)
    assert {each.run_id for each in engine.work.lines_of_host("laptop")} == runs


def test_the_commits_of_a_run_go_with_it(engine: Engine, clock: ManualClock) -> None:
    run = begin(engine, TWINS)
    left = take(engine)
    opened(engine, left, BASE)
    assert commit(engine, left, A).ok
    assert engine.runs.cancel(run).ok
    clock.advance(10)
    for _ in engine.removals.remove_all("runs", engine.now()):
        pass
    with raw(engine.settings.url) as sql:
        for table in ("holdfast_line", "holdfast_commit", "holdfast_run"):
            assert sql(f"SELECT * FROM {table}") == []  # noqa: S608 - a name of this test
