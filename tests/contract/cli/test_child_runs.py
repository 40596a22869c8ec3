"""Steps that call workflows, as the command line shows, explains and starts them."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import Concurrency, OnFailure, Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.called_workflows import LAST, SHIP, begin, call, child, in_items, of
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import StartedRun, start

RELEASE = """\
name: release
steps:
  - {id: build, run: [echo, '{"artifact": "app-1"}'], outputs: {artifact: string}}
  - {id: deploy, workflow: deploy, input: {target: "{{ steps.build.artifact }}"}}
  - {id: tell, run: [echo, "{{ steps.deploy.done }}"]}
"""
DEPLOY = """\
name: deploy
input: {target: string}
steps:
  - {id: push, run: [echo, '{"done": "yes"}'], outputs: {done: string}}
"""
ASKING = Workflow.define(
    "asking", (Step(id="pack"), Step(id="gate", needs=("pack",), approval="Send it?"))
)


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: these are the queries of the service."""
    return store_url


def asking(engine: Engine) -> StartedRun:
    """A run that has called one which waits for a person, at the cost of half a dollar."""
    run = begin(engine, call(workflow=ASKING), LAST, workflow=ASKING)
    taken = of(run).take("pack")
    assert engine.work.complete(taken.task_id, taken.token, "box", usage={"usd": 0.5}).ok
    return run


def test_a_run_is_shown_with_the_steps_of_what_it_has_called(engine: Engine, typed: Typed) -> None:
    run = asking(engine)
    below = of(run)
    told = typed.json("show", run.id)
    assert (told["usage"], told["progress"]) == ({"usd": 0.5}, {"done": 0, "total": 2})
    ship = told["tasks"][0]
    assert (ship["calls"], ship["waits_for"], ship["state"]) == (
        "asking",
        below.id,
        "in progress 1/2",
    )
    assert [each["step"] for each in ship["child"]["tasks"]] == ["pack", "gate"]
    lines = typed.ok("show", run.id).splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["▾", "ship"],
        ["✓", "pack"],
        ["◆", "gate"],
    ]
    assert typed("show", run.id, "--follow").code == 4
    assert f"called by ship of {run.id}" in typed.ok("show", below.id)
    assert f"calls asking · {below.id}" in typed.ok("show", run.steps["ship"])
    assert typed.json("show", "@last:ship.pack")["id"] == below.steps["pack"]


def test_a_called_run_counts_once_and_is_listed_when_asked_for(
    engine: Engine, typed: Typed
) -> None:
    run = asking(engine)
    assert [each["id"] for each in typed.json("runs")["items"]] == [run.id]
    everyone = typed.json("runs", "--called")["items"]
    assert {each["id"] for each in everyone} == {run.id, of(run).id}
    caller = next(each["caller"] for each in everyone if each["id"] == of(run).id)
    assert (caller["run_id"], caller["task_id"], caller["step"]) == (
        run.id,
        run.steps["ship"],
        "ship",
    )
    assert typed.json("show")["id"] == run.id
    assert "$0.50" in typed.ok()
    assert typed.ok("approve", run.id)
    assert run.task("ship").status == "done"
    run.finish("tell")
    assert "1 completed" in typed.ok()


def test_why_tells_of_the_run_that_was_called_and_of_the_one_that_called(
    engine: Engine, typed: Typed
) -> None:
    run = asking(engine)
    below = of(run)
    said = typed.ok("why", run.steps["ship"])
    assert f"no worker runs it: it ends with asking {below.id} (running)" in said
    assert f"Look:  holdfast why {below.id}" in said
    assert f"called by 'ship' of order {run.id}" in typed.ok("why", below.id)
    assert below.steps["gate"] in typed.ok("cancel", run.id, "--dry-run")
    held = begin(engine, call(on_failure=OnFailure(action="ask")))
    of(held).break_for_good("pack")
    assert f"holdfast approve {held.steps['ship']}" in typed.ok("why", held.steps["ship"])
    assert typed("show", held.id, "--follow").code == 4


def test_a_call_whose_run_waits_for_its_key_is_shown_with_who_has_that(
    engine: Engine, typed: Typed
) -> None:
    locked = replace(SHIP, concurrency=Concurrency(key="dock", limit=1))
    first = start(engine, locked)
    run = begin(engine, call(workflow=locked), LAST, workflow=locked)
    waits = f"held: slot, dock is full, 1 of 1: {first.id}"
    assert typed.ok("show", run.id).splitlines()[1] == f"○ ship {waits}   ○ tell"
    assert f"  its run is {waits}\n" in typed.ok("show", run.steps["ship"])
    assert typed.json("show", run.steps["ship"])["child"]["holds"] == ["slot"]
    assert engine.runs.cancel(first.id).ok
    assert typed.ok("show", run.id).splitlines()[1] == "○ ship   ○ tell"
    assert "its run" not in typed.ok("show", run.steps["ship"])


def test_a_call_that_failed_and_asks_is_shown_with_what_it_has_called(
    engine: Engine, typed: Typed
) -> None:
    run = begin(engine, call(on_failure=OnFailure(action="ask")), LAST)
    below = of(run)
    below.break_for_good("pack")
    said = typed("show", run.id, "--follow")
    told = [line.split(maxsplit=1)[1] for line in said.out.splitlines()[1:]]
    assert [line for line in told if "failed" in line][:2] == [
        "ship.pack  failed  broken",
        "ship  failed",
    ]
    asked = "it failed with broken; approve has it tried again, reject has it fail"
    assert told[-1] == f"asks: {asked}"
    assert said.err == f"needs you: holdfast approve {run.steps['ship']}\n"
    lines = [line.strip() for line in typed.ok("show", run.id).splitlines()]
    assert lines[1].startswith("◆ ship")
    assert lines[2] == f"└ {asked}"
    assert lines[4].startswith("✗ pack")
    assert typed.json("show", f"{run.id}:ship.pack")["id"] == below.steps["pack"]
    why = typed.ok("why", run.steps["ship"])
    assert f"it has called shipping {below.id} (failed), and will take that up again" in why


def test_a_call_that_begins_anew_is_followed_by_the_names_of_what_it_called_before(
    engine: Engine, typed: Typed
) -> None:
    again = OnFailure(action="goto", step="first", max_rounds=1)
    run = begin(engine, Step(id="first"), call(needs=("first",), on_failure=again))
    run.finish("first")
    of(run).break_for_good("pack")
    typed.ok("cancel", run.id)
    said = typed("show", run.id, "--follow").out
    assert "  ship.pack  failed  broken\n" in said
    assert "  ship  failed\n" in said
    assert "  order  failed" not in said
    assert "pack" not in typed.ok("show", run.id)


def test_a_file_runs_with_the_workflow_beside_it_that_it_calls(
    typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "release.yaml").write_text(RELEASE)
    (tmp_path / "deploy.yaml").write_text(DEPLOY)
    assert "workflow deploy" in typed.ok("workflow", "validate", "release.yaml")
    told = typed.json("run", "release.yaml", "--rehearse")
    assert told["status"] == "completed"
    said = typed("run", "release.yaml", "--wait")
    assert said.code == 0, said.err
    assert "deploy.push" in said.out
    (tmp_path / "deploy.yaml").unlink()
    assert typed.json("run", "release", "--rehearse")["status"] == "completed"
    told = typed.json("run", "release", "--wait")
    assert (told["status"], told["tasks"][1]["output"]) == ("completed", {"done": "yes"})


def test_a_workflow_that_is_nowhere_is_refused_before_anything_starts(
    typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "release.yaml").write_text(RELEASE)
    typed.ok("workflow", "add", "release.yaml")
    said = typed.refused(2, "run", "release.yaml")
    assert "'deploy', which this store does not know; `holdfast workflow add deploy.yaml`" in said


def typed_fix(told: str) -> list[str]:
    """The one command that is told to be the way out."""
    (fix,) = re.findall(r"Fix: +holdfast (.*)", told)
    return shlex.split(fix)


def test_the_fix_of_why_for_a_called_run_whose_caller_asks_takes_it_up_when_typed(
    engine: Engine, typed: Typed
) -> None:
    run = begin(engine, call(on_failure=OnFailure(action="ask")), LAST)
    below = of(run)
    below.finish("pack")
    below.break_for_good("send")
    approve = f"holdfast approve {run.steps['ship']}"
    for refused in (typed("retry", below.id), typed("retry", "--again", below.steps["send"])):
        assert refused.code == 1
        assert f"waits for approval; {approve} takes it up where it failed" in refused.err
    assert f"Fix:   {approve}" in typed.ok("why", below.steps["send"])
    typed.ok(*typed_fix(typed.ok("why", below.id)))
    assert below.statuses == {"pack": "done", "send": "queued"}


def test_the_fix_of_why_for_a_call_in_a_loop_that_was_skipped_calls_it_anew_when_typed(
    engine: Engine, typed: Typed
) -> None:
    steps = (call(on_failure=OnFailure(action="skip")), Step(id="gate", needs=("ship",)))
    over = Reference.parse("for_each", "input")
    run = begin(engine, Step(id="build", for_each=over, steps=steps), given=["a", "b"])
    (first, *_) = in_items(run, "ship")
    below = child(engine, first)
    below.break_for_good("pack")
    again = f"holdfast retry {run.id} --from build.1.ship"
    assert f"{again} calls it anew" in typed("retry", below.id).err
    typed.ok(*typed_fix(typed.ok("why", below.id)))
    assert child(engine, first).id != below.id
