"""Where a store is served is told while it is, and by a process that lives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.service.project.server_address import announce_server, find_server


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("HOLDFAST_HOME", raising=False)
    return f"sqlite:///{tmp_path}/.holdfast/holdfast.db"


@pytest.mark.parametrize(
    ("listening", "asked"),
    [
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
        ("http://0.0.0.0:9", "http://127.0.0.1:9"),
        ("http://[::]:9", "http://[::1]:9"),
        ("http://192.168.1.5:9", "http://192.168.1.5:9"),
    ],
)
def test_a_server_is_found_where_this_machine_reaches_it(
    url: str, listening: str, asked: str
) -> None:
    with announce_server(url, listening):
        assert find_server(url) == asked
    assert find_server(url) is None


def test_the_last_of_two_servers_is_told_and_takes_only_its_own_word_back(url: str) -> None:
    with announce_server(url, "http://127.0.0.1:1"):
        with announce_server(url, "http://127.0.0.1:2"):
            assert find_server(url) == "http://127.0.0.1:2"
        with announce_server(url, "http://127.0.0.1:3"):
            pass
    with announce_server(url, "http://127.0.0.1:4"):
        assert find_server(url) == "http://127.0.0.1:4"


def test_an_address_that_was_left_by_another_process_or_cannot_be_read_is_not_believed(
    url: str, tmp_path: Path
) -> None:
    kept = tmp_path / ".holdfast" / "server"
    with announce_server(url, "http://127.0.0.1:1"):
        told = json.loads(kept.read_text())
        origin = json.loads(told["origin"])
        for left in (
            json.dumps(told | {"origin": json.dumps(origin | {"started": "0"})}),
            json.dumps(told | {"origin": json.dumps(origin | {"host": "elsewhere"})}),
            "{",
            "[]",
            "{}",
        ):
            kept.write_text(left)
            assert find_server(url) is None, left
        # What is not its own any more is left alone.
        assert kept.exists()
    assert kept.exists()
