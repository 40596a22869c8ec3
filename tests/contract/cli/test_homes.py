"""Whose folder it is: a home, or settings, that this user neither made nor trusts are refused."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.cli.completion import complete_id, complete_schedule, complete_workflow
from holdfast.errors import InvalidInput, NotTrusted
from holdfast.service.audit import AuditFile
from holdfast.service.tokens import read_token
from holdfast.service.whereabouts import find_server
from holdfast.worker import homes, state_path
from holdfast.worker.known_homes import KnownHome, known_homes, remember
from holdfast.worker.origin import Origin
from holdfast.worker.state import state_of
from tests.contract.cli.typed import Typed, logs_as_before
from tools.commands import Described, every_command

ANOTHER = 54_321
SETTINGS = "database: {}\n"
# What each of these is typed with here; the others, as their examples are.
TYPED_WITH = {
    "run": ["hello.yaml", "-i", "name=Ada"],
    "worker": [],
    "bus publish": ["workflow.commands"],
    "db upgrade": [],
    "serve": ["--port", "0"],
    "up": ["--port", "0"],
}
# They make a folder of their own, only read a file that is named, or are there for such a home.
FIND_NONE = {"init", "demo", "trust", "workflow validate", "schedule preview"}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the homes of this test's user are remembered."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def typed(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Typed]:
    assert not state.exists()
    for name in list(os.environ):
        if name.startswith(("HOLDFAST_", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(homes, "_accepted", set())
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    with logs_as_before():
        yield Typed(capsys)


@pytest.fixture
def known(typed: Typed) -> None:
    """A user who has used this release before: nothing that comes now is from before it."""
    Path("before").mkdir()
    os.chdir("before")
    typed.ok("init", "--bare")
    os.chdir("..")


def looked_at_afresh() -> None:
    homes._accepted.clear()  # noqa: SLF001 - another process would begin with none


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a path belong to another user: really so where root may, else this user is another."""
    if os.geteuid() == 0:
        for each in (path, *path.rglob("*")):
            os.chown(each, ANOTHER, ANOTHER, follow_symlinks=False)
    else:
        mine = os.geteuid()
        monkeypatch.setattr(homes, "geteuid", lambda: mine + 1)
        monkeypatch.setattr(state_path, "geteuid", lambda: mine + 1)
    looked_at_afresh()


def make_home(typed: Typed, folder: Path) -> Path:
    """A home with a queued command in it, made by somebody who remembers it elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    here, before = Path.cwd(), os.environ["XDG_STATE_HOME"]
    os.environ["XDG_STATE_HOME"] = str(folder.parent / "state-of-another")
    os.chdir(folder)
    typed.ok("init", "--bare")
    (folder / "evil.yaml").write_text("name: evil\nsteps:\n  - {id: run, run: [touch, RAN]}\n")
    typed.ok("run", "evil.yaml")
    typed.ok("token")
    os.chdir(here)
    os.environ["XDG_STATE_HOME"] = before
    looked_at_afresh()
    return folder / ".holdfast"


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org", "-c", "commit.gpgsign=no"]
    asked = [shutil.which("git") or "git", "-C", str(folder), *named, *arguments]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    return done.stdout


def cloned(typed: Typed, tmp_path: Path) -> Path:
    """A clone of a repository with a committed home, in which the current folder is."""
    made = tmp_path / "of-another"
    make_home(typed, made)
    git(made, "init", "-q")
    git(made, "add", "-f", ".")
    git(made, "commit", "-q", "-m", "Begin")
    git(tmp_path, "clone", "-q", str(made), "clone")
    os.chdir(tmp_path / "clone")
    return tmp_path / "clone" / ".holdfast"


def words_of(command: Described) -> list[str]:
    """What to type for a command."""
    given = TYPED_WITH.get(command.name)
    if given is not None:
        return [*command.name.split(), *given]
    example = command.example.rpartition("holdfast ")[2].partition("&&")[0]
    return shlex.split(example) or command.name.split()


def finds_home(command: Described) -> bool:
    return command.name not in FIND_NONE


@pytest.mark.usefixtures("known")
def test_every_command_that_finds_a_home_refuses_that_of_another(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = make_home(typed, tmp_path / "project")
    for each in ("hello", "report", "feature"):
        steps = "steps:\n  - {id: say, run: [echo, hello]}\n"
        Path(f"{each}.yaml").write_text(f"name: {each}\n{steps}")
    give_away(home, monkeypatch)
    before = sorted((each, each.stat().st_mtime_ns) for each in home.rglob("*"))
    monkeypatch.setenv("HOLDFAST_TASK", "t_1")
    monkeypatch.setenv("HOLDFAST_ATTEMPT_TOKEN", "1.x")
    # Whoever becomes root for a moment is root here.
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    told = {each.name: typed(*words_of(each)) for each in every_command() if finds_home(each)}
    told |= {"": typed(), "open --server": typed("open", "--server", "http://localhost:1")}
    obeyed = {
        name: said
        for name, said in told.items()
        if said.code != 5 or said.out or f"holdfast trust {home}" not in said.err
    }
    assert obeyed == {}
    assert len(told) > len(FIND_NONE)
    assert sorted((each, each.stat().st_mtime_ns) for each in home.rglob("*")) == before
    assert complete_id("") == complete_workflow("") == complete_schedule("") == []


@pytest.mark.usefixtures("known")
def test_a_home_of_another_is_refused_with_one_sentence_and_used_once_it_is_trusted(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = make_home(typed, tmp_path / "project")
    give_away(home, monkeypatch)
    below = tmp_path / "project" / "below"
    below.mkdir()
    os.chdir(below)
    # Nobody need be able to look into it.
    home.chmod(0)
    assert "belongs to " in typed.refused(5, "runs")
    home.chmod(0o700)
    refused = typed.refused(5, "runs")
    assert refused.count("\n") == 1
    assert "belongs to " in refused
    (told,) = [json.loads(line) for line in typed("runs", "--json").out.splitlines()]
    assert told["error"]["code"] == "not_trusted"
    assert told["error"]["next"] == f"holdfast trust {home}"
    shown = typed.json("trust", str(home))["items"]
    assert [(each["path"], each["tracked"]) for each in shown] == [(str(home), False)]
    assert str(ANOTHER) in shown[0]["owner"] or os.geteuid() != 0
    assert "evil" in typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_the_committed_home_and_token_of_a_clone_are_not_used(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = cloned(typed, tmp_path)
    assert (home / "token").exists()
    for words in (["up", "--port", "0"], ["serve", "--port", "0"], ["worker"], ["token"], ["open"]):
        assert "is tracked by git" in typed.refused(5, *words)
    assert "is tracked by git" in typed.refused(5, "open", "--server", "http://127.0.0.1:8765")
    # A store that was named does not make the home around it one to be obeyed.
    with pytest.raises(NotTrusted, match="is tracked by git"):
        read_token("postgresql://host/jobs")
    monkeypatch.setenv("HOLDFAST_TOKEN", "x" * 40)
    assert "is tracked by git" in typed.refused(5, "worker", "--server", "http://127.0.0.1:1")
    assert not Path("RAN").exists()
    assert typed.json("trust", ".")["items"][0]["tracked"] is True
    assert "evil" in typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_a_clone_where_a_home_of_ones_own_once_stood_is_refused(
    typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "clone").mkdir()
    os.chdir(tmp_path / "clone")
    typed.ok("init", "--bare")
    os.chdir(tmp_path)
    shutil.rmtree(tmp_path / "clone")
    cloned(typed, tmp_path)
    looked_at_afresh()
    assert "is tracked by git" in typed.refused(5, "runs")
    # What was unpacked has no git that could tell.
    shutil.rmtree(tmp_path / "clone" / ".git")
    assert "was not made here" in typed.refused(5, "runs")


def test_a_home_that_git_has_come_to_track_is_refused(typed: Typed, tmp_path: Path) -> None:
    typed.ok("init", "--bare")
    git(Path(), "init", "-q")
    typed.ok("runs")
    git(Path(), "add", "-f", ".holdfast/holdfast.db")
    looked_at_afresh()
    assert "is tracked by git" in typed.refused(5, "runs")
    git(Path(), "commit", "-q", "-m", "Begin")
    git(Path(), "worktree", "add", "-q", str(tmp_path / "linked"))
    os.chdir(tmp_path / "linked")
    assert "is tracked by git" in typed.refused(5, "runs")


@pytest.mark.usefixtures("known")
def test_nothing_that_a_repository_configures_is_run_to_ask_whether_git_tracks_a_home(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloned(typed, tmp_path)
    ran = tmp_path / "RAN"
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    # Also a program of the repository that is called git, where the current folder is looked in.
    shutil.copy(hook, "git")
    git(Path(), "config", "core.fsmonitor", str(hook))
    git(Path(), "status")
    assert ran.exists()
    ran.unlink()
    monkeypatch.setenv("PATH", f":.:{tmp_path / 'clone'}:{os.environ['PATH']}")
    assert "git cannot be asked" in typed.refused(5, "runs")
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH'].split(':', 3)[3]}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert "is tracked by git" in typed.refused(5, "runs")
    assert not ran.exists()


@pytest.mark.parametrize("junk", ["pipe", "pipe in it", "text", "nul", "folder"])
def test_a_repository_that_is_none_is_told_of_and_keeps_nobody_waiting(
    junk: str, typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    repository = tmp_path / "project" / ".git"
    if junk == "pipe":
        os.mkfifo(repository)
    elif junk.startswith("pipe") or junk == "folder":
        repository.mkdir()
        if junk != "folder":
            os.mkfifo(repository / "index")
    else:
        repository.write_text("nothing" if junk == "text" else "gitdir: \0")
    looked_at_afresh()
    assert "git cannot be asked" in typed.refused(5, "runs")
    # Where that was so when it was trusted, it is so later on.
    typed.ok("trust", ".")
    typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_without_git_a_home_that_a_repository_may_hold_is_refused_and_others_are_not(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloned(typed, tmp_path)
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "git cannot be asked" in typed.refused(5, "runs")
    # What git lists of a repository is read, so that no command waits for git to be started.
    os.chdir(tmp_path / "project")
    typed.ok("init", "--bare")
    Path("src").mkdir()
    Path("src/shop.py").touch()
    monkeypatch.setenv("PATH", path)
    git(Path(), "init", "-q")
    git(Path(), "add", "src")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    looked_at_afresh()
    typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_a_moved_project_goes_on_working_and_a_copy_is_refused(
    typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    shutil.copytree(tmp_path / "project", tmp_path / "copy")
    (tmp_path / "project").rename(tmp_path / "moved")
    for folder, said in (("moved", ""), ("copy", "is a copy of")):
        os.chdir(tmp_path / folder)
        looked_at_afresh()
        if said:
            assert f"{said} {tmp_path}/moved/.holdfast" in typed.refused(5, "runs")
        else:
            assert typed("runs").code == 0
    # Moved to another disk: copied, and then removed.
    shutil.rmtree(tmp_path / "moved")
    assert typed("runs").code == 0


def test_a_home_from_an_earlier_version_is_taken_over_once_and_told(
    typed: Typed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = make_home(typed, tmp_path / "project")
    # As the earlier version left it, where new folders are open to one's own group.
    (home / "identities").unlink()
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "project", other)
    (tmp_path / "linked").mkdir()
    os.chdir(tmp_path / "linked")
    Path(".holdfast").symlink_to(home)
    assert "is a symbolic link to" in typed.refused(5, "runs")
    os.chdir(tmp_path / "project")
    home.chmod(0o777)
    assert "may be written to by other users" in typed.refused(5, "runs")
    home.chmod(0o775)
    typed.ok("runs")
    (told,) = [each.getMessage() for each in caplog.records]
    assert told.startswith(f"{home} is from before Holdfast remembered")
    assert home.stat().st_mode & 0o777 == 0o755
    looked_at_afresh()
    typed.ok("runs")
    assert len(caplog.records) == 1
    # It was there before homes were remembered, too.
    os.chdir(other)
    typed.ok("runs")
    assert len(caplog.records) == 2
    # That one was not.
    shutil.copytree(tmp_path / "project", tmp_path / "unpacked")
    (tmp_path / "unpacked" / ".holdfast" / "identities").unlink()
    os.chdir(tmp_path / "unpacked")
    assert "was not made here" in typed.refused(5, "runs")
    known = known_homes()
    assert known is not None
    assert known.file.stat().st_mode & 0o777 == 0o600
    assert known.file.parent.stat().st_mode & 0o777 == 0o700
    known.file.write_text("{")
    damaged = typed.refused(5, "runs")
    assert f"{known.file}, where it is remembered which homes are yours, is damaged" in damaged


def test_a_home_that_others_may_write_to_is_refused(typed: Typed, tmp_path: Path) -> None:
    typed.ok("init", "--bare")
    home = tmp_path / "project" / ".holdfast"
    for mode in (0o770, 0o777):
        home.chmod(mode)
        looked_at_afresh()
        assert "may be written to by other users" in typed.refused(5, "runs")
    assert typed.json("trust", str(home))["items"][0]["writable"] is True
    typed.ok("runs")


@pytest.mark.usefixtures("known")
def test_a_home_that_is_a_symbolic_link_is_refused_and_used_once_it_is_trusted(
    typed: Typed, tmp_path: Path
) -> None:
    Path(".holdfast").symlink_to(tmp_path / "project" / "before" / ".holdfast")
    refused = typed.refused(5, "runs")
    assert f"is a symbolic link to {tmp_path}/project/before/.holdfast" in refused
    typed.ok("trust", ".")
    typed.ok("runs")
    Path("deeper").mkdir()
    os.chdir("deeper")
    Path(".holdfast").symlink_to(tmp_path / "project" / "before" / ".holdfast")
    assert "is a symbolic link to" in typed.refused(5, "runs")


def test_who_names_a_store_or_a_home_has_said_so(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = make_home(typed, tmp_path / "project")
    give_away(home, monkeypatch)
    typed.refused(5, "runs")
    assert "evil" in typed.ok("runs", "--db", str(home / "holdfast.db"))
    monkeypatch.setenv("HOLDFAST_DB", str(home / "holdfast.db"))
    assert "evil" in typed.ok("runs")
    # But its token is another's still, and so is the place that it would be sent to.
    assert "it belongs to another user" in typed.refused(2, "token")
    # Also where a home of one's own once stood.
    entry = KnownHome(path=str(home), owner=os.geteuid() + 1, id="x")
    assert remember(entry)
    assert "it belongs to another user" in typed.refused(2, "token")
    monkeypatch.delenv("HOLDFAST_DB")
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    assert "evil" in typed.ok("runs")
    assert typed.ok("token").startswith("hf_")


@pytest.mark.usefixtures("known")
def test_a_container_goes_on_with_its_old_volume(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_home(typed, tmp_path / "data")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "root"))
    (tmp_path / "root").mkdir()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "data" / ".holdfast"))
    said = typed("runs")
    assert ("evil" in said.out, said.err) == (True, "")


@pytest.mark.parametrize("home", [None, "/nonexistent", "/proc/nothing", "file", "of-another"])
def test_a_service_whose_user_has_no_home_folder_goes_on_working(
    home: str | None, typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME")
    if home is None:
        # The home folder that the system knows of is that of whoever runs the tests.
        monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError()))
    elif home == "of-another":
        state = tmp_path / "theirs" / ".local" / "state" / "holdfast"
        state.mkdir(parents=True)
        state.chmod(0o777)
        monkeypatch.setenv("HOME", str(tmp_path / "theirs"))
    else:
        (tmp_path / "file").touch()
        monkeypatch.setenv("HOME", home if home.startswith("/") else str(tmp_path / home))
    if home == "/nonexistent":
        # Root could make it.
        monkeypatch.setenv("HOME", "/dev/null/nonexistent")
    typed.ok("init", "--bare")
    looked_at_afresh()
    said = typed("runs")
    assert (said.code, said.err.count("\n")) == (0, 1), said
    assert "No runs yet" in said.err
    # What is another's is refused all the same, and what is to be typed then works.
    give_away(tmp_path / "project" / ".holdfast", monkeypatch)
    refused = typed.refused(5, "runs")
    assert "first set XDG_STATE_HOME to a folder of yours" in refused
    assert "cannot be remembered" in typed.refused(5, "trust", ".")


def test_settings_of_another_are_refused_here_and_above(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    settings = tmp_path / "project" / "holdfast.yaml"
    settings.write_text("concurrency: {agents: 3}\n")
    typed.ok("runs")
    settings.chmod(0o666)
    assert "may be written to by other users" in typed.refused(5, "runs")
    settings.chmod(0o664)
    typed.ok("runs")
    (tmp_path / "project" / "below").mkdir()
    give_away(settings, monkeypatch)
    for folder in ("project", "project/below"):
        os.chdir(tmp_path / folder)
        assert f"{settings} belongs to" in typed.refused(5, "worker")
        assert f"holdfast trust {settings}" in typed.refused(5, "runs")
    typed.ok("trust", str(tmp_path / "project" / ".holdfast"))
    typed.ok("trust", str(settings))
    typed.ok("runs")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("named", ["data/jobs.db", ".holdfast/holdfast.db"])
def test_a_committed_store_that_committed_settings_name_is_refused(
    named: str, typed: Typed, tmp_path: Path
) -> None:
    home = cloned(typed, tmp_path)
    Path("data").mkdir()
    shutil.copy(home / "holdfast.db", "data/jobs.db")
    if not named.startswith("."):
        shutil.rmtree(home)
    Path("holdfast.yaml").write_text(SETTINGS.format(named))
    git(Path(), "add", "-f", ".")
    assert "is tracked by git" in typed.refused(5, "runs")
    assert "is tracked by git" in typed.refused(5, "worker")
    # The state beside a store that is not there may be committed, with a token in it.
    if not named.startswith("."):
        Path("data/jobs.db").unlink()
        Path("data/jobs.db.state").mkdir()
        Path("data/jobs.db.state/token").write_text(f"hf_{'k' * 40}\n")
        git(Path(), "add", "-f", ".")
        refused = typed.refused(5, "token")
        assert "jobs.db.state is tracked by git" in refused
        typed.ok("trust", "data/jobs.db.state")
        typed.ok("token")


def test_a_store_that_settings_name_and_that_was_made_here_goes_on_working(
    typed: Typed, tmp_path: Path
) -> None:
    git(Path(), "init", "-q")
    Path("holdfast.yaml").write_text(SETTINGS.format("jobs.db"))
    git(Path(), "add", ".")
    typed.ok("init", "--bare")
    looked_at_afresh()
    assert typed("runs").code == 0
    git(Path(), "add", "-f", "jobs.db")
    assert "jobs.db is tracked by git" in typed.refused(5, "runs")
    # Another's store of another folder is not made one's own by settings either.
    os.chdir(tmp_path)
    Path("holdfast.yaml").write_text(SETTINGS.format("theirs.db"))
    Holdfast(f"sqlite:///{tmp_path}/theirs.db").engine.close()
    assert "theirs.db was not made here" in typed.refused(5, "runs")
    typed.ok("trust", "theirs.db")
    typed.ok("runs")


def test_committed_settings_that_name_a_server_of_databases_are_refused_until_they_are_trusted(
    typed: Typed,
) -> None:
    Path("holdfast.yaml").write_text(SETTINGS.format("postgresql://127.0.0.1:1/jobs"))
    git(Path(), "init", "-q")
    assert "127.0.0.1" in typed.refused(5, "runs")
    git(Path(), "add", ".")
    assert "names a database and is tracked by git" in typed.refused(5, "runs")
    typed.ok("trust", ".")
    assert "holdfast trust" not in typed.refused(5, "runs")


def test_past_the_home_of_another_above_a_folder_gets_its_own(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    give_away(make_home(typed, tmp_path / "project"), monkeypatch)
    Path("own").mkdir()
    os.chdir("own")
    said = typed("init", "--bare")
    assert (said.code, "this folder gets a home of its own" in said.err) == (0, True)
    typed.ok("runs")


def test_the_home_that_a_store_on_a_server_uses_is_remembered_when_a_worker_makes_it(
    typed: Typed,
) -> None:
    assert typed("runs").code == 5
    homes.private(state_of("postgresql://host/jobs").root / "logs")
    Path(".holdfast/logs/t_1").mkdir()
    looked_at_afresh()
    assert state_of("postgresql://host/jobs").root == Path.cwd() / ".holdfast"


@pytest.mark.parametrize("name", ["token", "audit.log", "audit.lock", "server"])
def test_no_file_of_a_home_is_reached_through_a_symbolic_link(
    name: str, typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    victim = tmp_path / "victim"
    victim.write_text("hf_" + "k" * 40)
    path = tmp_path / "project" / ".holdfast" / name
    path.symlink_to(victim)
    url = f"sqlite:///{tmp_path}/project/.holdfast/holdfast.db"
    if name == "token":
        assert "reached through a symbolic link" in typed.refused(2, "token")
    elif name == "audit.log":
        with pytest.raises(InvalidInput, match=r"audit.log cannot be written: it is reached"):
            AuditFile(url)
    elif name == "audit.lock":
        kept = AuditFile(url)
        kept.maxBytes = 1
        kept.keep({"actor": "somebody"})
        kept.close()
    else:
        victim.write_text(json.dumps({"url": "http://h:1", "origin": str(Origin.own())}))
        assert find_server(url) is None
    assert path.is_symlink()
    assert victim.read_text().startswith(("hf_", "{"))
    assert "somebody" not in victim.read_text()


def test_a_log_is_neither_written_nor_read_through_a_symbolic_link(
    typed: Typed, tmp_path: Path
) -> None:
    typed.ok("init", "--bare")
    Path("say.yaml").write_text("name: say\nsteps:\n  - {id: say, run: [echo, hello]}\n")
    (tmp_path / "victim").mkdir()
    Path(".holdfast/logs").symlink_to(tmp_path / "victim")
    assert typed("run", "say.yaml", "--wait").code == 0
    assert list((tmp_path / "victim").iterdir()) == []
    assert "reached through a symbolic link" in typed("logs", "@last:say").err
