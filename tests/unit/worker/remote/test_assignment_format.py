"""Assignments that travel to a worker elsewhere."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.model.frozen_record import make_record
from holdfast.model.moment import to_datetime
from holdfast.model.task import Assignment, Task
from holdfast.model.workflow.declarations import HttpCall, Merge, StepWork, Workspace
from holdfast.worker.remote.assignment_format import Prefetch, pack_assignment, unpack_assignment

# What the rest is read from where the store is near.
AT_HOME = {"source", "row"}
TASK, RUN = "t_00000000000000000001", "r_00000000000000000001"
AROUND = Prefetch(
    effects={"mail": 1}, needed={"plan": 2}, secrets=frozenset({"KEY"}), trace_id="a" * 32
)
OF_TASK: dict[str, Any] = {
    "id": TASK,
    "run_id": RUN,
    "step": "build.2.test",
    "title": "Test it",
    "agent": "tester",
    "item": 2,
    "timeout": 1.5,
    "payload": {"a": 1},
    "created_at": to_datetime(5),
    "attempt": 3,
    "failures": 1,
    "lost": 1,
    "epoch": 2,
    "round": 1,
    "tags": ("a", "b"),
}
WORK = StepWork(
    prompt="say {{ x }}",
    command=("sh", "-c", "true"),
    env={"W": "w"},
    cwd="/work",
    outputs={"type": "object"},
    idle_timeout=2.5,
    access="edit",
    merge=Merge(into="main", strategy="squash"),
    landing=True,
    workspace=Workspace(git="/repo", start="main", setup=("npm", "ci"), copy=(".env",), keep=9.5),
    line="build",
    later={"command.1": ("-", "env.HOME", "")},
)
OWN: dict[str, Any] = {
    "task_id": TASK,
    "attempt": 3,
    "expires_at": to_datetime(9),
    "run_id": RUN,
    "step": "test",
    "item_number": 2,
    "timeout": 1.5,
    "workflow": "flow",
    "workflow_version": "ab12",
    "is_step": True,
    "usd_per_attempt": 0.5,
    "token": f"3.{'0' * 32}",
    "name": "build.2.test",
    "epoch": 2,
    "payload": {"a": 1},
    "input": "in",
    "item": ["x"],
    "needs": {"plan": {"b": 2}},
    "feedback": "again",
    "own_feedback": None,
    "work": WORK,
}


def _assignment(work: StepWork = WORK) -> Assignment:
    assert OWN.keys() == {each.name for each in fields(Assignment)} - AT_HOME - {"task"}
    task = make_record(Task, dict(OF_TASK))
    return make_record(Assignment, {**OWN, "work": work, "task": task})


def _packed(work: StepWork = WORK) -> dict[str, Any]:
    return dict(json.loads(json.dumps(pack_assignment(_assignment(work), AROUND))))


def test_an_assignment_arrives_with_every_field_it_has() -> None:
    sent = _assignment()
    got, beside = unpack_assignment(_packed())
    assert beside == AROUND
    for name in OWN:
        assert getattr(got, name) == getattr(sent, name)
    for name, value in OF_TASK.items():
        assert getattr(got.task, name) == value


def test_a_call_arrives_as_it_is() -> None:
    call = HttpCall(url="https://a.test", headers={"X-Y": "z"}, body={"a": [1]})
    got, _ = unpack_assignment(_packed(StepWork(http=call)))
    assert got.work == StepWork(http=call)


LIES: list[tuple[str, object]] = [
    ("task.id", "../../../victim/data"),
    ("task.id", f"{TASK}\n"),
    ("task.id", RUN),
    ("task.id", None),
    ("task.run_id", "../x"),
    ("own.run_id", "r_1/../.."),
    ("attempt", "1/../../victim"),
    ("attempt", 1.5),
    ("attempt", True),
    ("attempt", 0),
    ("attempt", 10**30),
    ("token", f"4.{'0' * 32}"),
    ("token", "3.x\r\nHost: other"),
    ("token", None),
    ("expires_at", "soon"),
    ("tags", "ab"),
    ("tags", ["../x"]),
    ("trace_id", "a" * 31 + "\n"),
    ("secrets", [1]),
    ("effects", []),
    ("needed", None),
    ("task.step", "a\nb"),
    ("task.epoch", -1),
    ("task.timeout", float("nan")),
    ("task.timeout", 0),
    ("own.timeout", 10**400),
    ("own.workflow", {"a": 1}),
    ("own.is_step", 1),
    ("own.item_number", "1"),
    ("own.usd_per_attempt", float("inf")),
    ("values.needs", [1]),
    ("values.payload", "\ud800"),
    ("values.input", float("nan")),
    ("work", "sh"),
    ("work.command", []),
    ("work.command", "sh"),
    ("work.command", ["sh\0"]),
    ("work.env", {"A=B": "c"}),
    ("work.env", {"A": 1}),
    ("work.env", ["A"]),
    ("work.later", {"command.0": ["", "task.id", ""]}),
    ("work.later", {"command.0": "prompt"}),
    ("work.idle_timeout", -1),
    ("work.cwd", 1),
    ("work.cwd", "/a\0b"),
    ("work.outputs", [1]),
    ("work.http", {"url": 1, "method": "GET", "headers": {}, "body": None}),
    ("work.http", {"url": "http://a", "method": "CONNECT", "headers": {}, "body": None}),
    ("work.http", {"url": "http://a", "method": "GET", "headers": {"A\r\nB": "c"}, "body": None}),
]


@pytest.mark.parametrize(("place", "lie"), LIES, ids=[f"{p}-{v!r}"[:50] for p, v in LIES])
def test_a_field_that_no_server_of_holdfast_gives_is_refused(place: str, lie: object) -> None:
    packed = _packed()
    *outer, name = place.split(".")
    inner = packed
    for each in outer:
        inner = inner[each]
    inner[name] = lie
    with pytest.raises(InvalidInput):
        unpack_assignment(packed)


def test_a_title_of_several_lines_is_one_line_in_a_log() -> None:
    packed = _packed()
    packed["task"] |= {"step": None, "title": "one\ntwo\x1b[31m"}
    got, _ = unpack_assignment(packed)
    assert got.name == "one two [31m"
