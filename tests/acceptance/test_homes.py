"""Whose folder it is, as a person meets it: real processes, and a clone of a real repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.terminals import PATIENCE, PROGRAM, environment, holdfast

ANOTHER = 54_321
EVIL = "name: evil\nsteps:\n  - {id: run, run: [touch, %s]}\n"


def of_another(folder: Path, ran: Path) -> Path:
    """A folder whose home has a command queued and a token, remembered by whoever made it."""
    folder.mkdir()
    theirs = {"XDG_STATE_HOME": str(folder.parent / "state-of-another")}
    (folder / "evil.yaml").write_text(EVIL % ran)
    assert holdfast(folder, "run", "evil.yaml", **theirs).returncode == 0
    assert holdfast(folder, "token", **theirs).returncode == 0
    return folder / ".holdfast"


def typed(folder: Path, *arguments: str, prelude: str = "", **more: str) -> tuple[int, str]:
    """What a command that ends by itself says, and how; one that goes on has obeyed."""
    ran = subprocess.run(
        [sys.executable, "-c", prelude + PROGRAM, *arguments],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.stdout == ""
    return ran.returncode, ran.stderr


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has homes already."""
    mine = {"XDG_STATE_HOME": str(tmp_path / "state")}
    (tmp_path / "mine").mkdir()
    assert holdfast(tmp_path / "mine", "init", "--bare", **mine).returncode == 0
    return mine


def test_a_worker_below_a_folder_of_another_user_runs_nothing_of_it(
    tmp_path: Path, state: dict[str, str]
) -> None:
    ran = tmp_path / "RAN"
    home = of_another(tmp_path / "theirs", ran)
    below = tmp_path / "theirs" / "below"
    below.mkdir()
    prelude = ""
    if os.geteuid() == 0:
        for each in (home, *home.rglob("*")):
            os.chown(each, ANOTHER, ANOTHER)
    else:
        # The folders of a user who cannot change their owner are another's once this is another.
        prelude = f"import os; os.geteuid = lambda: {os.geteuid() + 1}; "
    code, said = typed(below, "worker", prelude=prelude, **state)
    assert code == 5
    assert said.count("\n") == 1
    assert f"{home} belongs to" in said
    assert f"`holdfast trust {home}`" in said
    assert not ran.exists()


def test_up_in_a_clone_takes_neither_its_commands_nor_its_token(
    tmp_path: Path, state: dict[str, str]
) -> None:
    ran = tmp_path / "RAN"
    home = of_another(tmp_path / "theirs", ran)
    git = [shutil.which("git") or "git", "-c", "user.name=Eve", "-c", "user.email=e@example.org"]
    made = tmp_path / "theirs"
    for words in (["init", "-q"], ["add", "-f", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, "-C", str(made), *words], check=True, capture_output=True)
    subprocess.run([*git, "clone", "-q", str(made), str(tmp_path / "clone")], check=True)
    assert (tmp_path / "clone" / ".holdfast" / "token").read_text() == (home / "token").read_text()
    code, said = typed(tmp_path / "clone", "up", "--port", "0", **state)
    assert (code, said.count("\n")) == (5, 1)
    assert "clone/.holdfast is tracked by git" in said
    assert not ran.exists()


def test_a_store_that_is_named_does_not_take_the_token_that_a_clone_has_beside_it(
    tmp_path: Path, state: dict[str, str]
) -> None:
    made = tmp_path / "theirs"
    (made / "shop.db.state").mkdir(parents=True)
    (made / "shop.db.state" / "token").write_text(
        "hf_known-to-whoever-can-push-to-the-repository\n"
    )
    git = [shutil.which("git") or "git", "-c", "user.name=Eve", "-c", "user.email=e@example.org"]
    for words in (["init", "-q"], ["add", "-f", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, "-C", str(made), *words], check=True, capture_output=True)
    subprocess.run([*git, "clone", "-q", str(made), str(tmp_path / "clone")], check=True)
    code, said = typed(tmp_path / "clone", "up", "--db", "shop.db", "--port", "0", **state)
    assert code == 5, said
    assert "clone/shop.db.state is tracked by git" in said


def test_the_state_kept_beside_a_store_that_is_named_is_remembered(
    tmp_path: Path, state: dict[str, str]
) -> None:
    for folder in ("store", "copy"):
        (tmp_path / folder).mkdir()
    assert holdfast(tmp_path / "store", "token", "--db", "shop.db", **state).returncode == 0
    beside = tmp_path / "store" / "shop.db.state"
    assert holdfast(tmp_path / "store", "token", "--db", "shop.db", **state).returncode == 0
    shutil.copytree(beside, tmp_path / "copy" / "shop.db.state")
    code, said = typed(tmp_path / "copy", "token", "--db", "shop.db", **state)
    assert code == 5
    assert f"copy/shop.db.state is a copy of {beside}" in said


def test_a_home_from_an_earlier_version_is_told_of_once(tmp_path: Path) -> None:
    home = tmp_path / "project" / ".holdfast"
    home.parent.mkdir()
    nowhere = {"XDG_STATE_HOME": "", "HOME": "/dev/null"}
    assert holdfast(home.parent, "init", "--bare", **nowhere).returncode == 0
    assert not (home / "identities").exists()
    fresh = {"XDG_STATE_HOME": "", "HOME": str(tmp_path / "home")}
    first = holdfast(home.parent, "tasks", **fresh)
    assert first.returncode == 0
    assert first.stderr.splitlines() == [first.stderr.splitlines()[0], "No such tasks."]
    assert first.stderr.startswith(f"{home} is from before Holdfast remembered")
    assert holdfast(home.parent, "tasks", **fresh).stderr == "No such tasks.\n"
    assert (tmp_path / "home" / ".local" / "state" / "holdfast" / "homes").exists()
