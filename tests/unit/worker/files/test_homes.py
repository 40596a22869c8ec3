"""Homes that are made and found by several processes at one moment are all remembered."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from fcntl import flock
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import NotTrusted
from holdfast.worker.files import home_registry, homes
from holdfast.worker.files.home_registry import KnownHome, KnownHomes
from holdfast.worker.files.homes import accept_home, make_home

TOGETHER = 12
PATIENCE = 30.0


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(homes, "_accepted_homes", set())


def _known() -> KnownHomes:
    known = home_registry.read_known_homes()
    assert known is not None
    return known


def test_homes_that_are_made_at_once_are_all_remembered(tmp_path: Path) -> None:
    made = [tmp_path / str(number) / ".holdfast" for number in range(TOGETHER)]
    context = get_context("fork")
    processes = [context.Process(target=make_home, args=(each,)) for each in made]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    assert {each.path for each in _known().homes} == set(map(str, made))
    for home in made:
        assert accept_home(home) == home


@pytest.mark.parametrize("stage", ["recorded_home", "open_private"])
def test_a_home_that_another_process_is_making_may_be_used(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _known()
    home, found = tmp_path / ".holdfast", list[Path]()
    other = threading.Thread(target=lambda: found.append(accept_home(home)))
    before: Callable[..., Any] = getattr(homes, stage)
    wanted = threading.Event()

    def lock(held: int, how: int) -> None:
        wanted.set()
        flock(held, how)

    def find_meanwhile(*given: object) -> Any:  # noqa: ANN401 - what the stage gives
        monkeypatch.setattr(homes, stage, before)
        monkeypatch.setattr(home_registry, "flock", lock)
        other.start()
        # The other one needs the lock, which the maker holds from the first stage's end on.
        assert wanted.wait(PATIENCE)
        if stage == "recorded_home":
            other.join(PATIENCE)
        homes._accepted_homes.clear()  # noqa: SLF001 - that was another process
        return before(*given)

    monkeypatch.setattr(homes, stage, find_meanwhile)
    make_home(home)
    other.join(PATIENCE)
    assert found == [home]
    homes._accepted_homes.clear()  # noqa: SLF001 - a third process
    assert accept_home(home) == home


@pytest.mark.parametrize("stage", ["read_known_homes", "_read_identities", "_is_empty"])
@pytest.mark.parametrize("made", ["before", "after"])
def test_a_home_that_is_finished_while_it_is_looked_at_may_be_used(
    stage: str, made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _known()
    home = tmp_path / ".holdfast"
    home.mkdir(mode=0o700)
    before: Callable[..., Any] = getattr(homes, stage)

    def finish_meanwhile(*given: object) -> Any:  # noqa: ANN401 - what the stage gives
        monkeypatch.setattr(homes, stage, before)
        found = before(*given) if made == "after" else None
        assert homes._remember_home(home)  # noqa: SLF001 - what its maker does next
        (home / ".gitignore").write_text("*\n")
        return found if made == "after" else before(*given)

    monkeypatch.setattr(homes, stage, finish_meanwhile)
    assert accept_home(home) == home


def test_two_writers_that_remember_homes_at_once_lose_nothing_of_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _known()
    other = threading.Thread(target=home_registry.record_home, args=[_entry("other")])
    write = home_registry._write  # noqa: SLF001 - the moment between its reading and its writing
    waits = threading.Event()

    def lock(held: int, how: int) -> None:
        waits.set()
        flock(held, how)

    def interrupted(known: KnownHomes) -> KnownHomes:
        monkeypatch.setattr(home_registry, "_write", write)
        waits.clear()
        other.start()
        assert waits.wait(PATIENCE)
        return write(known)

    monkeypatch.setattr(home_registry, "flock", lock)
    monkeypatch.setattr(home_registry, "_write", interrupted)
    assert home_registry.record_home(_entry("one"))
    other.join()
    assert {each.path for each in _known().homes} == {"/one", "/other"}


def _entry(name: str) -> KnownHome:
    return KnownHome(path=f"/{name}", owner=os.geteuid(), id=name)


def test_homes_are_not_remembered_or_believed_where_others_can_put_a_file(tmp_path: Path) -> None:
    make_home(tmp_path / ".holdfast")
    folder = tmp_path / "state" / "holdfast"
    folder.chmod(0o777)
    assert home_registry.read_known_homes() is None
    folder.chmod(0o700)
    file = folder / "homes"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert home_registry.read_known_homes() is None


def test_the_file_is_for_its_owner_alone_and_the_oldest_homes_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(home_registry, "MOST_HOMES", 3)
    for name in "abcde":
        home_registry.record_home(_entry(name))
    known = _known()
    assert [each.id for each in known.homes] == ["c", "d", "e"]
    assert known.file.stat().st_mode & 0o777 == 0o600
    assert known.file.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(each.name for each in known.file.parent.iterdir()) == ["homes", "homes.lock"]


def test_a_home_whose_gitignore_is_a_link_writes_nothing_where_that_leads(tmp_path: Path) -> None:
    home = tmp_path / ".holdfast"
    home.mkdir()
    (home / ".gitignore").symlink_to(tmp_path / "victim")
    make_home(home)
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    "told",
    [
        "",
        "[" * 100_000,
        '{"since": 1e400, "homes": []}',
        '{"since": 1, "homes": 5}',
        '{"since": 1, "homes": [{"path": null, "owner": 0}]}',
        '{"since": 1, "homes": [{"path": "/x", "owner": 0, "id": ["y"]}]}',
    ],
)
def test_a_file_of_homes_that_is_damaged_in_any_way_is_told_of(told: str) -> None:
    file = _known().file
    file.write_text(told)
    with pytest.raises(NotTrusted, match="is damaged"):
        home_registry.read_known_homes()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(NotTrusted, match="is damaged") as damaged:
        home_registry.read_known_homes()
    typed = str(damaged.value).split("`")[1]
    subprocess.run(["/bin/sh", "-c", typed], check=True)
    begun = home_registry.read_known_homes()
    assert begun is not None
    assert (begun.since, begun.homes) == (0, [])
