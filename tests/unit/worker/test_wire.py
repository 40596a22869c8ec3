"""Assignments that travel to a worker elsewhere."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from holdfast.model.fill import fill
from holdfast.model.task import Assignment, Task
from holdfast.model.work import Work
from holdfast.worker.remote.wire import Around, pack, unpack

# What the rest is read from where the store is near.
AT_HOME = {"source", "row"}


def _assignment() -> tuple[Assignment, set[str]]:
    names = {each.name for each in fields(Assignment)} - AT_HOME
    task = fill(Task, {each.name: each.name for each in fields(Task)} | {"tags": ("a", "b")})
    values: dict[str, Any] = {name: name for name in names}
    own = {"task": task, "task_id": task.id, "name": task.step, "work": Work(command=("sh",))}
    return fill(Assignment, values | own), names


def test_an_assignment_arrives_with_every_field_it_has() -> None:
    sent, names = _assignment()
    around = Around(
        effects={"mail": 1}, needed={"plan": 2}, secrets=frozenset({"KEY"}), trace_id="a" * 32
    )
    got, beside = unpack(json.loads(json.dumps(pack(sent, around))))
    assert beside == around
    for name in names - {"task"}:
        assert getattr(got, name) == getattr(sent, name)
    assert got.task.tags == sent.task.tags
