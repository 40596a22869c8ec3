"""Whether a server is of use: not while its store cannot be written."""

from __future__ import annotations

from pathlib import Path

from tests.contract.http.served import served
from tests.contract.raw import raw


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
