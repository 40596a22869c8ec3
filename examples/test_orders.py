"""Tests of the web application in orders.py, as its authors would write them.

Run them, in this folder:   pip install pytest fastapi httpx, then pytest test_orders.py
"""

from __future__ import annotations

from fastapi.testclient import TestClient
from orders import app, hf, ship

from holdfast.testing import Harness


def test_an_order_is_shipped_once(harness: Harness) -> None:
    with TestClient(app) as client:
        placed = client.post("/orders", json={"product": "tea", "amount": 4}).json()
        harness.assert_enqueued(ship, product="tea", amount=4)
        harness.run_until_idle()
        found = client.get(f"/orders/{placed['task']}").json()
    assert found == {"status": "done", "output": f"4 tea shipped for {placed['order']}"}
    harness.assert_ran_once(ship)


def test_an_order_beyond_the_stock_leaves_nothing_behind(harness: Harness) -> None:
    with TestClient(app) as client:
        assert client.post("/orders", json={"product": "tea", "amount": 11}).status_code == 409
        harness.assert_not_enqueued(ship)


def test_an_order_is_shipped_though_the_carrier_is_down_at_first(harness: Harness) -> None:
    harness.stub(ship, ConnectionError("the carrier is down"), "shipped at last")
    with TestClient(app) as client:
        placed = client.post("/orders", json={"product": "tea", "amount": 4}).json()
        assert harness.run_to_end(hf.handle(placed["task"])) == "shipped at last"


def test_an_order_is_shipped_though_the_worker_dies(harness: Harness) -> None:
    harness.crash(ship)
    with TestClient(app) as client:
        placed = client.post("/orders", json={"product": "tea", "amount": 4}).json()
        harness.run_until_idle()
        assert client.get(f"/orders/{placed['task']}").json()["status"] == "done"
    harness.assert_ran(ship, times=2)
