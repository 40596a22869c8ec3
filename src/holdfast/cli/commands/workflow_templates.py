"""Workflow templates: workflows to begin with, for the agent programs of a machine."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import InvalidInput
from holdfast.presets.catalogue import PRESETS

_HEAD = """\
# {about}
# Check it:  holdfast workflow validate {file}
# See how an agent is run:  holdfast agent show developer {file}
# Run it:  holdfast run {file} -i {first}=… --wait

name: {name}
input:
"""
_AGENTS = """\
  repo: {type: path, default: .}

# Who does the work; access is what each may do: read, edit or full.
agents:
"""
_REPO = 'cwd: "{{ input.repo }}"'
_FEATURE = """\
steps:
  - id: plan
    agent: planner
    prompt: |
      Look at the code in this folder, and split this into small stories, each of which can be built
      and judged alone: {{ input.task }}
    outputs: {stories: [{title: string, acceptance: string}]}

  # One story after another; a story that is sent back is built again with the feedback.
  - id: build
    for_each: "{{ steps.plan.stories }}"
    title: "{{ item.title }}"
    steps:
      - id: implement
        agent: developer
        prompt: |
          Build this in the code of this folder: {{ item.title }}
          It is accepted if: {{ item.acceptance }}
      - id: verify
        agent: reviewer
        verifies: implement
        max_rounds: 3
        on_failure: ask
        prompt: |
          Judge whether the code in this folder does this: {{ item.title }}
          Accept only if: {{ item.acceptance }}

  - {id: approve, approval: "Is it good? {{ input.task }}"}
"""
_BUGFIX = """\
steps:
  - id: find
    agent: planner
    prompt: |
      Find out why this happens, and where in the code of this folder: {{ input.bug }}
    outputs: {cause: string, files: [string], fix: string}

  - id: fix
    agent: developer
    prompt: |
      This is wrong: {{ input.bug }}
      The cause: {{ steps.find.cause }}
      Mend it so: {{ steps.find.fix }}
      Add a test that fails without that.

  - id: verify
    agent: reviewer
    verifies: fix
    max_rounds: 3
    on_failure: ask
    prompt: |
      Judge whether the code in this folder is mended, and has a test for it: {{ input.bug }}

  - {id: approve, approval: "Is it mended? {{ input.bug }}"}
"""
_REVIEW = """\
steps:
  - id: review
    agent: reviewer
    prompt: |
      Review the code in this folder. Look for this above all: {{ input.question }}
      Name only what is wrong, with its file and line.
    outputs: {findings: [{file: string, line: int?, problem: string}], summary: string}

  - {id: approve, approval: "Read the review. {{ steps.review.summary }}"}
"""
# What each is for, its first input, who does it with which access, and its steps.
TEMPLATES = {
    "feature": (
        "A feature, story by story: planned, built, and judged before it counts.",
        "task",
        {"planner": "read", "developer": "edit", "reviewer": "read"},
        _FEATURE,
    ),
    "bugfix": (
        "A bug: found, mended, and judged before it counts.",
        "bug",
        {"planner": "read", "developer": "edit", "reviewer": "read"},
        _BUGFIX,
    ),
    "review": ("A review, which changes nothing.", "question", {"reviewer": "read"}, _REVIEW),
}


def check_template(name: str, installed: Sequence[str]) -> None:
    """Refuse a template that there is not, and any while no agent program is installed."""
    if name not in TEMPLATES:
        raise InvalidInput("template", f"{name!r} is none of {', '.join(TEMPLATES)}")
    if not installed:
        raise InvalidInput(
            "template",
            "no agent program that Holdfast knows is installed here; install one, for example "
            "with: npm install -g @anthropic-ai/claude-code",
        )


def write_template(name: str, installed: Sequence[str]) -> str:
    """A workflow for the installed presets; who judges is another one than who builds, if any."""
    about, first, roles, steps = TEMPLATES[name]
    builder = next((each for each in installed if "edit" in PRESETS[each].access), installed[0])
    judge = next((each for each in installed if each != builder), builder)
    head = _HEAD.format(about=about, file=f"{name}.yaml", name=name, first=first)
    uses = {role: judge if role == "reviewer" else builder for role in roles}
    agents = "".join(
        f"  {role}: {{use: {uses[role]}, access: {access}, {_REPO}}}\n"
        for role, access in roles.items()
    )
    return f"{head}  {first}: string\n{_AGENTS}{agents}\n{steps}"
