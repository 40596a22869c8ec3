"""Steps in a workspace: what workers are given of it, and what is refused at the start of a run."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.workflow.declarations import Merge, Workspace
from tests.contract.engine.read.test_step_texts import begin, give, only

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
