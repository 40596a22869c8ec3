"""A step of a file that is handed to another agent: what is read of it, and what is refused."""

from __future__ import annotations

import jsonschema
import pytest
import yaml

from holdfast.definition.diagram import draw_workflow
from holdfast.definition.schema import make_schema
from holdfast.errors import InvalidWorkflowFile
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import read_workflow
from tests.unit.definition.workflow_files import read, steps_of

FILE = """
name: feature
agents:
  junior: {command: [junior, "{{ prompt }}"], tags: [git]}
  senior: {command: [senior], timeout: 2h, max_attempts: 1, env: {LEVEL: high}}
steps:
  - id: build
    agent: junior
    prompt: "Build it. {{ feedback }}"
    max_lost: 2
    on_failure: {escalate: senior, on_failure: ask}
  - {id: ship, run: [ship]}
"""


def test_the_other_agent_has_its_own_command_limits_and_tags() -> None:
    workflow = read(FILE)
    build = steps_of(workflow)["build"]
    assert (build.agent, build.tags, build.on_failure.action) == ("junior", ("git",), "escalate")
    other = build.handed_over
    assert other is not None
    assert (other.agent, other.tags, other.timeout) == ("senior", (), 7_200)
    assert other.retry == RetryPolicy(max_attempts=1, max_lost=2)
    assert other.on_failure.action == "ask"
    assert other.work == StepWork(
        prompt="Build it. {{ feedback }}",
        command=("senior",),
        env={"LEVEL": "high"},
        idle_timeout=600,
    )
    assert read_workflow(workflow.definition) == workflow
    assert draw_workflow(workflow)[1] == "├─ build  junior · on failure to senior, then ask"
    jsonschema.Draft202012Validator(make_schema()).validate(yaml.safe_load(FILE))


@pytest.mark.parametrize(
    ("failing", "told", "hint"),
    [
        ("{escalate: ¦senoir}", "agent 'senoir' is not one of the agents", "mean 'senior'?"),
        ("{escalate: nobody}", "agent 'nobody' is not one of the agents", "external: true"),
        ("¦{escalate: junior}", "which is its own agent; name another", ""),
        ("{escalate: senior, on_failure: ¦goto}", "must be one of fail, skip, ask", ""),
        ("{escalate: senior, ¦max_rounds: 2}", "escalation has no key 'max_rounds'", ""),
        ("{escalate: ¦[senior]}", "escalate: must be text, not a list", ""),
    ],
)
def test_a_mistake_is_told_with_its_place(failing: str, told: str, hint: str) -> None:
    text = FILE.replace("{escalate: senior, on_failure: ask}", failing)
    with pytest.raises(InvalidWorkflowFile) as refused:
        read(text.replace("¦", ""))
    (mistake,) = refused.value.found
    assert told in mistake.message
    assert hint in mistake.hint
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "escalate" in each)
    assert mistake.line == line
    if "¦" in failing:
        assert mistake.column == text.splitlines()[line - 1].index("¦") + 1


def test_only_a_step_with_an_agent_and_no_verifier_escalates() -> None:
    text = FILE.replace("run: [ship]", "run: [ship], on_failure: {escalate: senior}")
    with pytest.raises(InvalidWorkflowFile, match="only a step with an agent can be handed"):
        read(text)
    judge = "agent: junior, verifies: build, on_failure: {escalate: senior}"
    with pytest.raises(InvalidWorkflowFile, match="is a verifier; say it of the step"):
        read(FILE.replace("run: [ship]", judge))
    bad = FILE.replace("command: [senior]", 'command: [senior, "{{ imput.x }}"]')
    with pytest.raises(InvalidWorkflowFile, match="begins with none of"):
        read(bad)
