"""The names of a line, which a server gives: folders and references are named by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.model.workflow.line import Draft, Head, LineState
from holdfast.worker.attempt.execution import StepFailed
from holdfast.worker.workspaces.attempt_workspace import choose_start, refuse_odd_names

SHA, OTHER = "a" * 40, "b" * 40
LINE = LineState(
    id="t_1", run_id="r_1", base=SHA, head=SHA, number=0, branch="x", repository="/r", host=None
)


def test_ids_and_hashes_are_taken() -> None:
    around = Head(line="r_1", number=2, sha=OTHER)
    refuse_odd_names(replace(LINE, draft=Draft(base=SHA, sha=OTHER), subject=OTHER, around=around))


@pytest.mark.parametrize(
    "odd",
    [
        replace(LINE, id="../../t_1"),
        replace(LINE, run_id="r_1/x"),
        replace(LINE, base="--all"),
        replace(LINE, head="main"),
        replace(LINE, subject="-x"),
        replace(LINE, draft=Draft(base=SHA, sha="HEAD")),
        replace(LINE, around=Head(line="..", number=0, sha=SHA)),
        replace(LINE, around=Head(line="r_1", number=0, sha="x")),
    ],
)
def test_other_names_fail_the_step_before_anything_is_made(odd: LineState) -> None:
    with pytest.raises(StepFailed, match="odd names"):
        refuse_odd_names(odd)


def test_an_attempt_begins_at_its_draft_or_its_subject_or_the_head() -> None:
    assert choose_start(LINE) == (SHA, SHA)
    judged = replace(LINE, subject=OTHER)
    assert choose_start(judged) == (OTHER, OTHER)
    assert choose_start(replace(judged, draft=Draft(base=SHA, sha="c" * 40))) == (SHA, "c" * 40)
