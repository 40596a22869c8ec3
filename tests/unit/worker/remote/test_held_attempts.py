"""What a worker elsewhere remembers of the attempts it was given."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidInput
from holdfast.model.frozen_record import make_record
from holdfast.model.task import Assignment
from holdfast.worker.remote import sender
from holdfast.worker.remote.assignment_format import Prefetch
from holdfast.worker.remote.sender import HeldAttempts

AROUND = Prefetch(effects={}, needed={}, secrets=frozenset(), trace_id="a" * 32)


def test_an_attempt_that_runs_for_long_is_remembered_whatever_came_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "MOST_HELD", 3)
    held = HeldAttempts()
    for number in range(8):
        held.add(
            make_record(Assignment, {"task_id": f"t_{number}", "attempt": 1, "token": "1.x"}),
            AROUND,
        )
        # A worker asks of those that still run whether they were taken away.
        assert held.find_held([("t_0", 1), ("t_none", 1)]) == {("t_0", 1)}
    assert held.token("t_0", 1) == "1.x"
    with pytest.raises(InvalidInput, match="does not hold"):
        held.token("t_1", 1)
