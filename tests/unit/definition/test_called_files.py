"""Steps of a file that call other workflows: found beside it, and checked with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.definition.workflow_file import read_workflow_file, read_workflow_text
from holdfast.errors import InvalidWorkflowFile
from holdfast.model.workflow.graph import Workflow

DEPLOY = """\
name: deploy
input: {target: string, count: {type: integer, default: 1}}
steps:
  - {id: push, run: [echo, "{{ input.target }}"]}
"""
CALL = """\
name: release
steps:
  - {id: build, run: [make]}
  - {id: deploy, workflow: deploy, input: %s}
"""


def read(folder: Path, **files: str) -> Workflow:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return read_workflow_file(folder / "release.yaml")


def mistakes(folder: Path, **files: str) -> list[str]:
    with pytest.raises(InvalidWorkflowFile) as refused:
        read(folder, **files)
    return [f"{each.line}:{each.column} {each.message}" for each in refused.value.found]


def test_a_step_calls_the_version_of_the_file_beside_it(tmp_path: Path) -> None:
    release = read(tmp_path, deploy=DEPLOY, release=CALL % "{target: live}")
    (deploy,) = release.called
    work = release.steps[1].work
    assert work is not None
    assert (work.workflow, work.version, work.input) == (
        "deploy",
        deploy.version,
        {"target": "live"},
    )
    assert release.definitions == {("deploy", deploy.version, deploy.definition)}
    assert release.called_by_name == frozenset()


def test_a_workflow_without_a_file_beside_its_caller_is_called_by_its_name(tmp_path: Path) -> None:
    release = read(tmp_path, release=CALL % "{target: live}")
    assert not release.called
    assert release.called_by_name == {"deploy"}
    assert read_workflow_text(CALL % "{}").called_by_name == {"deploy"}


def test_another_file_of_a_called_workflow_makes_another_version(tmp_path: Path) -> None:
    first = read(tmp_path, deploy=DEPLOY, release=CALL % "{target: live}")
    second = read(tmp_path, deploy=DEPLOY.replace("push", "send"))
    assert first.version != second.version


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{}", "4:43 step 'deploy': input: deploy wants 'target', which is not given"),
        ("[live]", "4:43 step 'deploy': input: must be a mapping, as deploy is started with"),
        ("{target: live, town: Ulm}", "4:58 step 'deploy': input: deploy takes no 'town'"),
        ("{target: 7}", "4:52 step 'deploy': input.target must be text, not a whole number"),
        (
            '{target: "{{ steps.bild }}"}',
            "4:56 step 'deploy': input: 'bild' is no step it can see",
        ),
    ],
)
def test_the_input_of_a_known_workflow_is_checked_where_it_stands(
    tmp_path: Path, given: str, told: str
) -> None:
    assert mistakes(tmp_path, deploy=DEPLOY, release=CALL % given) == [told]


@pytest.mark.parametrize("given", ['"{{ steps.build }}"', '{target: "to {{ steps.build }}"}'])
def test_an_input_made_from_variables_is_left_to_the_start(tmp_path: Path, given: str) -> None:
    read(tmp_path, deploy=DEPLOY, release=CALL % given)


def test_workflows_in_a_circle_are_refused_with_the_way_around(tmp_path: Path) -> None:
    back = "name: deploy\nsteps:\n  - {id: again, workflow: release}\n"
    (told,) = mistakes(tmp_path, deploy=back, release=CALL % "{}")
    assert told.startswith("4:28 deploy.yaml has mistakes, the first in line 3: ")
    assert "in a circle: release → deploy → release" in told
    own = "name: release\nsteps:\n  - {id: again, workflow: release}\n"
    assert "circle: release → release" in mistakes(tmp_path, release=own)[0]


def test_a_file_that_holds_another_workflow_is_not_called(tmp_path: Path) -> None:
    other = DEPLOY.replace("name: deploy", "name: other")
    (told,) = mistakes(tmp_path, deploy=other, release=CALL % "{target: live}")
    assert told == "4:28 deploy.yaml holds the workflow 'other', not 'deploy'"


def test_files_call_each_other_only_so_deep_and_each_is_read_once(tmp_path: Path) -> None:
    for number in range(9):
        text = f"name: w{number}\nsteps:\n"
        text += "".join(f"  - {{id: s{n}, workflow: w{number + 1}}}\n" for n in range(3))
        (tmp_path / f"w{number}.yaml").write_text(text)
    (tmp_path / "w9.yaml").write_text("name: w9\nsteps: [{id: end, run: [true]}]\n")
    assert len(read_workflow_file(tmp_path / "w1.yaml").definitions) == 8
    with pytest.raises(InvalidWorkflowFile, match="at most 8 deep"):
        read_workflow_file(tmp_path / "w0.yaml")


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("{id: s, workflow: w, run: [x]}", "a step has one of 'run' and 'workflow'"),
        (
            "{id: s, workflow: w, max_attempts: 2}",
            "a step that calls a workflow has no 'max_attempts'",
        ),
        ("{id: s, run: [x], input: {}}", "a step that does work has no 'input'"),
        ("{id: s, workflow: ../w}", "'../w' is no name"),
        (
            "{id: a, run: [x]}, {id: s, workflow: w, verifies: a}",
            "a step that calls a workflow has no 'verifies'",
        ),
    ],
)
def test_a_setting_that_a_call_cannot_have_is_refused(step: str, told: str) -> None:
    with pytest.raises(InvalidWorkflowFile) as refused:
        read_workflow_text(f"name: w\nsteps: [{step}]\n")
    assert told in str(refused.value)
