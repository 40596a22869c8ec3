"""`run --key`: the run that the key has started before, and the version that it keeps."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from tests.contract.cli.command_line import Said, Typed
from tests.contract.task_states import break_for_good

FILE = "name: nightly\nsteps:\n  - {id: a, run: [echo, one]}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "nightly.yaml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize("key", [["--key", "of today"], ["--key=of today"]])
def test_a_key_of_a_file_that_was_changed_says_how_to_run_what_is_new(
    typed: Typed, file: Path, key: list[str]
) -> None:
    first = typed.json("run", "nightly.yaml", *key)
    again = typed("run", "nightly.yaml", *key)
    assert again.out == f"nightly {first['id']} already exists: running\n"
    assert "keeps the version" not in again.err
    file.write_text(FILE.replace("one", "two"))
    kept = typed("run", "nightly.yaml", *key)
    assert kept.out == again.out
    assert f"{first['id']} keeps the version of nightly that it began with" in kept.err
    (following,) = re.findall(r"^next:  holdfast (.*)$", kept.err, re.MULTILINE)
    new = typed.json(*shlex.split(following))
    assert (new["created"], new["id"] == first["id"]) == (True, False)
    assert new["workflow_version"] != first["workflow_version"]
    assert typed.json(*shlex.split(following))["created"] is False


@pytest.mark.usefixtures("file")
def test_a_key_of_a_run_that_stands_still_says_how_to_go_on_and_not_to_watch_it(
    engine: Engine, typed: Typed
) -> None:
    run_id = typed.json("run", "nightly.yaml", "--key", "k")["id"]
    shows = f"holdfast show {run_id}"
    assert f"watch: {shows} --follow\n" in typed("run", "nightly.yaml", "--key", "k").err

    def type_again() -> Said:
        said = typed("run", "nightly.yaml", "--key", "k")
        waited = typed("run", "nightly.yaml", "--key", "k", "--wait")
        assert waited.err.endswith(said.err), "the same is advised as with --wait"
        assert (said.code, waited.code != 0) == (0, True)
        return said

    typed.ok("cancel", run_id)
    told = type_again()
    assert told.out == f"nightly {run_id} already exists: cancelled\n"
    assert told.err == f"next:  holdfast retry {run_id}   (it goes on)\n"
    typed.ok("retry", run_id)
    break_for_good(engine, engine.runs.tasks(run_id)[0].id)
    told = type_again()
    assert told.out == f"nightly {run_id} already exists: failed\n"
    assert told.err == f"next:  holdfast why {run_id}\n       holdfast retry {run_id}\n"


def test_a_key_of_a_run_that_has_completed_says_how_to_see_it(typed: Typed, file: Path) -> None:
    run_id = typed.json("run", str(file), "--key", "k", "--wait")["id"]
    told = typed("run", str(file), "--key", "k")
    assert told.out == f"nightly {run_id} already exists: completed\n"
    assert told.err == f"next:  holdfast show {run_id}\n"


def test_a_key_of_a_file_that_was_changed_has_both_versions_as_json(
    typed: Typed, file: Path
) -> None:
    first = typed.json("run", "nightly.yaml", "--key", "k")
    assert "asked_version" not in first
    assert "asked_version" not in typed.json("run", "nightly.yaml", "--key", "k")
    file.write_text(FILE.replace("one", "two"))
    other = typed.json("workflow", "validate", "nightly.yaml")["version"]
    told = typed.json("run", "nightly.yaml", "--key", "k")
    assert (told["created"], told["asked_version"]) == (False, other)
    assert told["workflow_version"] == first["workflow_version"]
