"""What a home keeps for its owner alone is opened through no symbolic link, and is a plain file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import StoreUnwritable
from holdfast.worker.files import state_paths
from holdfast.worker.files.attempt_log import AttemptLog, append_to_log
from holdfast.worker.files.state_paths import StatePath, open_private, read_private, write_private

WRITES = os.O_WRONLY | os.O_CREAT | os.O_APPEND


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".holdfast"
    (home / "logs" / "t_1").mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "1.log").write_text("as it was")
    return home


def test_a_file_is_made_for_its_owner_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        with os.fdopen(open_private(home / "logs/t_1/1.log", WRITES, home), "w") as file:
            file.write("said")
        write_private(home / "server", "told", home)
    finally:
        os.umask(before)
    for path, text in ((home / "logs/t_1/1.log", b"said"), (home / "server", b"told")):
        assert path.stat().st_mode & 0o777 == 0o600
        assert read_private(path, home) == text


@pytest.mark.parametrize("link", ["logs", "logs/t_1", "logs/t_1/1.log"])
@pytest.mark.parametrize("target", ["victim", "victim/1.log", "nothing"])
def test_no_part_of_the_way_to_a_file_may_be_a_symbolic_link(
    link: str, target: str, home: Path, tmp_path: Path
) -> None:
    replaced = home / link
    if replaced.is_dir():
        replaced.rename(tmp_path / "aside")
    replaced.symlink_to(tmp_path / target)
    (tmp_path / "victim" / "t_1").mkdir(exist_ok=True)
    (tmp_path / "victim" / "t_1" / "1.log").write_text("as it was")
    for flags in (os.O_RDONLY, WRITES):
        with pytest.raises(OSError, match="a symbolic link, which is not followed") as refused:
            open_private(home / "logs" / "t_1" / "1.log", flags, home)
        assert refused.value.filename == str(home / "logs" / "t_1" / "1.log")
    assert not (tmp_path / "nothing").exists()
    assert (tmp_path / "victim" / "1.log").read_text() == "as it was"


def test_a_home_may_be_reached_through_a_link_that_was_named(home: Path, tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to(home)
    os.close(open_private(tmp_path / "named" / "token", WRITES, tmp_path / "named"))
    assert (home / "token").exists()


@pytest.mark.parametrize("flags", [os.O_RDONLY, WRITES])
def test_a_pipe_and_a_folder_are_no_files_and_keep_nobody_waiting(flags: int, home: Path) -> None:
    os.mkfifo(home / "token")
    (home / "audit.log").mkdir()
    for name in ("token", "audit.log"):
        with pytest.raises(OSError, match=r"no regular file|Is a directory"):
            open_private(home / name, flags, home)


def test_a_file_that_is_replaced_replaces_a_link_and_not_the_file_it_leads_to(
    home: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim" / "1.log"
    (home / "server").symlink_to(victim)
    (home / f"server.{os.getpid()}").symlink_to(victim)
    write_private(home / "server", "told", home)
    assert (victim.read_text(), read_private(home / "server", home)) == ("as it was", b"told")


def test_a_file_of_another_user_is_neither_read_nor_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "token").write_text("theirs")
    monkeypatch.delenv("HOLDFAST_HOME", raising=False)
    mine = os.geteuid()
    monkeypatch.setattr(state_paths, "geteuid", lambda: mine + 1)
    for flags in (os.O_RDONLY, WRITES):
        with pytest.raises(OSError, match="belongs to another user"):
            open_private(home / "token", flags, home)
    # Whoever names a home takes what its owner keeps there.
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    assert read_private(home / "token", home) == b"theirs"


def test_the_log_of_an_attempt_is_written_through_no_link(home: Path, tmp_path: Path) -> None:
    place = StatePath(home) / "logs" / "t_1" / "1.log"
    place.path.symlink_to(tmp_path / "victim" / "1.log")
    with AttemptLog(place) as spool:
        spool.write(b"said")
    with pytest.raises(StoreUnwritable, match="a symbolic link, which is not followed"):
        append_to_log(place, b"said")
    assert (tmp_path / "victim" / "1.log").read_text() == "as it was"
