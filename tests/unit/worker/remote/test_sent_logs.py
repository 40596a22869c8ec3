"""The log of a step that ran elsewhere: sent before its report, and never the step's trouble."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.errors import HoldfastError, InvalidInput, StoreUnreachable
from holdfast.worker.attempt.execution import Invocation
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.remote.allowlist import LoggedStep

TASK = "t_00000000000000000001"


class Wire:
    """A server that gives each of some answers once, and takes whatever comes after them."""

    def __init__(self, *answers: HoldfastError) -> None:
        self._answers = list(answers)
        self.took: list[str] = []

    def transition(self, path: str, said: dict[str, str], **_: type) -> None:
        if self._answers:
            raise self._answers.pop(0)
        self.took.append(f"{path} {said['chunk']}")


def step(wire: Wire, folder: Path, clock: ManualClock, *, lease: float = 30) -> object:
    state = StateDirectory(root=folder)
    path = state.log(TASK, 1).path
    path.parent.mkdir(parents=True)
    path.write_text("on it")

    class Tenure:
        @property
        def ended(self) -> bool:
            return clock.monotonic() >= lease

    held: Any = (SimpleNamespace(task_id=TASK, attempt=1, token="1.x"), Tenure())
    made = Invocation(
        function=lambda: "done", arguments={}, encode=lambda value: value, asynchronous=False
    )
    client: Any = wire
    return LoggedStep(made, client, state, held, clock=clock)()


def test_a_log_is_sent_again_until_the_server_is_back(tmp_path: Path) -> None:
    wire = Wire(StoreUnreachable("away"), StoreUnreachable("away"))
    assert step(wire, tmp_path, ManualClock()) == "done"
    assert wire.took == [f"/claims/{TASK}/logs on it"]


@pytest.mark.parametrize("error", [InvalidInput("chunk", "is too long"), HoldfastError("odd")])
def test_a_log_that_is_refused_costs_the_step_nothing(tmp_path: Path, error: HoldfastError) -> None:
    assert step(Wire(error), tmp_path, ManualClock()) == "done"


def test_a_log_is_sent_no_longer_than_the_lease_lasts(tmp_path: Path) -> None:
    clock, wire = ManualClock(), Wire(*[StoreUnreachable("away")] * 100)
    assert step(wire, tmp_path, clock, lease=3) == "done"
    assert clock.monotonic() == 3
