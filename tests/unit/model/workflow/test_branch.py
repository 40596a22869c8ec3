"""The name of the branch of a run."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.workflow.branch import LONGEST_BRANCH, find_branch_mistake, name_branch
from holdfast.model.workflow.declarations import Workspace
from holdfast.model.workflow.reference import Unresolved

RUN = "r_01kab3cdefgh7j8k9m2n"


def named(given: object, *, key: str | None = None, branch: str | None = None) -> str:
    run: dict[str, Any] = {"id": RUN, "workflow": "feature", "key": key, "branch": None}
    return name_branch(Workspace(git=".", branch=branch), {"input": given, "run": run})


@pytest.mark.parametrize(
    ("given", "key", "slug"),
    [
        ({"task": "Add SSO"}, None, "add-sso"),
        ({"task": "Add SSO"}, "story-7", "story-7"),
        ({"base": "main", "task": "Add SSO"}, None, "add-sso"),
        ({"task": "Add SSO", "base": "main"}, None, "add-sso"),
        ({"repo": "/home/me/shop", "task": "Füge Größe hinzu!"}, None, "fuge-groe-hinzu"),
        ({"repo": ".", "from": "./x", "url": "ssh://h/x", "n": 3}, None, "feature"),
        ({"task": " "}, "…", "feature"),
        ("Mend the login", None, "mend-the-login"),
        (None, None, "feature"),
        ({"task": "word " * 40}, None, "word-word-word-word-word-word-word-word"),
        ({"task": "w" * 90}, None, "w" * 40),
    ],
)
def test_a_branch_is_named_after_the_run(given: object, key: str | None, slug: str) -> None:
    assert named(given, key=key) == f"holdfast/{slug}-{RUN[-6:]}"
    assert find_branch_mistake(named(given, key=key)) is None


def test_a_workflow_may_name_the_branch() -> None:
    assert named({"story": 12}, branch="work/{{ input.story }}/{{ run.workflow }}") == (
        "work/12/feature"
    )


@pytest.mark.parametrize(
    "name",
    ["", " ", "a b", "a..b", "-a", "/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b",
     "a~1", "a^", "a:b", "a?", "a*", "[a", "a\\b", "a@{1}", "@", "HEAD", "a\nb", "a\x00b",
     "a" * (LONGEST_BRANCH + 1)],
)  # fmt: skip
def test_a_name_that_git_would_refuse_is_no_branch(name: str) -> None:
    assert find_branch_mistake(name) is not None
    with pytest.raises(Unresolved, match="cannot be a branch"):
        named({"name": name}, branch="{{ input.name }}")


@pytest.mark.parametrize("name", ["main", "a/b", "a.b", "a@b", "ä", "x{y}", "release-1.2"])
def test_a_name_that_git_takes_is_a_branch(name: str) -> None:
    assert find_branch_mistake(name) is None
