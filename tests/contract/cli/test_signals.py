"""Signals on the command line: what waits for them, and what to type."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.model.effect import Wait
from tests.contract.cli.typed import Typed
from tests.contract.stages import FORK, create, start, take


def suspend(engine: Engine, task_id: str, target: str, *signals: str) -> None:
    attempt = take(engine, task_id)
    assert engine.work.suspend(task_id, attempt.token, Wait(target=target, signals=signals)).ok


def test_why_says_what_to_type_for_each_signal_that_is_waited_for(
    engine: Engine, typed: Typed
) -> None:
    run, lone = start(engine, FORK), create(engine)
    run.finish("plan")
    suspend(engine, run.steps["left"], run.id, "courier.arrived", "order.cancelled")
    suspend(engine, run.steps["right"], run.id, "paid")
    suspend(engine, lone, lone, "go")
    of_left = [
        f"holdfast signal {run.id} courier.arrived [PAYLOAD]",
        f"holdfast signal {run.id} order.cancelled [PAYLOAD]",
    ]
    of_right = [f"holdfast signal {run.id} paid [PAYLOAD]"]
    assert typed.json("why", run.steps["left"])["fixes"] == of_left
    assert typed.json("why", run.id)["fixes"] == of_left + of_right
    assert f"Fix:   {of_right[0]}\n" in typed.ok("why", run.id)
    assert typed.json("why", lone)["fixes"] == [f"holdfast signal {lone} go [PAYLOAD]"]
