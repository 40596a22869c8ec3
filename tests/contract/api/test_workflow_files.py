"""Workflow files in a program: read, started and scheduled like workflows of Python functions."""

from __future__ import annotations

from pathlib import Path
from typing import Never, cast

import pytest

from holdfast import Holdfast, InvalidInput, InvalidWorkflowFile, WorkflowFile

TEXT = """
name: copy
input: {repo: {type: path, default: .}, others: {type: list, items: path, default: []}}
steps: [{id: look, run: [ls, "{{ input.repo }}"], outputs: {files: [string]}}]
"""


@pytest.fixture
def copy(hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkflowFile:
    """A file in a folder that is not the current one."""
    (tmp_path / "flows").mkdir()
    (tmp_path / "here").mkdir()
    place = tmp_path / "flows" / "copy.yaml"
    place.write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    return hf.workflow_file(place)


def test_a_run_is_started_with_its_paths_made_absolute_and_gives_its_last_output(
    hf: Holdfast, copy: WorkflowFile, tmp_path: Path
) -> None:
    run = copy.start(others=["../x", "/y"], key="k")
    here = str(tmp_path / "here")
    given = {"repo": here, "others": [str(tmp_path / "x"), "/y"]}
    assert hf.runs.get(run.id).input == given
    assert not copy.start(others=["../x", "/y"], key="k").created
    (taken,) = hf.work.claim("me")
    assert taken.work is not None
    assert taken.work.command == ("ls", here)
    assert hf.work.complete(taken.task.id, taken.token, {"files": ["a"]}).ok
    assert run.result(timeout=10) == {"files": ["a"]}


def test_a_start_that_goes_with_the_applications_transaction_goes_with_it(
    hf: Holdfast, copy: WorkflowFile
) -> None:

    def start(*, broken: bool) -> None:
        with hf.transaction() as connection:
            copy.start(connection=connection)
            if broken:
                raise LookupError

    with pytest.raises(LookupError):
        start(broken=True)
    assert hf.runs.list() == []
    start(broken=False)
    assert len(hf.runs.list()) == 1


def test_a_workflow_file_is_scheduled_only_with_an_input_that_fits(copy: WorkflowFile) -> None:
    kept = copy.schedule("nightly", "0 3 * * *", repo="/r")
    assert (kept.workflow, kept.input) == ("copy", {"repo": "/r", "others": []})
    with pytest.raises(InvalidInput, match=r"input\.rpeo"):
        copy.schedule("nightly", "0 3 * * *", rpeo="/r")
    with pytest.raises(InvalidInput, match="inputs go by name"):
        copy.start(cast("Never", "/r"))


def test_a_file_with_mistakes_is_refused_before_the_store_is_opened(tmp_path: Path) -> None:
    place = tmp_path / "bad.yaml"
    place.write_text("name: bad\nsteps: [{id: a, rnu: [x]}]\n", encoding="utf-8")
    with (
        Holdfast(f"sqlite:///{tmp_path}/none.db") as hf,
        pytest.raises(InvalidWorkflowFile, match=f"{place}:2:17: step has no key 'rnu'"),
    ):
        hf.workflow_file(place)
    assert not (tmp_path / "none.db").exists()
