"""Comments on files, with a rejection and with a message, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import engine_of
from tests.contract.engine.read.test_step_texts import begin, claim, only
from tests.contract.engine.state.test_approvals_sent_back import COMMENTS, FLOW, built
from tests.contract.server.local_server import Served


def test_a_rejection_goes_back_with_comments(quick_server: Served) -> None:
    engine = engine_of(quick_server.hf)
    run = begin(engine, FLOW)
    approve = built(engine, run, "one")
    body: dict[str, Any] = {"reason": "not yet", "comments": COMMENTS}
    preview = quick_server("operator").post(f"/tasks/{approve}/reject?dry_run=true", json=body)
    assert preview.status_code == 200, preview.text
    assert only(engine, run, "build").generation == 1
    told = quick_server("operator").post(f"/tasks/{approve}/reject", json=body)
    assert (told.status_code, told.json()["task"]["state"]) == (200, "blocked")
    assert claim(engine).feedback == body


def test_a_message_may_be_comments_alone(quick_server: Served) -> None:
    engine = engine_of(quick_server.hf)
    run = begin(engine, FLOW)
    built(engine, run, "one")
    build = only(engine, run, "build").id
    body = {"comments": COMMENTS}
    assert quick_server("operator").post(f"/tasks/{build}/continue", json=body).status_code == 200
    assert claim(engine).feedback == {"reason": None, "comments": COMMENTS}


@pytest.mark.parametrize("comment", [{"file": "a"}, {"file": "a", "text": "b", "line": 0}, "a:1"])
def test_a_comment_that_says_nothing_is_refused(
    quick_server: Served,
    comment: Any,  # noqa: ANN401 - JSON is any value
) -> None:
    engine = engine_of(quick_server.hf)
    approve = built(engine, begin(engine, FLOW), "one")
    told = quick_server("operator").post(f"/tasks/{approve}/reject", json={"comments": [comment]})
    assert (told.status_code, told.json()["code"]) == (422, "invalid_input")
