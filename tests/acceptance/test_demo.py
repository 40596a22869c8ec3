"""The demo, as `make demo` and `holdfast demo` run it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from holdfast.worker.steps.process_keeper import find_start
from tests.acceptance.terminals import ROOT, holdfast, terminal
from tests.race.racers import eventually


def workers_of(folder: Path) -> set[int]:
    logs = [log.read_text() for log in folder.glob(".holdfast/worker-*.log")]
    return {int(each) for log in logs for each in re.findall(r"\(process (\d+)", log)}


def alive(folder: Path) -> list[int]:
    """The workers that a demo has started, and the commands of theirs, that still run."""
    workers = workers_of(folder)
    assert workers
    records = [json.loads(each.read_text()) for each in folder.glob(".holdfast/processes/*")]
    commands = {each["command"] for each in records if each["command"]}
    return [pid for pid in workers | commands if find_start(pid)]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [shutil.which("git") or "git", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_the_demo_kills_a_worker_and_merges_what_the_others_built(tmp_path: Path) -> None:
    began = time.monotonic()
    # A home that the environment names does not take the place of that of the demo.
    home = str(tmp_path / "home")
    shown = holdfast(tmp_path, "demo", TMPDIR=str(tmp_path), HOLDFAST_HOME=home)
    assert time.monotonic() - began < 60
    assert shown.returncode == 0, shown.stdout + shown.stderr
    (folder,) = tmp_path.glob("holdfast-demo-*")
    assert "build.1.verify  rejected  pages/login.html has no test" in shown.stdout
    killed = re.search(r"kill -9 \d+: (worker-\d) dies in the middle of (\S+)\.", shown.stdout)
    assert killed is not None
    (other,) = {"worker-1", "worker-2"} - {killed[1]}
    assert f"  {killed[2]}  attempt 1 by {killed[1]}: lost\n" in shown.stdout
    assert f"  {killed[2]}  attempt 2 by {other}: completed\n" in shown.stdout
    assert "refused, stale_token: attempt 1 has ended" in shown.stdout
    assert "invariants of the store, all hold" in shown.stdout
    assert "  unset HOLDFAST_HOME\n" in shown.stdout
    assert alive(folder) == []
    following = re.findall(r"^  holdfast ((?:show|diff)\b.*?)   ", shown.stdout, re.MULTILINE)
    assert len(following) == 2
    for command in following:
        assert holdfast(folder, *command.split()).returncode == 0, command
    check_history(folder, shown.stdout)


def check_history(folder: Path, shown: str) -> None:
    """Each story is in the history of the repository once, and its checkout moved along."""
    history = git(folder, "log", "--topo-order", "--format=%s", "--no-merges", "main").splitlines()
    told = ["Login form", "Login form. pages/login.html has no test", "SAML callback"]
    stories = [f"Implement {each}" for each in (*told, "Logout button")]
    assert history[::-1] == ["The shop", *stories]
    (merge,) = git(folder, "log", "--format=%h %s", "--merges", "main").splitlines()
    assert f"*   {merge}" in shown
    assert git(folder, "status", "--short") == ""
    assert sorted(each.name for each in (folder / "pages").iterdir()) == [
        "callback.html",
        "index.html",
        "login.html",
        "logout.html",
    ]
    git(folder, "fsck", "--strict")


def test_ctrl_c_ends_the_demo_with_all_its_workers_and_says_how_to_go_on(tmp_path: Path) -> None:
    with terminal(tmp_path, "demo", TMPDIR=str(tmp_path)) as screen:
        screen.until("└ editing")
        screen.child.send_signal(signal.SIGINT)
        assert screen.ends() == 130
    (folder,) = tmp_path.glob("holdfast-demo-*")
    assert alive(folder) == []
    assert "Traceback" not in screen.text
    assert f"Go on: cd {folder} && holdfast worker --agent default" in screen.text
    assert '{"log"' not in screen.text
    told = json.loads(holdfast(folder, "show", "--json").stdout)
    assert told["status"] == "running"


def test_a_demo_that_has_lost_every_worker_says_so_and_ends(tmp_path: Path) -> None:
    with terminal(tmp_path, "demo", TMPDIR=str(tmp_path)) as screen:
        screen.until("feature r_")
        (folder,) = tmp_path.glob("holdfast-demo-*")
        assert eventually(lambda: len(workers_of(folder)) == 2)
        for pid in workers_of(folder):
            os.kill(pid, signal.SIGKILL)
        assert screen.ends() == 3
    last = screen.text[screen.text.rindex("feature r_") :]
    assert "· cancelled ·" in last
    assert "No worker is left, so the run is cancelled" in last


def test_a_wheel_holds_what_the_demo_shows(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    source = ROOT / "examples" / "git"
    files = [str(each.relative_to(source)) for each in source.rglob("*") if each.is_file()]
    inside = zipfile.ZipFile(wheel).namelist()
    assert files
    assert [name for name in files if f"holdfast/cli/repository/{name}" not in inside] == []
