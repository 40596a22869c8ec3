"""Where a worker keeps its logs and records, by the store it works for."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.worker.files.state_directory import find_state_directory

TASK = "t_00000000000000000001"


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("sqlite:///shop.db", "shop.db.state"),
        ("sqlite:///data/shop.db", "data/shop.db.state"),
        ("sqlite:///.holdfast/store.db", ".holdfast"),
        ("postgresql://host/shop", ".holdfast"),
    ],
)
def test_the_state_is_beside_the_store_or_in_the_current_folder(
    url: str, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_state_directory(url, {}).root == tmp_path / root


def test_the_state_of_a_server_is_found_upwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / ".holdfast").mkdir()
    monkeypatch.chdir(inner)
    assert find_state_directory("postgresql://host/shop", {}).root == tmp_path / ".holdfast"


def test_the_environment_has_the_last_word(tmp_path: Path) -> None:
    state = find_state_directory("sqlite:///shop.db", {"HOLDFAST_HOME": str(tmp_path)})
    assert state.root == tmp_path
    assert state.log(TASK, 2).path == tmp_path / "logs" / TASK / "2.log"
