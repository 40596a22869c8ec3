"""Agents from an empty folder to an answer, with stand-ins for their programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.acceptance.terminals import holdfast
from tests.programs_of_agents import AgentPrograms, Run, replay


def test_the_workflow_of_a_template_runs_with_what_the_agents_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = AgentPrograms(tmp_path / "programs", monkeypatch)
    path = os.environ["PATH"]
    found = {"file": "a.py", "problem": "it loops"}
    answer = json.dumps({"findings": [found], "summary": "One."}).replace('"', '\\"')
    stream = replay("codex-ok").stream.replace(b"Done: wrote hello.txt.", answer.encode())
    codex = install("codex", Run(stream=stream))
    project = tmp_path / "project"
    project.mkdir()
    made = holdfast(project, "init", "--template", "review", PATH=path)
    assert "review.yaml: a workflow for the agents here" in made.stdout, made.stderr
    asked = ("run", "review.yaml", "-i", "question=Does it end?", "--wait")
    ran = holdfast(project, *asked, PATH=path)
    assert ran.returncode == 4, ran.stdout + ran.stderr
    assert "Read the review. One." in ran.stdout + ran.stderr
    assert "Does it end?" in codex.input()
    assert codex.arguments()[-3:] == ["-s", "read-only", "-"]
    assert json.loads(holdfast(project, "runs", "--json", PATH=path).stdout)["items"]
