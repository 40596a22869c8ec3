"""Workflow files that several tests read."""

from __future__ import annotations

from holdfast.definition.workflow_file import read_workflow_text
from holdfast.errors import InvalidWorkflowFile
from holdfast.model.workflow.graph import Workflow
from holdfast.model.workflow.step import Step, all_steps

FEATURE = """\
name: feature
input:
  task: string
  repo: {type: path, default: .}
concurrency: {key: "repo:{{ input.repo }}", limit: 1}
budget: {usd: 5, usd_per_attempt: 1, attempts: 40}
agents:
  planner:   {command: [plan, --json]}
  developer: {command: [develop, "{{ prompt }}"], timeout: 20m, tags: [gpu]}
  reviewer:  {external: true}
steps:
  - id: plan
    agent: planner
    prompt: "Split into small stories: {{ input.task }}"
    outputs: {stories: [{title: string, acceptance: string}]}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 1
    steps:
      - {id: implement, agent: developer, prompt: "{{ item.title }}"}
      - {id: verify, agent: reviewer, verifies: implement, max_rounds: 3, on_failure: ask,
         prompt: "Accept only if {{ item.acceptance }}; look at {{ subject.commit }}"}
  - {id: test, run: [npm, test], on_failure: {goto: build, max_rounds: 2}}
  - {id: approve, approval: "Merge {{ run.branch }}?"}
"""


def read(text: str, name: str = "flow.yaml") -> Workflow:
    return read_workflow_text(text, name=name)


def steps_of(workflow: Workflow) -> dict[str, Step]:
    return {step.id: step for step in all_steps(workflow.steps)}


def mistakes(text: str, name: str = "flow.yaml") -> list[tuple[int, int, str, str]]:
    """Line, column, message and hint of every mistake."""
    try:
        read(text, name)
    except InvalidWorkflowFile as error:
        return [(each.line, each.column, each.message, each.hint) for each in error.found]
    return []
