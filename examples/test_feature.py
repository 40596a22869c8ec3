"""Tests of the workflow file feature/feature.yaml: no agent is started, and none is paid.

Run them, in this folder:   pip install pytest, then pytest test_feature.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import TaskFailed, Verdict
from holdfast.testing import Harness, Question

FEATURE = Path(__file__).parent / "feature" / "feature.yaml"
STORIES = [{"title": "Login form", "must": "form"}, {"title": "Logout", "must": "button"}]


@pytest.fixture
def agents(harness: Harness) -> Harness:
    """The harness with an answer for every agent; a test gives its own where that matters."""
    harness.stub_agent("planner", {"stories": STORIES})
    harness.stub_agent("developer", lambda item: {"change": f"{item['title']}, done"})
    harness.stub_agent("verifier", Verdict.accept())
    harness.stub_agent("reviewer", {"summary": "ready to merge"})
    return harness


def test_each_story_is_built_and_verified_before_the_review(agents: Harness) -> None:
    run = agents.workflow_file(FEATURE).start(task="Add SSO")
    assert run.result() == {"summary": "ready to merge"}
    agents.assert_order("plan", "implement", "verify", "review")
    agents.assert_ran("implement", times=2)


def test_a_story_that_is_sent_back_is_built_again_with_the_feedback(agents: Harness) -> None:
    prompts: list[str] = []

    def develop(prompt: str) -> dict[str, str]:
        prompts.append(prompt)
        return {"change": "done"}

    agents.stub_agent("developer", develop)
    agents.stub("verify", Verdict.reject("add a form"), Verdict.accept())
    agents.workflow_file(FEATURE).start(task="Add SSO").result()
    assert prompts == [
        "Implement Login form. ",
        "Implement Login form. add a form",
        "Implement Logout. ",
    ]


def test_a_planner_that_asks_waits_for_a_person(agents: Harness) -> None:
    agents.stub("plan", Question("Which identity provider?"), {"stories": STORIES})
    run = agents.workflow_file(FEATURE).start(task="Add SSO")
    agents.run_until_idle()
    agents.assert_not_ran("implement")
    agents.hf.answer(run.task("plan"), "the one we have")
    assert run.result() == {"summary": "ready to merge"}


def test_a_run_fails_where_a_developer_gives_no_change(agents: Harness) -> None:
    agents.stub("implement", "I could not do it.")
    run = agents.workflow_file(FEATURE).start(task="Add SSO")
    with pytest.raises(TaskFailed, match=r"build\.1\.implement"):
        agents.run_to_end(run)
