"""A workflow file from its text to its end, with commands for agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast

FEATURE = """
name: feature
input: {task: string}
agents:
  planner: {command: [sh, FOLDER/plan.sh]}
  developer: {command: [sh, FOLDER/implement.sh, "{{ prompt }}"]}
  reviewer: {command: [sh, FOLDER/review.sh]}
steps:
  - id: plan
    agent: planner
    prompt: "Split into stories: {{ input.task }}"
    outputs: {stories: [{title: string}]}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 2
    steps:
      - {id: implement, agent: developer, prompt: "{{ item.title }}: {{ feedback }}",
         outputs: {made: string}}
      - {id: verify, agent: reviewer, verifies: implement, prompt: "Look at {{ subject.made }}"}
  - {id: test, run: [sh, -c, 'grep -c made "$HOLDFAST_INPUT"; echo "BUILT: yes"'],
     env: {ALL: "{{ steps.build }}"}, outputs: {built: string}}
"""
PLAN = """
grep -q 'JSON Schema' || exit 1
echo 'Here you are:'
echo '{"stories": [{"title": "form"}, {"title": "mail; $(rm -rf /)"}]}'
"""
IMPLEMENT = """
made=$(printf '%s' "$1" | head -n 1)
printf '{"made": "%s"}' "$made" > "$HOLDFAST_OUTPUT"
"""
# It sends back whatever was made without feedback, and forgets to say so properly at first.
REVIEW = """
prompt=$(cat)
case "$prompt" in
*'You have answered this before'*) echo '{"verdict": "reject", "feedback": "with tests"}';;
*'Look at mail'*'with tests'*) echo 'VERDICT: accept';;
*'Look at mail'*) echo 'I do not like it';;
*) echo '{"verdict": "accept"}';;
esac
"""


def test_a_workflow_file_runs_from_its_plan_through_verified_items_to_its_end(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    for name, text in (("plan", PLAN), ("implement", IMPLEMENT), ("review", REVIEW)):
        (tmp_path / f"{name}.sh").write_text(text)
    path = tmp_path / "feature.yaml"
    path.write_text(FEATURE.replace("FOLDER", str(tmp_path)))
    with Holdfast(store_url) as hf:
        feature = hf.workflow_file(path)
        agents = ["default", "planner", "developer", "reviewer"]
        with hf.worker(agents=agents, concurrency=2):
            run = feature.start(task="Reset a password")
            run.result(60)
        outputs = {
            "form": run.task("build.1.implement").result(1),
            "mail": run.task("build.2.implement").result(1),
            "test": run.task("test").result(1),
        }
        assert outputs == {
            "form": {"made": "form:"},
            "mail": {"made": "mail; $(rm -rf /): with tests"},
            "test": {"built": "yes"},
        }
        rounds = hf.tasks.attempts(run.task("build.2.verify").id)
        assert [each.outcome for each in rounds] == ["rejected", "completed"]
        diagnosis = hf.doctor()
        assert diagnosis.ok, str(diagnosis)
