"""Whether a server is of use: not where it cannot listen, nor while its store cannot be written."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from holdfast.errors import InvalidInput, StoreGone
from holdfast.server.http_server import HttpServer
from holdfast.server.listen_address import ListenAddress
from holdfast.store.database import sqlite_path
from tests.contract.raw_store import raw
from tests.contract.server.local_server import Served, served


def test_a_server_is_not_ready_while_its_store_cannot_be_written(
    sqlite_url: str, tmp_path: Path
) -> None:
    with served(sqlite_url, tmp_path / "home", patience=0.2) as server:
        look = f"{server.url}/readyz"
        assert server().get(look).json() == {"ok": True}
        with raw(sqlite_url) as other:
            other("BEGIN IMMEDIATE")
            late = server().get(look)
            other("ROLLBACK")
        assert (late.status_code, late.json()["code"]) == (503, "store_unavailable")
        assert server().get(look).json() == {"ok": True}


def test_a_server_whose_store_is_gone_is_not_ready_and_takes_nothing(
    sqlite_url: str, tmp_path: Path
) -> None:
    answers: list[httpx.Response] = []

    def ask() -> None:
        with served(sqlite_url, tmp_path / "home") as server:
            client = server()
            assert client.get("/runs").status_code == 200
            sqlite_path(sqlite_url).unlink()
            answers.append(client.post("/tasks", json={"title": "one"}))
            answers.append(client.get("/runs"))
            answers.append(client.get(f"{server.url}/readyz"))

    # What looks through the store in the end hears of it, too.
    with pytest.raises(StoreGone):
        ask()
    told = [(each.status_code, each.json()["code"]) for each in answers]
    assert told == [(503, "store_gone")] * 3
    assert str(tmp_path) not in answers[0].text


def test_a_port_that_is_taken_is_told_with_the_way_to_a_free_one(quick_server: Served) -> None:
    taken = urlsplit(quick_server.url).port
    assert taken is not None
    with pytest.raises(InvalidInput, match="already in use; --port 0 takes a free one"):
        HttpServer(quick_server.application, ListenAddress(port=taken))
