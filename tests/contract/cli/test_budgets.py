"""A run with a budget and a deadline, as a person sees it and lets it go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import start, take

FILE = """\
name: costly
budget: {usd: 5, usd_per_attempt: 2, attempts: 40}
deadline: 2h
agents: {cook: {external: true}}
steps:
  - {id: make, agent: cook, prompt: "Make it"}
  - {id: serve, agent: cook, prompt: "Serve it"}
"""


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: these are the queries of the service."""
    return store_url


def begun(typed: Typed, folder: Path, *options: str) -> str:
    (folder / "costly.yaml").write_text(FILE)
    return str(typed.json("run", "costly.yaml", *options)["id"])


def test_a_run_shows_what_it_used_of_its_budget_and_what_to_type_when_it_is_used_up(
    typed: Typed, tmp_path: Path
) -> None:
    run = begun(typed, tmp_path)
    (claim,) = json.loads(typed.ok("work", "claim", "--agent", "cook"))["assignments"]
    assert claim["task"]["payload"]["usd_per_attempt"] == 2
    attempt = (claim["task"]["id"], "--token", claim["token"])
    typed.ok("work", "renew", *attempt, "--usage", '{"usd": 1.12}')
    head = typed.ok("show", run).splitlines()[0]
    assert head.startswith(f"costly {run} · running · $1.12 of $5, 1 of 40 attempts · ")
    assert head.endswith("left")
    typed.ok("work", "complete", *attempt, "--output", "{}", "--usage", '{"usd": 5.5}')
    raised = f"holdfast resume {run} --add-usd 5"
    refused = typed.refused(1, "resume", run)
    assert f"held): its budget holds it, $5.50 of $5, 1 of 40 attempts used; {raised}" in refused
    why = typed.ok("why", run)
    assert "hold: budget, $5.50 of $5, 1 of 40 attempts used, ends in " in why
    assert f"Fix:   {raised}" in why
    assert "run      hold: budget, $5.50 of $5" in typed.ok("why", f"{run}:serve")
    report = typed.ok()
    assert f"costly {run} has used up its budget: $5.50 of $5, 1 of 40 attempts" in report
    assert raised in report
    waited = typed("show", run, "--follow")
    assert (waited.code, f"needs you: {raised}" in waited.err) == (4, True)
    spent = "because: its budget is used up, $5.50 of $5, 1 of 40 attempts"
    assert waited.out.splitlines()[-1] == spent
    assert typed.ok("resume", run, "--add-usd", "1.5") == f"costly {run} is running\n"
    told = typed.json("show", run)
    assert told["budget"] == {
        "usd": 6.5,
        "usd_per_attempt": 2.0,
        "attempts": 40,
        "used": {"usd": 5.5, "attempts": 1},
    }
    events = typed.json("events", run)
    assert [each["type"] for each in events["items"]][-2:] == ["run.extended", "task.unheld"]


def test_only_a_run_has_a_budget_to_raise(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    assert "only runs have a budget" in typed.refused(2, "resume", "@last:plan", "--add-usd", "1")
    assert "no such limit" in typed.refused(1, "resume", run.id, "--add-attempts", "1")
    assert "add_usd: must be more than 0" in typed.refused(2, "resume", run.id, "--add-usd", "0")


def test_a_start_may_name_a_deadline_and_a_run_past_it_says_so(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = begun(typed, tmp_path, "--deadline", "1ms")
    assert "deadline" in typed.refused(2, "run", "costly.yaml", "--deadline", "soon")
    (make, _) = engine.runs.tasks(run)
    take(engine, make.id)
    engine.recovery.step()
    assert "deadline: it was not done within 0.001s" in typed.ok("show", run).splitlines()[0]
    assert "is failed: deadline: it was not done within 0.001s" in typed.ok("why", run)
    told = typed("show", run, "--follow").out.splitlines()
    assert told[-1] == "because: deadline: it was not done within 0.001s"
    assert typed.ok("retry", run) == f"costly {run} is running\n"
