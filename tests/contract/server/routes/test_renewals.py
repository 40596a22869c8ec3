"""Several leases kept with one call: each stands for itself, whatever becomes of the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast import InvalidInput, NewTask, StoreBusy
from holdfast.engine.engine import engine_of
from holdfast.model.task import Renewal
from tests.contract.server.local_server import Served, served
from tests.contract.server.remote.test_remote_worker import full

BUSY = {"ok": False, "reason": "store_unavailable", "detail": "it is not written yet; ask again"}


@contextmanager
def locked(server: Served, task_id: str) -> Iterator[None]:
    """An application's transaction that makes something need a task, and takes its time."""
    engine = engine_of(server.hf)
    with engine.transaction() as connection:
        engine.tasks.create(NewTask(title="after", needs=(task_id,)), connection=connection)
        yield


def held(server: Served, count: int) -> list[dict[str, Any]]:
    for number in range(count):
        server.add(f"task {number}")
    return [
        {"task_id": each["task"]["id"], "token": each["token"]} for each in server.claim(max=count)
    ]


def renewed(server: Served, *leases: dict[str, Any]) -> list[dict[str, Any]]:
    told = server("worker").post("/claims/renew", json={"leases": leases})
    assert told.status_code == 200, told.text
    found: list[dict[str, Any]] = told.json()["leases"]
    assert [each.pop("task_id") for each in found] == [each["task_id"] for each in leases]
    return found


def test_a_renewal_that_waits_for_a_locked_row_keeps_no_other_waiting(
    postgres_store_url: str, tmp_path: Path
) -> None:
    with served(postgres_store_url, tmp_path / "home") as server:
        first, second = held(server, 2)
        before = server.hf.tasks.get(second["task_id"]).lease
        with locked(server, first["task_id"]):
            began = time.monotonic()
            assert renewed(server, first, second) == [BUSY, {"ok": True}]
            # Long before the one that waits is given up.
            assert time.monotonic() - began < 5
            after = server.hf.tasks.get(second["task_id"]).lease
            assert before is not None
            assert after is not None
            assert after.expires_at > before.expires_at
        assert renewed(server, first, second) == [{"ok": True}, {"ok": True}]


def test_an_outage_for_every_lease_is_the_answer_to_the_call(
    postgres_store_url: str, tmp_path: Path
) -> None:
    with served(postgres_store_url, tmp_path / "home") as server:
        lease, other = held(server, 2)
        wrong = {**other, "usage": {"tokens": -1}}
        with locked(server, lease["task_id"]):
            body = {"leases": [lease], "lease_seconds": 1}
            told = server("worker").post("/claims/renew", json=body)
            mixed = server("worker").post("/claims/renew", json={**body, "leases": [lease, wrong]})
        assert (told.status_code, told.json()["code"]) == (503, "store_unavailable")
        reasons = [each["reason"] for each in mixed.json()["leases"]]
        assert reasons == ["store_unavailable", "invalid_input"]


def test_a_renewal_that_cannot_be_accepted_costs_no_other_its_lease(server: Served) -> None:
    first, second, third = held(server, 3)
    wrong = {**first, "usage": {"usd": 1, "tokens": -1}, "progress": "half"}
    stale = {**third, "token": f"9.{third['token'].partition('.')[2]}"}
    bad, kept, refused = renewed(server, wrong, {**second, "progress": "half"}, stale)
    assert (bad["ok"], bad["reason"], kept) == (False, "invalid_input", {"ok": True})
    assert bad["detail"].startswith("usage.tokens: ")
    assert refused == {"ok": False, "reason": "stale_token"}
    noted = [server.hf.tasks.get(each["task_id"]).progress for each in (first, second)]
    assert noted == [None, "half"]


def test_a_worker_elsewhere_hears_of_each_of_its_leases_by_itself(
    postgres_store_url: str, tmp_path: Path
) -> None:
    with served(postgres_store_url, tmp_path / "home") as server:
        for _ in range(3):
            server.add(step="pack")
        with full(server, places=3) as far:
            renewals = [Renewal(task_id=each.task_id, token=each.token) for each in far.got]
            bad = replace(renewals[2], usage={"tokens": -1})
            with locked(server, renewals[0].task_id):
                waits, kept, wrong = far.office.work.renew_each([*renewals[:2], bad])
                assert isinstance(waits.exception(), StoreBusy)
                assert kept.result().ok
                error = wrong.exception()
                assert isinstance(error, InvalidInput)
                assert error.field == "usage.tokens"
            assert all(each.result().ok for each in far.office.work.renew_each(renewals))
