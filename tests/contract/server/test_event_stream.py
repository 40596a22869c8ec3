"""Events as they come: resumed where a reader was, and a gap told to one that is too slow."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from holdfast.engine.engine import engine_of
from holdfast.errors import StoreUnreachable
from holdfast.server import event_stream, open_calls
from holdfast.server.open_calls import OpenCalls
from holdfast.service.queries import history
from holdfast.service.queries.history import Cursor, EventWithCursor, History
from tests.contract.raw_store import raw
from tests.contract.server.browser import follow
from tests.contract.server.local_server import Served, served
from tests.engines import opened
from tests.race.racers import eventually

Frame = tuple[str, str, dict[str, Any]]


@contextmanager
def reading(server: Served, **options: Any) -> Iterator[Iterator[Frame]]:
    with server("viewer").stream("GET", "/stream", **options) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _frames(answer)


def _frames(answer: httpx.Response) -> Iterator[Frame]:
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "id" in fields:
            yield fields.get("event", ""), fields["id"], json.loads(fields.get("data", "{}"))
            fields = {}


def test_a_reader_hears_what_comes_and_goes_on_where_it_was(server: Served) -> None:
    server.add("before")
    with reading(server) as frames:
        kind, begun, told = next(frames)
        assert (kind, told) == ("", {})
        first = server.add("first")
        kind, place, event = next(frames)
        assert (kind, event["type"], event["task_id"]) == ("event", "task.created", first["id"])
        assert event["title"] == "first"
    missed = [server.add(title)["id"] for title in ("second", "third")]
    with reading(server, headers={"Last-Event-ID": place}) as frames:
        next(frames)
        heard = [next(frames)[2]["task_id"] for _ in missed]
        assert heard == missed
        fourth = server.add("fourth")
        assert next(frames)[2]["task_id"] == fourth["id"]
    server.add("heard by nobody")
    with reading(server) as frames:
        next(frames)
        last = server.add("last")
        assert next(frames)[2]["task_id"] == last["id"]
    with reading(server, headers={"Last-Event-ID": begun}) as frames:
        next(frames)
        assert next(frames)[2]["task_id"] == first["id"]
    refused = server("viewer").get("/stream", headers={"Last-Event-ID": "nonsense"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")


def test_a_reader_that_is_too_slow_is_told_of_its_gap_and_goes_on(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MAX_WAITING_BYTES", 1)
    with reading(server) as frames:
        next(frames)
        server.add()
        kind, place, told = next(frames)
        assert (kind, place) == ("gap", told["go_on_after"])
        missed = server("viewer").get("/events", params={"after": told["missed_after"]}).json()
        assert [each["type"] for each in missed["items"]] == ["task.created"]
        assert missed["next"] == told["go_on_after"]


def test_a_stream_ends_when_the_server_drains(quick_server: Served) -> None:
    with reading(quick_server) as frames:
        next(frames)
        quick_server.drain()
        assert list(frames) == []


def test_a_token_that_is_revoked_reads_no_longer_however_much_comes(
    quick_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "KEEPALIVE_INTERVAL", 0.01)
    server = quick_server
    token = server("admin").post("/tokens", json={"name": "v", "role": "viewer"}).json()["token"]
    with server.client(token) as client, client.stream("GET", "/stream") as answer:
        lines = answer.iter_lines()
        next(lines)
        assert server("admin").delete("/tokens/v").status_code == 200
        # It ends by itself: what is read here would go on for ever.
        assert sum("data" in each for each in lines) < 5


def test_a_stream_ends_within_a_second_of_its_token_where_no_hint_comes(
    server: Served, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenCalls, "_hint", lambda _: None)
    with reading(server) as frames, opened(store_url) as elsewhere:
        next(frames)
        elsewhere.access.revoke("viewer")
        revoked = time.monotonic()
        assert list(frames) == []
        assert time.monotonic() - revoked < 1


@pytest.mark.parametrize("error", [StoreUnreachable("away"), ValueError("odd")])
def test_while_nobody_can_tell_which_tokens_are_good_a_stream_goes_on(
    quick_server: Served, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(open_calls, "CHECK_INTERVAL", 0.02)
    server, asked = quick_server, list[Sequence[str]]()
    good = engine_of(server.hf).access.good_among

    def fail_first(digests: Sequence[str]) -> frozenset[str]:
        asked.append(digests)
        if len(asked) == 1:
            raise error
        return good(digests)

    monkeypatch.setattr(engine_of(server.hf).access, "good_among", fail_first)
    with reading(server) as frames:
        next(frames)
        assert eventually(lambda: len(asked) > 1)
        task = server.add()
        assert next(frames)[2]["task_id"] == task["id"]
        server().delete("/tokens/viewer")
        assert list(frames) == []


def test_a_token_that_is_revoked_while_it_catches_up_reads_no_further(
    quick_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "PAGE", 2)
    server, after, looks = quick_server, History.events_after, list[int]()
    with reading(server) as frames:
        _, begun, _ = next(frames)
    for number in range(20):
        server.add(str(number))
    calls = server.application.server_state.open_calls
    # The first stream is over here before it is over in the server, where its looks would count.
    assert eventually(lambda: not vars(calls)["_open"])

    def revoke_after_the_first(self: History, cursor: Cursor, count: int) -> list[EventWithCursor]:
        looks.append(count)
        if len(looks) == 2:
            engine_of(server.hf).access.revoke("viewer")
            assert eventually(lambda: calls.ended == 1)
        return after(self, cursor, count)

    monkeypatch.setattr(History, "events_after", revoke_after_the_first)
    with reading(server, headers={"Last-Event-ID": begun}) as frames:
        assert len([kind for kind, _, _ in frames if kind == "event"]) <= 2


def test_a_stream_of_a_run_that_is_not_there_is_not_found(quick_server: Served) -> None:
    for run in ("r_" + "0" * 20, "nothing"):
        with quick_server("viewer").stream("GET", "/stream", params={"run": run}) as answer:
            assert answer.status_code == 404
            assert json.loads(answer.read())["code"] == "not_found"


def test_a_browser_that_has_left_reads_no_longer(quick_server: Served) -> None:
    with follow(quick_server) as browser, browser.stream("GET", "/api/v1/stream") as answer:
        lines = answer.iter_lines()
        next(lines)
        proof = {"X-Holdfast-CSRF": browser.get("/api/v1/session").json()["csrf"]}
        assert browser.delete("/api/v1/session", headers=proof).status_code == 200
        assert sum("data" in each for each in lines) < 5


def test_a_look_at_the_history_that_fails_is_followed_by_the_next_one(
    quick_server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    find, broken = History.events_after, Event()

    def break_once(self: History, cursor: Cursor, limit: int) -> list[EventWithCursor]:
        if broken.is_set():
            return find(self, cursor, limit)
        broken.set()
        raise RuntimeError("odd")

    with reading(quick_server) as frames:
        next(frames)
        monkeypatch.setattr(History, "events_after", break_once)
        task = quick_server.add()
        assert next(frames)[2]["task_id"] == task["id"]
    assert broken.is_set()
    assert "odd" in caplog.text


def test_a_reader_that_goes_on_waits_where_gaps_block_and_skips_nothing(
    postgres_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(history, "MAX_GAPS", 3)
    monkeypatch.setattr(history, "MAX_EVENTS_LOOKED_BACK", 2)
    url = postgres_store_url
    with served(url, tmp_path / "home", poll=0.01) as server, raw(url) as other:
        other("BEGIN")
        other("SELECT pg_current_xact_id()")
        added = []
        for number in range(8):
            added.append(server.add(f"task {number}")["id"])
            other("SELECT nextval('holdfast_event_seq_seq')")
        with reading(server, params={"after": "0"}) as frames:
            next(frames)
            for each in added[:4]:
                assert next(frames)[2]["task_id"] == each
            last = server.add("last")["id"]
            other("COMMIT")
            for each in (*added[4:], last):
                assert next(frames)[2]["task_id"] == each
