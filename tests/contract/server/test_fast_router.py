"""Calls that are taken past the framework are answered as the framework answers them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from holdfast.engine.engine import engine_of
from holdfast.model.token import AccessToken
from holdfast.server.auth import known_tokens
from holdfast.server.gate import Gate, GateRules
from holdfast.server.http_server import HttpServer
from holdfast.server.listen_address import ListenAddress
from tests.contract.server.local_server import API, PLAIN, Served
from tests.contract.task_states import MISSING_TASK
from tests.engines import opened
from tests.race.racers import eventually

JSON = "application/json"
CASES: tuple[tuple[str, str, str, bytes], ...] = (
    ("no JSON", "/claims", JSON, b"{"),
    ("a number that is none", "/tasks", JSON, b'{"title": "t", "payload": NaN}'),
    ("nothing", "/claims", JSON, b""),
    ("another type", "/claims", "text/plain", b'{"worker": "w"}'),
    ("a field too many", "/claims", JSON, b'{"worker": "w", "nonsense": 1}'),
    ("neither one nor many", "/tasks", JSON, b'{"tasks": 3}'),
    ("no such task", f"/claims/{MISSING_TASK}/guard", JSON, b'{"token": "x"}'),
    ("no id", "/claims/t_1/guard", JSON, b'{"token": "x"}'),
    ("a parameter too many", "/claims?agent=a", JSON, b'{"worker": "w"}'),
    ("another noun", f"/runs/{MISSING_TASK}/complete", JSON, b"{}"),
    ("another slash", "/claims/", JSON, b'{"worker": "w"}'),
    ("it does", "/claims", JSON, b'{"worker": "w"}'),
    ("it does, with a charset", "/claims", f"{JSON}; charset=utf-8", b'{"worker": "w"}'),
)


@contextmanager
def beside(server: Served) -> Iterator[httpx.Client]:
    """The same application, without its short ways."""
    application = server.application
    whole = application.gate
    application.gate = Gate(application.app, application.server_state, GateRules())
    other = HttpServer(application, ListenAddress(port=0))
    application.gate = whole
    thread = threading.Thread(target=other.run)
    thread.start()
    headers = {"Authorization": f"Bearer {server.tokens['admin']}"}
    with httpx.Client(base_url=other.url + API, headers=headers, verify=PLAIN) as client:
        yield client
    other.stop()
    thread.join(30)


def test_a_mistake_in_a_call_is_told_as_the_framework_tells_it(quick_server: Served) -> None:
    def ask(client: httpx.Client, case: tuple[str, str, str, bytes]) -> tuple[int, str]:
        _, path, kind, body = case
        answer = client.post(path, content=body, headers={"Content-Type": kind})
        return answer.status_code, answer.text

    short = [ask(quick_server(), case) for case in CASES]
    with beside(quick_server) as client:
        assert [ask(client, case) for case in CASES] == short
    assert {status for status, _ in short} == {200, 307, 400, 404, 415, 422}


def test_a_token_that_another_process_revokes_is_refused_when_that_is_heard(
    server: Served, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_tokens, "GOOD_FOR", 3_600.0)
    viewer = server("viewer")
    assert [viewer.get("/runs").status_code for _ in range(2)] == [200, 200]
    assert server.application.server_state.tokens.find_cached(server.tokens["viewer"]) is not None
    with opened(store_url) as other:
        other.access.revoke("viewer")
        assert eventually(lambda: viewer.get("/runs").status_code == 401)


def test_a_call_does_not_wait_for_a_look_at_a_token_that_is_only_doubted(
    server: Served, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer, tokens = server("viewer"), server.application.server_state.tokens
    assert viewer.get("/runs").status_code == 200
    found, go_on = tokens.find_cached(server.tokens["viewer"]), threading.Event()
    assert found is not None
    whole = tokens.service.engine.access.find

    def find(secret: str) -> AccessToken | None:
        assert go_on.wait(30)
        return whole(secret)

    monkeypatch.setattr(known_tokens, "GOOD_FOR", 3_600.0)
    monkeypatch.setattr(known_tokens, "MIN_READ_INTERVAL", 0.0)
    monkeypatch.setattr(tokens.service.engine.access, "find", find)
    with opened(store_url) as other:
        other.access.revoke("viewer")
        tokens.service.engine.notifier.notify()
        # The look is under way, and whoever asks meanwhile is answered.
        assert [viewer.get("/runs").status_code for _ in range(3)] == [200] * 3
        go_on.set()
        assert eventually(lambda: viewer.get("/runs").status_code == 401)


def test_a_token_that_was_found_good_is_looked_at_again_after_a_second_whatever_was_heard(
    quick_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer, tokens = quick_server("viewer"), quick_server.application.server_state.tokens
    assert viewer.get("/runs").status_code == 200
    found = tokens.find_cached(quick_server.tokens["viewer"])
    assert found is not None
    later = found.at + known_tokens.GOOD_FOR
    monkeypatch.setattr(tokens.service.engine.clock, "monotonic", lambda: later)
    assert tokens.find_cached(quick_server.tokens["viewer"]) is None


def test_a_token_that_this_process_revokes_is_refused_at_once(quick_server: Served) -> None:
    viewer = quick_server("viewer")
    assert viewer.get("/runs").status_code == 200
    engine_of(quick_server.hf).access.revoke("viewer")
    assert viewer.get("/runs").status_code == 401
