"""The dashboard: its page at every path that it shows, its files, and a clone without it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from holdfast.server.dashboard import FILES, read_files
from tests.contract.server.browser import follow
from tests.contract.server.local_server import Served, served
from tools import dashboard

PAGE = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def built() -> Path:
    dashboard.build()
    return FILES


@pytest.mark.usefixtures("built")
def test_every_path_of_a_page_is_answered_with_the_page_under_a_strict_policy(
    quick_server: Served,
) -> None:
    nonces = set[str]()
    with follow(quick_server) as browser:
        for path in ("/", "/runs", "/runs/r_1?task=t_2&q=x", "/runs/r_1/events", "/tasks/t_1"):
            page = browser.get(path)
            assert (page.status_code, page.headers["content-type"]) == (
                200,
                "text/html; charset=utf-8",
            )
            policy = page.headers["content-security-policy"]
            (nonce,) = re.findall(r"style-src 'self' 'nonce-([\w-]+)';", policy)
            assert f'content="{nonce}"' in page.text
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in policy
            assert "http" not in policy
            assert page.headers["cache-control"] == "no-store"
            nonces.add(nonce)
        assert len(nonces) == 5
        assert browser.get("/runs/r_1/a/b").status_code == 404
        assert browser.get("/nowhere").status_code == 404
        assert browser.post("/").status_code == 403


def test_what_is_served_is_what_is_packed(built: Path, quick_server: Served) -> None:
    packed = {
        f"/{path.relative_to(built).as_posix()}": path.read_bytes()
        for path in built.rglob("*")
        if path.is_file() and path.name not in {"index.html", dashboard.STAMP}
    }
    assert {path.rpartition(".")[2] for path in packed} == {"css", "js", "svg"}
    with follow(quick_server) as browser:
        for path, content in packed.items():
            answer = browser.get(path)
            assert answer.content == content, path
            plain = browser.get(path, headers={"Accept-Encoding": "identity"})
            assert plain.content == content, path
            if path.startswith("/assets/"):
                assert "immutable" in answer.headers["cache-control"]
        page = browser.get("/").text
        assert re.findall(r"<script(?![^>]*src=)", page) == []
        assert re.findall(r"(?:src|href)=\"(?!/|#)", page) == []
        assert browser.get("/index.html").status_code == 404
        assert browser.get(f"/{dashboard.STAMP}").status_code == 404


def test_a_page_is_for_those_who_are_let_in_and_so_are_its_files(
    built: Path, quick_server: Served
) -> None:
    files = [path.name for path in (built / "assets").iterdir()]
    away = quick_server.stranger.get("/runs/r_1", headers=PAGE)
    assert (away.status_code, "<code>holdfast open r_1</code>" in away.text) == (401, True)
    # A link on another site sends no cookie; the same link on this page does.
    assert '<a href="/runs/r_1">Try again</a>' in away.text
    assert quick_server.stranger.get(f"/assets/{files[0]}").status_code == 401


def test_a_clone_whose_dashboard_was_not_built_says_how_to_build_it(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("holdfast.server.dashboard.FILES", tmp_path / "built")
    with served(sqlite_url, tmp_path / "home") as server, follow(server) as browser:
        told = browser.get("/runs").text
        assert "You are in as <b>operator</b> (operator)" in told
        assert "<code>make up</code>" in told
        (tmp_path / "built").mkdir()
        (tmp_path / "built" / "index.html").write_text("%%NONCE%% is built")
        assert browser.get("/runs").text.endswith("is built")


def test_a_file_is_compressed_once_and_a_short_one_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("x" * 2_000)
    (tmp_path / "long.js").write_text("y" * 2_000)
    (tmp_path / "short.js").write_text("z")
    found = read_files(tmp_path)
    packed = found["/long.js"].compressed
    assert packed is not None
    assert gzip.decompress(packed) == b"y" * 2_000
    assert (found["/short.js"].compressed, found["/index.html"].compressed) == (None, None)


def test_a_build_that_has_nothing_to_do_builds_nothing(built: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.rglob("*")}
    assert dashboard.build() is False
    assert {path: path.stat().st_mtime_ns for path in built.rglob("*")} == before
