"""Prompts of steps that are done again: they end with what was said, unless their step names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Verdict
from holdfast.testing import Harness

HEADING = "This was said about the work so far:"
FEATURE = """
name: feature
env: [TEAM]
agents:
  developer: {command: [develop]}
  reviewer: {command: [review]}
  senior: {command: [ponder]}
steps:
  - {id: build, agent: developer, prompt: "Build it for {{ env.TEAM }}."}
  - {id: verify, agent: reviewer, verifies: build, prompt: Look at it}
  - {id: test, agent: developer, prompt: Test it, max_attempts: 1,
     on_failure: {goto: build, max_rounds: 1}}
  - {id: ship, agent: developer, prompt: Ship it, max_attempts: 1, on_failure: {escalate: senior}}
"""
NAMED = """
name: named
agents:
  developer: {command: [develop]}
  reviewer: {command: [review]}
steps:
  - {id: build, agent: developer, prompt: Build it, env: {TOLD: "{{ feedback }}"}}
  - {id: verify, agent: reviewer, verifies: build, prompt: Look at it}
"""
# The agent asks once, after it was sent back; the reviewer wants to see the answer in its work.
ASKING = """
name: asking
agents:
  developer: {command: [sh, ./develop.sh]}
  reviewer: {command: [sh, ./review.sh]}
steps:
  - {id: build, agent: developer, prompt: Build it}
  - {id: verify, agent: reviewer, verifies: build, prompt: "Look at {{ subject.text }}"}
"""
DEVELOP = """
prompt=$(cat)
case "$prompt" in
*answered*) printf '%s' "$prompt";;
*colder*) echo '{"question": "How cold?"}';;
*) echo warm;;
esac
"""
REVIEW = """
if grep -q 'How cold'; then echo '{"verdict": "accept"}'
else echo '{"verdict": "reject", "feedback": "colder"}'; fi
"""


class Prompts(list[str]):
    """Answers of stubs, which note the prompts that they are given."""

    def answer(self, answer: Any = "done") -> Any:  # noqa: ANN401 - whatever an agent gives
        def note(prompt: str) -> Any:  # noqa: ANN401 - the same
            self.append(prompt)
            return answer

        return note


def write(folder: Path, text: str) -> Path:
    path = folder / "flow.yaml"
    path.write_text(text)
    return path


def test_a_prompt_that_names_no_feedback_ends_with_that_of_a_verifier_a_goto_and_an_escalation(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", "sales")
    prompts = Prompts()
    with Harness(url=store_url) as harness:
        harness.stub("build", prompts.answer())
        rejecting = Verdict.reject({"missing": ["tests"]})
        harness.stub("verify", rejecting, prompts.answer(Verdict.accept()))
        harness.stub("test", RuntimeError("two fail"), prompts.answer())
        harness.stub("ship", RuntimeError("no way"), prompts.answer())
        harness.run_to_end(harness.workflow_file(write(tmp_path, FEATURE)).start())
    assert [each.split(f"\n\n{HEADING}\n\n") for each in prompts] == [
        ["Build it for sales."],
        ["Build it for sales.", '{"missing":["tests"]}\n'],
        ["Look at it"],
        ["Build it for sales.", "RuntimeError: two fail\n"],
        ["Look at it"],
        ["Test it"],
        ["Ship it", "RuntimeError: no way\n"],
    ]


def test_a_step_that_names_the_feedback_elsewhere_has_it_there_alone(
    tmp_path: Path,
) -> None:
    prompts = Prompts()
    with Harness() as harness:
        harness.stub("build", prompts.answer())
        harness.stub("verify", Verdict.reject("colder"), Verdict.accept())
        harness.run_to_end(harness.workflow_file(write(tmp_path, NAMED)).start())
    assert prompts == ["Build it", "Build it"]


def test_an_answer_to_a_question_does_not_take_the_place_of_the_feedback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("develop", DEVELOP), ("review", REVIEW)):
        (tmp_path / f"{name}.sh").write_text(text)
    with Harness(commands=True) as harness:
        run = harness.workflow_file(write(tmp_path, ASKING)).start()
        harness.run_until_idle()
        assert harness.hf.answer(run.task("build"), "freezing").ok
        harness.run_to_end(run)
        assert run.task("build").result() == {
            "text": f"Build it\n\n{HEADING}\n\ncolder\n\n"
            "You have asked before, and this was answered:\n\nHow cold?\nfreezing"
        }
