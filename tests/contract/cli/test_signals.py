"""Signals on the command line: what waits for them, and what to type."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.effect import WakeCondition
from holdfast.service.commands import commands
from tests.contract.called_workflows import LAST, begin, call, of
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import FORK, create, start, take


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: these are the queries of the service."""
    return store_url


def suspend(engine: Engine, task_id: str, target: str, *signals: str) -> None:
    attempt = take(engine, task_id)
    assert engine.work.suspend(
        task_id, attempt.token, WakeCondition(target=target, signals=signals)
    ).ok


def ways(target: str, signal: str) -> list[str]:
    """What to type for a signal, with and without a payload."""
    return [f"holdfast signal {target} {signal}{more}" for more in ("", " '<payload>'")]


def test_why_says_what_to_type_for_each_signal_that_is_waited_for(
    engine: Engine, typed: Typed
) -> None:
    run, lone = start(engine, FORK), create(engine)
    run.finish("plan")
    suspend(engine, run.steps["left"], run.id, "courier.arrived", "order.cancelled")
    suspend(engine, run.steps["right"], run.id, "paid")
    suspend(engine, lone, lone, "go")
    of_left = [*ways(run.id, "courier.arrived"), *ways(run.id, "order.cancelled")]
    of_right = ways(run.id, "paid")
    assert typed.json("why", run.steps["left"])["fixes"] == of_left
    assert typed.json("why", run.id)["fixes"] == of_left + of_right
    assert f"Fix:   {of_right[0]}\n" in typed.ok("why", run.id)
    assert typed.json("why", lone)["fixes"] == ways(lone, "go")
    refused = typed.refused(2, "signal", lone, "go", "<payload>")
    assert "'<payload>' only stands for what is to be written there" in refused
    typed.ok("signal", lone, "go", '{"at": "noon"}')


def test_a_signal_that_something_waits_for_is_only_told_to_have_come(
    engine: Engine, typed: Typed
) -> None:
    run, lone = start(engine, FORK), create(engine)
    run.finish("plan")
    suspend(engine, run.steps["left"], run.id, "courier.arrived", "order.cancelled")
    suspend(engine, run.steps["right"], run.id, "paid")
    suspend(engine, lone, lone, "go")
    for target, name in ((run.id, "order.cancelled"), (run.id, "paid"), (lone, "go")):
        said = typed("signal", target, name)
        assert (said.code, said.out, said.err) == (0, f"{target} got {name}\n", "")


def test_a_signal_that_nothing_waits_for_is_kept_and_names_what_is_waited_for(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    suspend(engine, run.steps["left"], run.id, "courier.arrived")
    gone = start(engine, FORK)
    suspend(engine, gone.steps["plan"], run.id, "never.heard")
    typed.ok("cancel", gone.id)
    said = typed("signal", run.id, "courier.arived", '{"at": "noon"}', "--key", "k 1")
    assert (said.code, said.out) == (0, f"{run.id} got courier.arived\n")
    meant = f"""holdfast signal {run.id} courier.arrived '{{"at": "noon"}}' --key 'k 1'"""
    assert said.err.splitlines() == [
        f"Nothing of {run.id} waits for courier.arived now; it is kept until something does.",
        "Waited for: courier.arrived",
        f"Did you mean: {meant}",
    ]
    again = typed("signal", run.id, "courier.arived", '{"at": "noon"}', "--key", "k 1")
    assert (again.out, again.err) == (f"{run.id} got courier.arived before\n", "")
    told = typed.json("signal", run.id, "never.heard")
    assert told["waited_for"] is False
    assert told["awaited"] == [{"target": run.id, "name": "courier.arrived"}]


def test_a_signal_may_come_before_anything_waits_for_it(engine: Engine, typed: Typed) -> None:
    lone = create(engine)
    said = typed("signal", lone, "go")
    kept = f"Nothing of {lone} waits for go now; it is kept until something does.\n"
    assert (said.code, said.out, said.err) == (0, f"{lone} got go\n", kept)
    suspend(engine, lone, lone, "go")
    assert engine.tasks.get(lone).state == "ready"


def test_a_signal_that_a_called_run_waits_for_names_that_run(engine: Engine, typed: Typed) -> None:
    run = begin(engine, call(), LAST)
    below = of(run)
    step = next(iter(below.steps.values()))
    suspend(engine, step, below.id, "paid")
    said = typed("signal", run.id, "paid")
    assert said.err.splitlines()[1:] == [
        f"Waited for: paid of {below.id}",
        f"Did you mean: holdfast signal {below.id} paid",
    ]


def test_some_of_many_signals_that_are_waited_for_are_named(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "MAX_AWAITED_SIGNALS", 7)
    lone = create(engine)
    names = [f"item.{number}" for number in range(9)]
    for name in names:
        suspend(engine, create(engine), lone, name)
    assert typed.json("signal", lone, "item.8")["waited_for"]
    said = typed("signal", lone, "other")
    assert f"Waited for: {', '.join(names[:5])}, 2 more\n" in said.err
