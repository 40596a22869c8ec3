"""Browsers: a link that is good once, a cookie for our own pages alone, and the way out."""

from __future__ import annotations

import logging
import re
from html import escape
from pathlib import Path

import httpx
import pytest

from holdfast.server.auth.rate_limits import Rate
from holdfast.server.gate import GateRules
from holdfast.server.proxies import Proxies
from tests.contract.server.browser import follow
from tests.contract.server.local_server import PLAIN, Served, served


def told(answer: httpx.Response) -> str:
    return f"{answer.status_code} {answer.json().get('code')}"


def test_a_link_lets_one_browser_in_and_its_page_says_who_it_is(server: Served) -> None:
    with follow(server) as browser:
        assert browser.get("/").status_code == 200
        assert browser.get("/api/v1/runs").status_code == 200
        assert browser.get("/api/v1/tokens").status_code == 403
        session = browser.get("/api/v1/session").json()
        assert (session["name"], session["role"]) == ("operator", "operator")
        proof = {"X-Holdfast-CSRF": session["csrf"]}
        made = browser.post("/api/v1/tasks", json={"title": "t"}, headers=proof).json()
        assert server.hf.tasks.events(made["id"])[0].actor == "operator"
        left = browser.delete("/api/v1/session", headers=proof)
        assert left.json() == {"ok": True, "repeated": False}
        assert "Max-Age=0" in left.headers["set-cookie"]
        assert browser.get("/api/v1/runs").status_code == 401


def test_a_link_that_is_only_looked_at_is_not_used_up(
    quick_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server = quick_server
    path = server("viewer").post("/links").json()["path"]
    code = path.partition("code=")[2]
    for _ in range(3):
        assert server.stranger.get(path).status_code == 200
    caplog.set_level(logging.INFO, "holdfast.audit")
    entered = server.stranger.post("/enter", data={"code": code})
    assert entered.status_code == 200
    assert caplog.messages[-1] == "viewer (viewer) POST /enter 200"
    assert code not in caplog.text
    rules = entered.headers["set-cookie"].split("; ")[1:]
    assert rules[:3] == ["Path=/", "HttpOnly", "SameSite=Strict"]
    assert re.fullmatch(r"Max-Age=4\d{4}", rules[3])
    server.stranger.cookies.clear()
    long = server.stranger.post("/enter", data={"code": "x" * 20_000})
    assert told(long) == "413 too_large"
    for wrong in (code, "", "nonsense", "x" * 2_000, "\x00", "%ff"):
        assert told(server.stranger.post("/enter", data={"code": wrong})) == "401 unauthorized"
    refused = server.stranger.post("/enter", data={"code": code}, headers={"Origin": "null"})
    assert told(refused) == "403 foreign_origin"
    assert "<script>alert" not in server.stranger.get("/enter?code=<script>alert(1)").text


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)])
def test_over_tls_as_a_configured_proxy_tells_it_the_cookie_is_for_this_host_alone(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxies: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    rules = GateRules(proxies=Proxies.read(proxies))
    with served(sqlite_url, tmp_path / "home", rules=rules) as server:
        code = server("viewer").post("/links").json()["path"].partition("code=")[2]
        entered = server.stranger.post(
            "/enter", data={"code": code}, headers={"X-Forwarded-Proto": "https"}
        )
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith("__Host-holdfast_") == bool(proxies)
    assert cookie.endswith("; Secure") == bool(proxies)


def test_a_cookie_changes_nothing_without_the_proof_of_a_page(quick_server: Served) -> None:
    server = quick_server
    with follow(server, "admin") as browser, follow(server, "admin") as other:
        proof = browser.get("/api/v1/session").json()["csrf"]
        for wrong in (
            None,
            "",
            proof[:-1],
            other.get("/api/v1/session").json()["csrf"],
            "nonsense",
        ):
            sent = {} if wrong is None else {"X-Holdfast-CSRF": wrong}
            answer = browser.post("/api/v1/tasks", json={"title": "t"}, headers=sent)
            assert told(answer) == "403 csrf", wrong
        foreign = {"X-Holdfast-CSRF": proof, "Origin": "http://localhost:3000"}
        answer = browser.post("/api/v1/tasks", json={"title": "t"}, headers=foreign)
        assert told(answer) == "403 foreign_origin"
        assert server.hf.tasks.list() == []
        twice = {"Cookie": "; ".join(f"{key}={value}" for key, value in browser.cookies.items())}
        twice["Cookie"] += f"; {twice['Cookie']}"
        assert told(httpx.get(f"{server.url}/api/v1/runs", headers=twice)) == "401 unauthorized"


def test_a_browser_is_out_when_its_token_is_revoked(server: Served) -> None:
    made = server().post("/tokens", json={"name": "ada", "role": "viewer"}).json()
    server.tokens["ada"] = made["token"]
    with server.client(made["token"]) as ada:
        path = ada.post("/links").json()["path"]
    with httpx.Client(base_url=server.url, verify=PLAIN) as browser:
        browser.post("/enter", data={"code": path.partition("code=")[2]})
        assert browser.get("/api/v1/runs").status_code == 200
        assert server().delete("/tokens/ada").status_code == 200
        assert browser.get("/api/v1/runs").status_code == 401


@pytest.mark.parametrize(
    ("asked", "led_to"),
    [
        ("/runs/r_1", "/runs/r_1"),
        ("/tasks/t_1", "/tasks/t_1"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ('/runs/"><script>alert(1)</script>', "/"),
        ("", "/"),
    ],
)
def test_a_link_leads_on_to_a_page_of_the_dashboard_and_nowhere_else(
    quick_server: Served, asked: str, led_to: str
) -> None:
    stranger, path = quick_server.stranger, quick_server("viewer").post("/links").json()["path"]
    code = path.partition("code=")[2]
    page = stranger.get("/enter", params={"code": code, "to": asked}).text
    assert f'name="to" value="{escape(asked)}"' in page
    entered = stranger.post("/enter", data={"code": code, "to": asked}).text
    assert re.findall(r'url=([^"]*)"', entered) == [led_to]
    assert f'<a href="{led_to}">' in entered
    assert "<script" not in page + entered


def test_a_browser_sends_the_form_of_a_link_from_the_origin_of_the_server(
    quick_server: Served,
) -> None:
    page = quick_server.stranger.get(quick_server("viewer").post("/links").json()["path"])
    # With `no-referrer`, browsers send it from the origin `null`, which is refused.
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src")


def test_a_browser_that_is_not_let_in_is_shown_a_page_that_says_what_to_do(
    quick_server: Served,
) -> None:
    server, page = quick_server, {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    path = server("viewer").post("/links").json()["path"]
    code = {"code": path.partition("code=")[2]}
    assert server.stranger.post("/enter", data=code).status_code == 200
    server.stranger.cookies.clear()
    used = server.stranger.post("/enter", data=code, headers=page)
    outside = server.stranger.get("/", headers=page)
    broken = server.stranger.get("/enter", headers=page)
    assert [each.status_code for each in (used, outside, broken)] == [401, 401, 422]
    for each in (used, outside, broken):
        assert each.headers["content-type"].startswith("text/html")
        assert each.headers["content-security-policy"].startswith("default-src 'none'; style-src")
        assert "<code>holdfast open</code>" in each.text
    assert "this link was used, or is too old" in used.text
    foreign = {**page, "Host": "<b>evil</b>"}
    assert "<b>" not in server.stranger.get("/", headers=foreign).text
    assert told(server.stranger.get("/")) == "401 unauthorized"
    assert told(server.stranger.get("/api/v1/runs", headers=page)) == "401 unauthorized"


def test_a_caller_that_tries_codes_is_held_up(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    rules = GateRules(failures=Rate(per_second=0.01, burst=2))
    with served(sqlite_url, tmp_path / "home", rules=rules) as server:
        tried = [server.stranger.post("/enter", data={"code": "guess"}) for _ in range(3)]
        assert [told(each) for each in tried[:2]] == ["401 unauthorized"] * 2
        assert told(tried[2]) == "429 too_many_requests"
