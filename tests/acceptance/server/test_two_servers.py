"""Two servers on one store: one is killed and work goes on; a token is revoked at both."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.acceptance.server.test_server import serving
from tests.acceptance.terminals import PATIENCE, holdfast
from tests.race.racers import eventually


def test_a_task_given_out_by_a_killed_server_is_reported_to_another_server(
    tmp_path: Path, postgres_store_url: str
) -> None:
    (tmp_path / ".holdfast").mkdir()
    store = {"HOLDFAST_DB": postgres_store_url}
    with (
        serving(tmp_path, "serve", **store) as (doomed, first),
        serving(tmp_path, "serve", **store) as (_, second),
        ThreadPoolExecutor() as pool,
    ):
        task = first.post("/tasks", json={"title": "held"}).json()["id"]
        asked = {"worker": "w", "request_id": "one"}
        (got,) = first.post("/claims", json=asked).json()["assignments"]
        waits = {"worker": "other", "wait_seconds": PATIENCE}
        waiting = pool.submit(second.post, "/claims", json=waits)
        doomed.kill()
        doomed.wait(PATIENCE)
        (again,) = second.post("/claims", json=asked).json()["assignments"]
        assert (again["task"]["id"], again["token"]) == (task, got["token"])
        done = second.post(f"/claims/{task}/complete", json={"token": got["token"]}).json()
        assert (done["ok"], done["task"]["status"]) == (True, "done")
        later = second.post("/tasks", json={"title": "later"}).json()["id"]
        (given,) = waiting.result(PATIENCE).json()["assignments"]
        assert given["task"]["id"] == later


def enter(url: str, link: str) -> dict[str, str]:
    """The cookie of a browser that follows a link."""
    with httpx.Client(base_url=url) as browser:
        assert browser.post("/enter", data={"code": link.partition("code=")[2]}).status_code == 200
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}


def follow_until_the_end(url: str, headers: dict[str, str]) -> float:
    """When a stream of events has ended."""
    place = f"{url}/api/v1/stream"
    with httpx.stream("GET", place, headers=headers, timeout=PATIENCE) as answer:
        assert answer.status_code == 200, answer.read()
        assert list(answer.iter_lines())
    return time.monotonic()


def wait_until_refused(url: str, headers: dict[str, str]) -> float:
    """When somebody who waits for work is sent away."""
    asked = {"worker": "w", "wait_seconds": PATIENCE}
    told = httpx.post(f"{url}/api/v1/claims", json=asked, headers=headers, timeout=PATIENCE * 2)
    assert told.status_code == 401, told.text
    return time.monotonic()


def are_open(url: str, headers: dict[str, str]) -> bool:
    told = httpx.get(f"{url}/metrics", headers=headers).text
    return all(each in told for each in ("stream_readers 2.0\n", "long_polls 1.0\n"))


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_calls_that_are_open_with_a_revoked_token_end_within_a_second_at_every_server(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    store: dict[str, str] = {}
    if database == "postgresql":
        (tmp_path / ".holdfast").mkdir()
        store["HOLDFAST_DB"] = request.getfixturevalue("postgres_store_url")
    else:
        holdfast(tmp_path, "init", "--bare")
    with (
        ThreadPoolExecutor(6) as pool,
        serving(tmp_path, "serve", **store) as (_, first),
        serving(tmp_path, "serve", **store) as (_, second),
    ):
        tokens = {
            role: first.post("/tokens", json={"name": role, "role": role}).json()["token"]
            for role in ("viewer", "worker")
        }
        shown = {role: {"Authorization": f"Bearer {each}"} for role, each in tokens.items()}
        calls = list[Future[float]]()
        for client in (first, second):
            url = str(client.base_url).removesuffix("/api/v1/")
            cookie = enter(url, client.post("/links", headers=shown["viewer"]).json()["path"])
            calls += [
                pool.submit(follow_until_the_end, url, shown["viewer"]),
                pool.submit(follow_until_the_end, url, cookie),
                pool.submit(wait_until_refused, url, shown["worker"]),
            ]
            assert eventually(partial(are_open, url, dict(client.headers)))
        # Another process than either: what anybody types at the store.
        for name in tokens:
            assert holdfast(tmp_path, "token", "revoke", name, **store).returncode == 0
        revoked = time.monotonic()
        took = [each.result(PATIENCE) - revoked for each in calls]
        assert max(took) < 1, took
