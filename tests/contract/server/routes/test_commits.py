"""What is shown of commits: of a run its branch and newest commit, of tasks and attempts theirs."""

from __future__ import annotations

from holdfast.cli.render.tree import draw_attempt, draw_head
from holdfast.engine.engine import engine_of
from holdfast.model.workflow.line import Draft
from tests.contract.engine.read.test_step_texts import begin
from tests.contract.engine.state.test_lines import BASE, TWINS, A, B, C, commit, opened, take
from tests.contract.server.local_server import Served


def test_a_run_shows_its_branch_and_its_attempts_show_what_they_committed(
    quick_server: Served,
) -> None:
    engine = engine_of(quick_server.hf)
    run = begin(engine, TWINS)
    left, right = take(engine), take(engine)
    before = quick_server().get(f"/runs/{run}").json()
    assert before.keys().isdisjoint({"branch", "commit"})
    opened(engine, left, BASE)
    draft = Draft(base=BASE, sha=C)
    assert engine.work.release(left.task_id, left.token, draft=draft).ok
    (left,) = engine.work.claim_by_id(left.task_id, "me", agents=["dev"])
    assert commit(engine, left, A).ok
    assert engine.work.keep_aside(right.task_id, right.token, 1, BASE, B).reason is not None
    assert engine.work.fail(right.task_id, right.token, "no", left=Draft(base=BASE, sha=B)).ok
    branch = f"holdfast/twins-{run[-6:]}"
    seen = quick_server().get(f"/runs/{run}").json()
    assert (seen["branch"], seen["commit"]) == (branch, A)
    assert [each.get("commit") for each in seen["tasks"]] == [A, None]
    assert branch in draw_head(seen)
    (listed,) = quick_server().get("/runs").json()["items"]
    assert (listed["branch"], listed["commit"]) == (branch, A)
    assert quick_server().get(f"/tasks/{left.task_id}").json()["commit"] == A
    attempts = quick_server().get(f"/tasks/{left.task_id}/attempts").json()["items"]
    assert [each["commits"] for each in attempts] == [
        [{"kind": "draft", "sha": C, "base": BASE}],
        [{"kind": "head", "sha": A, "base": BASE, "number": 1}],
    ]
    assert [draw_attempt(each).rpartition("  ")[2] for each in attempts] == [
        f"draft {C}",
        f"commit {A[:7]}",
    ]
    (failed,) = quick_server().get(f"/tasks/{right.task_id}/attempts").json()["items"]
    assert draw_attempt(failed).endswith(f"left {B}")
