"""Parked messages over HTTP, by the same functions as on the command line."""

from __future__ import annotations

from dataclasses import replace

from holdfast.bus import Channel, Consumer, ConsumerOptions, Handler, Park, SqlBus, Subscription
from holdfast.engine.engine import engine_of
from tests.contract.bus.worlds import RUNS, message
from tests.contract.server.local_server import Served

COMMANDS = Subscription(channel=Channel.COMMANDS, group="service")
HANDLER = "service/pay"


def refuse(*_: object) -> None:
    raise Park("no account")


def _consume(server: Served, *names: str, payload: object = None) -> None:
    """Have a handler fail on messages for good, each about a run of its own."""
    engine = engine_of(server.hf)
    bus = SqlBus(engine)
    if names:
        told = [message(name, run) for name, run in zip(names, RUNS, strict=False)]
        bus.publish_command(Channel.COMMANDS, *(replace(each, payload=payload) for each in told))
    handlers = [Handler(name="pay", handle=refuse)]
    consumer = Consumer(engine, bus, COMMANDS, handlers, ConsumerOptions(name="service-1"))
    consumer.drain()
    consumer.close()
    bus.close()


def test_parked_messages_are_listed_replayed_and_dropped(server: Served) -> None:
    viewer, operator = server("viewer"), server("operator")
    assert viewer.get("/bus/parked").json() == {"items": []}
    _consume(server, "m1", "m2")
    page = viewer.get("/bus/parked", params={"limit": 1}).json()
    assert [each["message_id"] for each in page["items"]] == ["m1"]
    assert page["items"][0]["error"] == "Park: no account"
    rest = viewer.get("/bus/parked", params={"after": page["next"]}).json()["items"]
    assert [each["message_id"] for each in rest] == ["m2"]

    first = {"handler": HANDLER, "message_id": "m1"}
    replayed = operator.post("/bus/parked/replay", json=first)
    assert (replayed.status_code, replayed.json()["ok"]) == (200, True)
    again = operator.post("/bus/parked/replay", json=first)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")
    states = [each["state"] for each in viewer.get("/bus/parked").json()["items"]]
    assert states == ["replayed", "parked"]
    _consume(server)
    for name in ("m1", "m2"):
        body = {"handler": HANDLER, "message_id": name}
        assert operator.post("/bus/parked/drop", json=body).json()["ok"]
    assert viewer.get("/bus/parked", params={"all": True}).json() == {"items": []}


def test_a_token_in_a_parked_message_is_shown_to_nobody(server: Served) -> None:
    payload = {"token": "1.secret", "more": [{"Token": ["1.secret"], "output": "told"}]}
    _consume(server, "m1", payload=payload)
    answer = server("viewer").get("/bus/parked")
    assert "secret" not in answer.text
    shown = answer.json()["items"][0]["envelope"]["payload"]
    assert shown == {"token": "***", "more": [{"Token": "***", "output": "told"}]}


def test_only_roles_that_may_steer_replay_and_drop_messages(server: Served) -> None:
    body = {"handler": HANDLER, "message_id": "m1"}
    for verb in ("replay", "drop"):
        for role in ("viewer", "worker"):
            refused = server(role).post(f"/bus/parked/{verb}", json=body)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        odd = server("operator").post(f"/bus/parked/{verb}", json={**body, "handler": "\x00"})
        assert (odd.status_code, odd.json()["field"]) == (422, "handler")
    assert server("worker").get("/bus/parked").status_code == 403
