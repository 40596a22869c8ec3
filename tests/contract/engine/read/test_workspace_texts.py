"""Steps in a workspace: what workers are given of it, and what is refused at the start of a run."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.model.workflow.declarations import Merge, Workspace
from holdfast.model.workflow.line import NewHead
from tests.contract.engine.read.test_step_texts import begin, give, only, read
from tests.contract.engine.state.test_lines import BASE, A, B, C, D, commit, opened, take

FLOW = """
name: feature
input: {task: string, repo: string, target: {type: string, default: main}, branch: string?}
env: [CACHE]
workspace: {git: "{{ input.repo }}", from: "{{ input.target }}", keep: 1d, copy: [.env],
            setup: [make, "{{ env.CACHE }}", "{{ run.branch }}"]}
agents: {dev: {external: true}, judge: {external: true}}
steps:
  - {id: plan, agent: dev, outputs: {stories: [string]}}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 2
    title: "{{ item }} on {{ run.branch }}"
    steps:
      - {id: implement, agent: dev, prompt: "{{ item }}"}
      - {id: verify, agent: judge, verifies: implement,
         prompt: "{{ subject.commit }} {{ subject.branch }}"}
  - {id: tell, run: [tell], workspace: none}
  - {id: approve, approval: "Merge {{ run.branch }} ({{ steps.plan.commit }})?"}
  - {id: merge, merge: {into: "{{ input.target }}", strategy: squash}}
"""


def test_a_worker_is_given_the_workspace_rendered(engine: Engine) -> None:
    run = begin(engine, FLOW, task="Add SSO", repo="https://h/shop.git")
    branch = f"holdfast/add-sso-{run[-6:]}"
    plan = give(engine, {"stories": ["a"], "commit": "c1", "no_changes": True})
    assert plan.work is not None
    assert plan.work.workspace == Workspace(
        git="https://h/shop.git",
        start="main",
        setup=("make", "{{ env.CACHE }}", branch),
        copy=(".env",),
        keep=86_400,
    )
    assert plan.work.later["workspace.setup.1"] == ("", "env.CACHE", "")
    assert (plan.work.access, plan.work.line, plan.work.merge) == ("edit", None, None)
    implement = give(engine, {"commit": "c2"}).work
    assert implement is not None
    assert (implement.access, implement.line) == ("edit", "build")
    verify = give(engine, {"verdict": "accept", "commit": "c2"}).work
    assert verify is not None
    assert (verify.access, verify.prompt) == ("read", f"c2 {branch}")
    land = give(engine, {"commit": "c2"}).work
    assert land is not None
    assert (land.landing, land.line, land.external) == (True, "build", False)
    assert land.workspace == plan.work.workspace
    tell = give(engine, {}).work
    assert tell is not None
    assert (tell.workspace, tell.access) == (None, None)
    approve = only(engine, run, "approve")
    assert approve.title == f"Merge {branch} (c1)?"
    assert engine.tasks.approve(approve.id).ok
    merge = give(engine, {"commit": "c3"}).work
    assert merge is not None
    assert merge.merge == Merge(into="main", strategy="squash")
    assert merge.workspace is not None
    assert engine.runs.get(run).status == "completed"


JUDGED_LOOP = """
name: judged
workspace: {git: "https://h/shop.git"}
agents: {dev: {external: true}}
steps:
  - {id: plan, agent: dev}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 2
    steps:
      - id: parts
        for_each: "{{ item }}"
        steps: [{id: write, agent: dev}]
      - {id: inside, agent: dev, verifies: parts, prompt: "{{ subject.commit }}"}
  - {id: check, agent: dev, verifies: build,
     prompt: "{{ subject.commit }} {{ subject.branch }} {{ subject.0 }}"}
"""


def test_the_commit_of_a_verified_loop_is_the_head_of_the_line(engine: Engine) -> None:
    run = begin(engine, JUDGED_LOOP)
    (plan,) = engine.work.claim("me", agents=["dev"])
    opened(engine, plan, BASE)
    assert commit(engine, plan, A, stories=[["x", "y"]]).ok
    for sha in (B, C):
        assert commit(engine, take(engine), sha).ok
    inside = take(engine)
    assert inside.work is not None
    assert inside.work.prompt == opened(engine, inside).subject == C
    assert engine.work.complete(inside.task_id, inside.token, {"verdict": "accept"}).ok
    (landing,) = engine.work.claim("me", agents=["default"])
    around = opened(engine, landing).around
    assert around is not None
    new = NewHead(line=around.line, number=around.number, base=around.sha, sha=D)
    assert engine.work.complete(landing.task_id, landing.token, {"commit": D}, commit=new).ok
    check = take(engine)
    branch = f"holdfast/judged-{run[-6:]}"
    assert check.work is not None
    assert check.work.prompt is not None
    assert check.work.prompt.startswith(f"{opened(engine, check).subject} {branch} ")
    assert check.work.prompt.startswith(D)


def test_a_verified_loop_without_items_has_no_commit_on_a_line_that_nobody_opened(
    engine: Engine,
) -> None:
    text = JUDGED_LOOP.replace("dev}\n  - id: build", "dev, workspace: none}\n  - id: build")
    begin(engine, text.replace(" {{ subject.0 }}", ""))
    give(engine, {"stories": []})
    check = take(engine)
    assert check.work is not None
    assert str(check.work.prompt).startswith("null holdfast/judged-")


@pytest.mark.parametrize("wrong", ["steps.build.commit", "subject.verdict"])
def test_a_loop_has_no_output_of_its_own(wrong: str) -> None:
    text = JUDGED_LOOP.replace("{{ subject.0 }}", f"{{{{ {wrong} }}}}")
    with pytest.raises(InvalidDefinition, match="a place for each item"):
        read(text)


@pytest.mark.parametrize("branch", ["a..b", "-x", "a b", "refs/heads/x.lock", ""])
def test_a_run_with_a_branch_that_git_would_refuse_does_not_start(
    engine: Engine, branch: str
) -> None:
    text = FLOW.replace("keep: 1d", 'branch: "{{ input.branch }}"')
    with pytest.raises(InvalidInput, match="cannot be a branch"):
        begin(engine, text, task="x", repo="/work/shop", branch=branch)
    assert not engine.runs.list()
    run = begin(engine, text, task="x", repo="/work/shop", branch="work/x")
    assert only(engine, run, "approve").title.startswith("Merge {{ run.branch }}")
