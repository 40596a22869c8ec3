"""Two servers on one PostgreSQL, one of which is killed: the work goes on at the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.acceptance.terminals import PATIENCE
from tests.acceptance.test_serving import serving


def test_what_a_killed_server_gave_out_is_reported_to_another(
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
