"""Edits for a version that has passed: refused with their code, told of in the run, counted."""

from __future__ import annotations

from holdfast.engine.engine import engine_of
from holdfast.engine.surroundings.removal import RUNS
from holdfast.model.run import NewRun
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.server.local_server import Served
from tests.race.racers import eventually


def test_a_refused_edit_has_its_code_its_event_and_its_count(server: Served) -> None:
    operator = server("operator")
    engine = engine_of(server.hf)
    run = engine.runs.start(NewRun(workflow=Workflow.define("edited", (Step(id="only"),)))).id
    (task,) = engine.runs.tasks(run)
    before = _conflicts(server)
    seen = {"If-Match": f'"{task.version}"'}
    assert operator.patch(f"/tasks/{task.id}", json={"title": "1"}, headers=seen).is_success
    late = operator.patch(f"/tasks/{task.id}", json={"title": "2"}, headers=seen)
    assert (late.status_code, late.json()["code"]) == (409, "version_conflict")
    events = operator.get(f"/runs/{run}/events").json()["items"]
    (conflict,) = [each for each in events if each["type"] == "run.conflict"]
    assert (conflict["actor"], conflict["data"]["task_id"]) == ("operator", task.id)
    # What is under way elsewhere on the database is waited for by the next look.
    assert eventually(lambda: _conflicts(server) == before + 1)
    assert engine.runs.cancel(run).ok
    assert run in engine.removals.remove(RUNS, engine.now() + 1_000_000).gone
    assert _conflicts(server) == before + 1, "a counter never falls"


def _conflicts(server: Served) -> int:
    lines = server("viewer").get(f"{server.url}/metrics").text.splitlines()
    (counted,) = [line for line in lines if line.startswith("holdfast_conflicts_total ")]
    return int(float(counted.split()[1]))
