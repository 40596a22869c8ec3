"""The envelope: refused at the edge, whole on the way, one trace through all that follows."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from holdfast.bus.envelope import MAX_PAYLOAD, Envelope, make_schema, read_envelope, write_envelope
from holdfast.errors import InvalidInput

TOLD: dict[str, Any] = {
    "message_id": "m-1",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "span_id": "00f067aa0ba902b7",
    "causation_id": "m-0",
    "correlation_id": "c-1",
    "run_id": "r_" + "0" * 20,
    "task_id": "t_" + "0" * 20,
    "step": "build",
    "agent": "developer",
    "type": "task.done",
    "created_at": "2026-11-15T19:21:52.123456Z",
    "payload": {"a": [1, None, "ü"]},
}
LEAST = {name: TOLD[name] for name in ("message_id", "trace_id", "type", "created_at")}
BAD: list[tuple[str, object]] = [
    ("message_id", ""),
    ("message_id", 7),
    ("message_id", "m" * 201),
    ("trace_id", "0" * 32),
    ("trace_id", TOLD["trace_id"].upper()),
    ("trace_id", TOLD["trace_id"][1:]),
    ("span_id", "0" * 16),
    ("span_id", "xyz"),
    ("run_id", "t_" + "0" * 20),
    ("run_id", ["r_"]),
    ("task_id", "t_1"),
    ("type", "two words"),
    ("agent", " "),
    ("step", "s" * 201),
    ("created_at", "2026-11-15T19:21:52"),
    ("created_at", "yesterday"),
    ("created_at", "0001-01-01T00:00:00+23:59"),
    ("created_at", "9999-12-31T23:59:59-23:59"),
    ("created_at", 1),
]
SCHEMA = jsonschema.Draft202012Validator(
    make_schema(), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)


def test_an_envelope_that_is_written_is_read_as_it_was() -> None:
    envelope = read_envelope(TOLD)
    assert json.loads(write_envelope(envelope)) == TOLD
    assert read_envelope(write_envelope(envelope)) == envelope


def test_a_missing_field_is_not_written_and_null_counts_as_missing() -> None:
    assert json.loads(write_envelope(read_envelope(LEAST))) == {**LEAST, "payload": None}
    assert read_envelope({**LEAST, "step": None, "newer": 1}) == read_envelope(LEAST)


@pytest.mark.parametrize("name", LEAST)
def test_an_envelope_without_what_it_needs_is_refused_by_that_name(name: str) -> None:
    told = {each: value for each, value in TOLD.items() if each != name}
    with pytest.raises(InvalidInput, match=rf"^{name}: is missing"):
        read_envelope(told)
    assert not SCHEMA.is_valid(told)


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_field_that_does_not_fit_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=rf"^{name}:"):
        read_envelope({**TOLD, name: value})


@pytest.mark.parametrize(
    ("name", "value"), [each for each in BAD if each[0] != "created_at" or each[1] == 1]
)
def test_the_schema_refuses_what_the_reader_refuses(name: str, value: object) -> None:
    assert SCHEMA.is_valid(TOLD)
    assert SCHEMA.is_valid(LEAST)
    assert not SCHEMA.is_valid({**TOLD, name: value})


@pytest.mark.parametrize("given", ["{", "[]", "7", b"\xff", None])
def test_an_envelope_that_is_no_object_is_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match=r"^envelope:"):
        read_envelope(given)


def test_a_payload_beyond_its_limit_or_without_json_is_refused() -> None:
    for payload in ("x" * MAX_PAYLOAD, {"a": float("nan")}, {"a": "\x00"}):
        with pytest.raises(InvalidInput, match=r"^payload"):
            read_envelope({**TOLD, "payload": payload})
    with pytest.raises(InvalidInput, match=r"^payload"):
        write_envelope(Envelope(**{**LEAST, "created_at": 1}, payload=object()))


def test_a_message_that_follows_another_is_in_its_trace_and_the_same_each_time() -> None:
    first = read_envelope({**TOLD, "correlation_id": None})
    second = first.follow("build.noted", {"ok": True}, created_at=5)
    third = second.follow("build.told", None, created_at=6)
    assert second == first.follow("build.noted", {"ok": True}, created_at=5)
    assert {each.trace_id for each in (first, second, third)} == {TOLD["trace_id"]}
    assert (second.causation_id, third.causation_id) == ("m-1", second.message_id)
    assert (second.correlation_id, third.correlation_id) == ("m-1", "m-1")
    assert len({each.message_id for each in (first, second, third)}) == 3
    assert len({each.span_id for each in (first, second, third)}) == 3
    assert read_envelope(write_envelope(third)) == third


@pytest.mark.parametrize(
    "payload", ["NaN", "[Infinity]", '"\\u0000"', '"\\ud800"', "[" * 101 + "]" * 101, "1e999"]
)
def test_a_text_is_refused_as_what_it_says_would_be(payload: str) -> None:
    text = json.dumps({**LEAST, "payload": None}).replace("null", payload)
    with pytest.raises(InvalidInput, match=r"^(?:payload|envelope)"):
        read_envelope(text)
