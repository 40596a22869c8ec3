"""Workspaces and merges of a workflow file: what is read of them, and what is refused."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml

from holdfast.definition.diagram import draw_workflow
from holdfast.definition.schema import make_schema
from holdfast.model.workflow.declarations import Merge, Workspace
from holdfast.model.workflow.graph import read_workflow
from holdfast.model.workflow.step import OnFailure, output_steps
from tests.unit.definition.workflow_files import FEATURE, mistakes, read, steps_of

FILE = """
name: feature
input: {task: string, repo: {type: path, default: .}, target: {type: string, default: main}}
env: [CACHE]
workspace:
  git: "{{ input.repo }}"
  from: "{{ input.target }}"
  branch: "work/{{ run.key }}"
  setup: [npm, ci, --cache, "{{ env.CACHE }}"]
  copy: [.env, config/**/*.local]
  keep: 2d
  filters: true
  max_file: 1MB
agents:
  writer: {command: [write], cwd: docs}
  checker: {command: [check]}
steps:
  - {id: plan, agent: writer, outputs: {stories: [string]}}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 3
    steps:
      - {id: implement, agent: writer, outputs: {told: string}, cwd: "{{ item }}"}
      - {id: verify, agent: checker, verifies: implement,
         prompt: "{{ subject.commit }} of {{ subject.branch }}, {{ steps.implement.no_changes }}"}
  - {id: look, run: [look], workspace: read}
  - {id: notify, run: [notify], workspace: none, cwd: /srv}
  - {id: post, http: "https://h/"}
  - {id: approve, approval: "Merge {{ run.branch }}?"}
  - {id: merge, merge: {into: "{{ input.target }}", strategy: squash}, on_failure: ask}
"""
TOP = "name: w\nworkspace: {git: .}\nsteps:\n"
BODY = "steps: [{id: a, run: [x]}]"
BARE = "name: w\nsteps:\n"


def test_a_workspace_is_read_with_all_it_says() -> None:
    workflow = read(FILE)
    assert workflow.workspace == Workspace(
        git="{{ input.repo }}",
        start="{{ input.target }}",
        branch="work/{{ run.key }}",
        setup=("npm", "ci", "--cache", "{{ env.CACHE }}"),
        copy=(".env", "config/**/*.local"),
        keep=172_800,
        filters=True,
        max_file=1_000_000,
    )
    assert read_workflow(workflow.definition) == workflow
    jsonschema.Draft202012Validator(make_schema()).validate(yaml.safe_load(FILE))


def test_a_step_edits_a_verifier_reads_and_what_runs_elsewhere_has_no_workspace() -> None:
    steps = steps_of(read(FILE))
    found = {name: each.work.access for name, each in steps.items() if each.work is not None}
    assert found == {
        "plan": "edit",
        "implement": "edit",
        "verify": "read",
        "build:land": None,
        "look": "read",
        "notify": None,
        "post": None,
        "approve": None,
        "merge": None,
    }
    merge = steps["merge"].work
    assert merge is not None
    assert (merge.merge, merge.in_workspace, merge.external) == (
        Merge(into="{{ input.target }}", strategy="squash"),
        True,
        False,
    )
    assert "merge into {{ input.target }}, squash · on failure ask" in draw_workflow(read(FILE))[-1]


@pytest.mark.parametrize(
    ("said", "merge", "drawn"),
    [
        ("main", Merge(into="main"), "merge into main"),
        ("leave", Merge(strategy="leave"), "leaves the branch"),
        ("{strategy: leave}", Merge(strategy="leave"), "leaves the branch"),
        ("{into: leave}", Merge(into="leave"), "merge into leave"),
        ("{into: x, strategy: rebase}", Merge(into="x", strategy="rebase"), "merge into x, rebase"),
    ],
)
def test_a_merge_may_be_written_short(said: str, merge: Merge, drawn: str) -> None:
    workflow = read(f"{TOP}  - {{id: a, run: [x]}}\n  - {{id: m, merge: {said}}}\n")
    step = steps_of(workflow)["m"]
    assert step.work is not None
    assert step.work.merge == merge
    assert draw_workflow(workflow)[-1].endswith(f"m  {drawn}")
    assert read_workflow(workflow.definition) == workflow


def test_the_repository_alone_is_a_workspace() -> None:
    workflow = read("name: w\nworkspace: .\nsteps: [{id: a, run: [x]}]\n")
    assert workflow.workspace == Workspace(git=".")


def test_a_file_without_a_workspace_has_the_version_it_always_had() -> None:
    described = json.loads(read(FEATURE).definition)
    assert "workspace" not in described["declared"]
    assert not any(
        {"access", "landing", "merge"} & step["work"].keys()
        for step in described["steps"]
        if "work" in step
    )


def test_a_step_that_is_handed_over_works_in_the_workspace_too() -> None:
    text = (
        "name: w\nworkspace: {git: .}\nagents: {a: {command: [a]}, b: {command: [b]}}\n"
        "steps: [{id: x, agent: a, on_failure: {escalate: b}}]\n"
    )
    other = steps_of(read(text))["x"].handed_over
    assert other is not None
    assert other.work is not None
    assert other.work.access == "edit"


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    [
        (f"{BARE}  - {{id: m, merge: ¦main}}", "its workflow has no workspace", "{git: .}"),
        (f"{BARE}  - {{id: a, run: [x], workspace: ¦read}}", "its workflow has none", "{git: .}"),
        (f"{TOP}  - {{id: a, run: [x], workspace: ¦raed}}", "must be one of edit, read", "'read'"),
        (f"{TOP}  - {{id: a, run: [x], ¦worktree: read}}", "no key 'worktree'", "'workspace'"),
        (f"{TOP}  - {{id: m, merge: ¦{{strategy: squash}}}}", "names no branch", "{into: main}"),
        (f"{TOP}  - {{id: m, merge: {{into: x, strategy: ¦octopus}}}}", "must be one of merge", ""),
        (f"{TOP}  - {{id: m, merge: {{¦target: x, into: y}}}}", "no key 'target'", "'into'"),
        (f"{TOP}  - {{id: m, run: [x], ¦merge: x}}", "a step has one of 'run' and 'merge'", ""),
        (f"{TOP}  - {{id: m, merge: x, ¦outputs: {{a: string}}}}", "a merge has no 'outputs'", ""),
        (f"{TOP}  - {{id: m, merge: x, ¦workspace: read}}", "a merge has no 'workspace'", ""),
        (
            f"{TOP}  - {{id: a, run: [x]}}\n  - {{id: v, run: [x], verifies: a, workspace: ¦edit}}",
            "judges, so nothing it leaves is kept",
            "write workspace: read",
        ),
        (
            f"{TOP}  - {{id: a, run: [x]}}\n  - {{id: v, merge: ¦x, verifies: a}}",
            "merges, and cannot judge a step as well",
            "",
        ),
        (
            f"{TOP}  - {{id: a, http: 'https://h', ¦workspace: edit}}",
            "a request works in no workspace",
            "write none",
        ),
        (
            f"{TOP}  - {{id: a, approval: ok, ¦workspace: edit}}",
            "an approval has no 'workspace'",
            "",
        ),
        (f"{TOP}  - {{id: a, run: [x], cwd: ¦/srv}}", "leads out of it", "workspace: none"),
        (f"{TOP}  - {{id: a, run: [x], cwd: ¦docs/../..}}", "leads out of it", "workspace: none"),
        (
            (
                f"{TOP}  - {{id: l, for_each: input.l, parallel: 2, steps: [{{id: a, run: [x]}}, "
                "{id: b, run: [x], needs: ¦[]}]}"
            ),
            "the items of this loop begin with one step",
            "let it need 'a'",
        ),
        (
            "name: w\n¦worktree: .\nsteps: [{id: a, run: [x]}]",
            "no key 'worktree'",
            "did you mean 'workspace'?",
        ),
        (
            "name: w\nworkspace: {git: ., ¦install: [x]}\nsteps: [{id: a, run: [x]}]",
            "workspace has no key 'install'",
            "did you mean 'setup'?",
        ),
        (
            "name: w\nworkspace: ¦{keep: 1d}\nsteps: [{id: a, run: [x], workspace: read}]",
            "workspace has no 'git'",
            "",
        ),
        (
            "name: w\nworkspace: {git: ., max_file: ¦big}\nsteps: [{id: a, run: [x]}]",
            "is not a size",
            "",
        ),
        (
            "name: w\nworkspace: {git: ., copy: [a, ¦../b]}\nsteps: [{id: a, run: [x]}]",
            "leads out of the repository",
            "copy: [.env]",
        ),
        (
            (
                "name: w\nworkspace: {git: ., branch: 'x/{{ ¦run.branch }}'}\n"
                "steps: [{id: a, run: [x]}]"
            ),
            "cannot be named after itself",
            "",
        ),
        (
            "name: w\nworkspace: {git: '{{ ¦steps.a.where }}'}\nsteps: [{id: a, run: [x]}]",
            "steps is not known there",
            "",
        ),
        (
            (
                "name: w\ninput: {repo: path}\nworkspace: {git: '{{ ¦input.repp }}'}\n"
                "steps: [{id: a, run: [x]}]"
            ),
            "there is no 'repp'",
            "did you mean 'repo'?",
        ),
        (
            (
                f"{TOP}  - {{id: a, run: [x], outputs: {{made: string}}}}\n"
                "  - {id: b, run: [x, '{{ ¦steps.a.commti }}']}"
            ),
            "there is no 'commti'",
            "",
        ),
        (
            (
                f"{BARE}  - {{id: a, run: [x], outputs: {{made: string}}}}\n"
                "  - {id: b, run: [x, '{{ ¦steps.a.commit }}']}"
            ),
            "there is no 'commit'",
            "",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(marked: str, message: str, hint: str) -> None:
    before = marked.partition("¦")[0]
    told = mistakes(f"{marked}\n".replace("¦", ""))
    near = [each for each in told if message in each[2]]
    assert near, told
    assert near[0][:2] == (before.count("\n") + 1, len(before) - before.rfind("\n")), near
    assert hint in near[0][3], near


def test_a_loop_whose_items_run_in_parallel_ends_each_with_a_landing() -> None:
    loop = steps_of(read(FILE))["build"]
    landing = loop.steps[-1]
    assert (landing.id, landing.needs) == ("build:land", ("verify",))
    assert landing.on_failure == OnFailure(action="goto", step="implement", max_rounds=3)
    assert output_steps(loop.steps) == {"implement"}
    (drawn,) = [line for line in draw_workflow(read(FILE)) if "build:land" in line]
    assert "merges the commits of its item, in the order of the items" in drawn


@pytest.mark.parametrize(
    ("loop", "landings"),
    [
        ("parallel: 1, steps: [{id: a, run: [x]}]", 0),
        ("parallel: 2, steps: [{id: a, run: [x]}]", 1),
        ("parallel: 2, steps: [{id: a, run: [x], workspace: read}]", 0),
        ("parallel: 2, steps: [{id: a, http: 'https://h'}]", 0),
        ("parallel: 2, steps: [{id: n, for_each: item, steps: [{id: a, run: [x]}]}]", 1),
        (
            f"parallel: 2, steps: [{{id: n, for_each: item, parallel: 3, {BODY}}}]",
            2,
        ),
    ],
)
def test_items_land_where_they_run_in_parallel_and_edit(loop: str, landings: int) -> None:
    steps = f"steps: [{{id: l, for_each: input.l, {loop}}}]\n"
    text = f"name: w\ninput: {{l: [[any]]}}\nworkspace: .\n{steps}"
    assert sum(step.lands for step in steps_of(read(text)).values()) == landings
    without = text.replace("workspace: .\n", "").replace(", workspace: read", "")
    assert not any(step.lands for step in steps_of(read(without)).values())


def test_a_workspace_that_cannot_be_read_is_one_mistake() -> None:
    text = "name: w\nworkspace: {keep: 1d}\nsteps: [{id: a, run: [x], workspace: read}]\n"
    assert len(mistakes(text)) == 1


def test_what_holdfast_records_of_a_commit_is_known_beside_declared_outputs() -> None:
    text = (
        f"{TOP}  - {{id: a, run: [x], outputs: {{made: string}}}}\n"
        "  - {id: b, run: [x, '{{ steps.a.commit }} {{ steps.a.no_changes }}']}\n"
    )
    assert mistakes(text) == []
