"""Agents on the command line: how they are run, whether they can be, and workflows for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.cli.commands.workflow_templates import TEMPLATES, write_template
from holdfast.definition.workflow_file import read_workflow_text
from holdfast.presets.catalogue import PRESETS
from tests.contract.cli.command_line import Typed
from tests.programs_of_agents import AgentPrograms, Run, replay

WORKFLOW = """
name: change
agents:
  planner: {use: claude, access: read, model: opus}
  script: {command: [make, "{{ prompt }}"]}
steps:
  - {id: plan, agent: planner, prompt: Plan it}
  - {id: build, agent: script, prompt: Build it}
"""
SETTINGS = """
agents:
  coder: {use: mine, model: large, env: {COLOUR: none}}
presets:
  mine: {command: [./mine], prompt: [--ask, "{}"], access: {edit: [-w]}, model: [-m, "{}"]}
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentPrograms:
    """Stand-ins in a PATH in which no real agent program is."""
    made = AgentPrograms(tmp_path / "programs", monkeypatch)
    first, *_ = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", f"{first}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return made


def test_agent_show_prints_the_exact_command_of_an_agent_of_a_workflow(
    typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "change.yaml").write_text(WORKFLOW)
    said = typed.ok("agent", "show", "planner", "change.yaml")
    assert said.splitlines()[0] == (
        "claude -p --output-format stream-json --verbose --tools Read Grep Glob --model opus"
    )
    assert "the prompt is its standard input" in said
    assert "Claude Code, access read, account claude" in said
    assert typed.json("agent", "show", "script", "change.yaml")["command"] == ["make", "PROMPT"]
    assert "there are planner, script" in typed.refused(2, "agent", "show", "x", "change.yaml")


def test_agent_show_prints_the_command_of_a_preset_of_the_project(
    typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "holdfast.yaml").write_text(SETTINGS)
    said = typed.ok("agent", "show", "coder")
    assert said.splitlines()[:3] == [
        f"{tmp_path}/mine -w -m large --ask PROMPT",
        "  COLOUR=none",
        "the prompt stands where PROMPT is",
    ]


def test_the_doctor_warns_of_programs_that_are_missing_or_logged_out(
    typed: Typed, tmp_path: Path, install: AgentPrograms
) -> None:
    install("claude", Run(code=1), Run(code=0))
    (tmp_path / "change.yaml").write_text(WORKFLOW)
    (tmp_path / "holdfast.yaml").write_text("agents: {dev: {use: codex}, far: {use: aider}}\n")
    typed.ok("workflow", "add", "change.yaml")
    installs = "npm install -g @openai/codex"
    assert typed.json("doctor")["warnings"] == [
        "agent far uses aider, whose program aider is not here; install it: pip install aider-chat",
        "agent planner uses claude, and nobody is logged in; type: claude auth login",
        f"agent dev uses codex, whose program codex is not here; install it: {installs}",
    ]
    install("codex", replay("codex-ok"))
    install("aider", Run())
    told = typed.json("doctor")
    assert (told["warnings"], told["agents"]) == ([], ["claude", "codex", "aider"])


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_template_is_a_workflow_for_every_preset(template: str, preset: str) -> None:
    text = write_template(template, [preset])
    if preset == "cursor" and template != "review":
        # It has no access edit, and its first agent would have to be given access full.
        return
    assert read_workflow_text(text).name == template


def test_init_writes_a_workflow_for_the_agents_that_are_installed(
    typed: Typed, tmp_path: Path, install: AgentPrograms
) -> None:
    refused = typed.refused(2, "init", "--template", "feature")
    assert "no agent program that Holdfast knows is installed here" in refused
    assert not (tmp_path / "feature.yaml").exists()
    install("codex", Run())
    install("claude", Run())
    assert "agents installed: claude, codex" in typed.ok("init", "--template", "feature")
    written = (tmp_path / "feature.yaml").read_text()
    assert "developer: {use: claude, access: edit" in written
    assert "reviewer: {use: codex, access: read" in written
    assert "feature.yaml is valid" in typed.ok("workflow", "validate", "feature.yaml")
    assert "is none of feature, bugfix" in typed.refused(2, "init", "--template", "merge")
