"""`run --wait`: who works on the run where no worker does, and how often it is looked at."""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.cli.app.temporary_workers import MissingWorkers
from holdfast.cli.render.live_view import print_events, watch_run
from holdfast.clock import SystemClock
from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.queries import MAX_BRIEF_LENGTH
from holdfast.service.service import Service
from holdfast.settings import Settings
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import finish, start
from tests.contract.worker.git.repositories import World
from tests.engines import opened

ONE = Workflow.define("one", (Step(id="a"),))
PROGRAM = """
import os
from holdfast import Holdfast

hf = Holdfast(os.environ["HOLDFAST_DB"])
bread = hf.workflow("bread")

@bread.step
def bake() -> str:
    return "a loaf"
"""
MERGE = """
name: w
workspace: {git: PATH}
agents: {developer: {command: [sh, -c, echo x > x.txt]}}
steps:
  - {id: build, agent: developer, prompt: Build}
  - {id: merge, merge: {into: main}}
"""
FILE = "name: w\nsteps: [{id: a, run: [echo, hi], tags: [gpu]}]\n"


def service_on(url: str, engine: Engine) -> Service:
    return Service(StoreLocation(url=url, home=Path(), may_be_created=True), engine)


@pytest.mark.parametrize(
    ("agents", "tags"), [(["other"], ["gpu"]), (["default"], []), (["default"], ["eu"])]
)
def test_a_worker_that_cannot_do_the_steps_is_not_waited_for(
    engine: Engine, typed: Typed, tmp_path: Path, agents: list[str], tags: list[str]
) -> None:
    (tmp_path / "w.yaml").write_text(FILE)
    engine.workers.register("one", agents=agents, tags=tags)
    assert "a  done" in typed.ok("run", "w.yaml", "--wait")


def test_a_merge_is_done_although_every_other_step_is_for_an_agent_of_its_own(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    repository = World(tmp_path).repository()
    (tmp_path / "w.yaml").write_text(MERGE.replace("PATH", str(repository)))
    said = typed("run", "w.yaml", "--wait")
    assert "merge  done" in said.out, said.out


def test_a_program_brings_its_worker_as_one_that_lives_may_not_have_its_functions(
    engine: Engine, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bakery.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    engine.workers.register("of-another-program", agents=["default"])
    try:
        assert "bake  done" in typed.ok("run", "bakery:bread", "--wait")
    finally:
        sys.modules.pop("bakery", None)


def test_a_reader_of_a_run_through_a_pipe_gets_its_id_its_question_and_its_output(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    count_up = "{id: a, run: [echo, '{\"n\": 3}'], outputs: {n: integer}}"
    text = f"name: w\nsteps:\n  - {{id: ok, approval: Go on?}}\n  - {count_up}\n"
    (tmp_path / "w.yaml").write_text(text)
    said = typed("run", "w.yaml", "--wait")
    (task,) = [each for each in engine.tasks.list() if each.step == "ok"]
    assert said.out.splitlines()[0] == f"w {task.run_id}"
    assert (said.code, said.out.splitlines()[-1]) == (4, "ok  asks: Go on?")
    assert f"needs you: holdfast approve {task.id}" in said.err
    asked = typed("run", "w.yaml", "--wait", "--json", "--key", "k")
    told = json.loads(asked.out)
    assert asked.err.startswith(f"w {told['id']}\n")
    (needed,) = told["needs_you"]
    assert (needed["step"], needed["question"]) == ("ok", "Go on?")
    typed.ok(*needed["next"].split()[1:])
    ended = typed("run", "w.yaml", "--wait", "--key", "k")
    assert ended.code == 0
    assert ended.out.endswith('w  completed\n{\n  "n": 3\n}\n')


def test_a_worker_that_died_is_waited_for_only_until_its_time_is_up(
    url: str, typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "w.yaml").write_text(FILE)
    with opened(
        url, clock=SystemClock(), settings=Settings(url=url, lease=1.5, renewal=1.0)
    ) as engine:
        engine.workers.register("dead", agents=["default"], tags=["gpu"])
        said = typed("run", "w.yaml", "--wait")
    assert (said.code, said.err.count("No worker serves default any more")) == (0, 1)


def test_a_wait_for_functions_tells_once_that_no_worker_serves_them(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("holdfast.cli.app.temporary_workers.CHECK_WORKERS_EVERY", 0.0)
    engine.workers.register("one", agents=["default"])
    poem = Workflow.define("poem", (Step(id="write", agent="poet"),))
    with MissingWorkers(service_on(url, engine), poem) as helper:
        helper.start_missing()
        helper.start_missing()
        assert helper.command is None
    assert capsys.readouterr().err.count("No worker serves poet.") == 1


def test_between_two_looks_at_a_run_passes_as_long_as_the_first_took(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(engine, ONE)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        run.finish("a")

    ticks = count(step=3.0)
    clock = SimpleNamespace(monotonic=lambda: next(ticks), sleep=sleep)
    monkeypatch.setattr("holdfast.cli.render.live_view.time", clock)
    assert watch_run(service_on(url, engine), run.id, quiet=True) == 0
    assert slept == [3.0]


def test_a_look_in_brief_leaves_out_what_is_long(url: str, engine: Engine) -> None:
    run = start(engine)
    run.finish("plan")
    finish(engine, run.steps["work"], ["x" * MAX_BRIEF_LENGTH])
    service = service_on(url, engine)
    whole, brief = (service.queries.run(run.id, brief=each) for each in (False, True))
    assert whole["tasks"][1].pop("output") == ["x" * MAX_BRIEF_LENGTH]
    assert brief["tasks"] == whole["tasks"]
    assert brief["tasks"][0]["output"] == "plan output"


def test_a_long_history_is_told_to_its_end(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start(engine)
    for step in ("plan", "work", "review"):
        run.finish(step)
    monkeypatch.setattr("holdfast.cli.render.live_view.PAGE", 2)
    service = service_on(url, engine)
    last = print_events(service, service.queries.run(run.id), 0)
    said = [tuple(line.split()[1:3]) for line in capsys.readouterr().out.splitlines()]
    done = [(step, "done") for step in ("plan", "work", "review")]
    assert [each for each in said if each in done] == done
    assert said[-1] == ("chain", "completed")
    assert print_events(service, service.queries.run(run.id), last) == last


def test_a_run_that_goes_on_without_a_worker_says_how_to_start_one(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    steps = "[{id: a, run: [echo]}, {id: b, agent: poet, tags: [gpu], run: [echo]}]"
    text = f"name: w\nagents: {{poet: {{external: true}}}}\nsteps: {steps}\n"
    (tmp_path / "w.yaml").write_text(text)
    both = "No worker serves default, poet now; start one: holdfast worker --agent default"
    poet = "No worker serves poet now; start one: holdfast worker --agent poet --tag gpu\n"
    assert typed("run", "w.yaml").err.endswith(f"{both} --agent poet --tag gpu\n")
    engine.workers.register("one", agents=["default"])
    typed.ok("pause", "@last")
    assert typed("resume", "@last").err == poet
    typed.ok("cancel", "@last")
    assert typed("retry", "@last").err == poet
    typed.ok("cancel", "@last")
    engine.workers.register("two", agents=["poet"], tags=["gpu"])
    assert typed("retry", "@last:b").err == ""
    engine.workers.drain("one")
    start(engine)
    told = typed("retry", "@last", "--from", "plan").err
    assert told == "No worker serves default now; start one: holdfast worker MODULE:NAME\n"


@pytest.mark.parametrize("way", [(), ("--json",)])
def test_a_run_that_stands_still_is_not_waited_for_and_says_what_would_have_it_go_on(
    engine: Engine, typed: Typed, tmp_path: Path, way: tuple[str, ...]
) -> None:
    (tmp_path / "w.yaml").write_text("name: w\nsteps: [{id: a, run: [echo]}, {id: b, run: [echo]}]")
    run = typed.json("run", "w.yaml", "--key", "k")["id"]
    a, b = (engine.runs.task(run, step).id for step in ("a", "b"))
    stops = {
        ("pause", run): f"holdfast resume {run}",
        ("pause", a): f"holdfast resume {a}",
        ("task", "reset", a): f"holdfast task enqueue {a}",
    }
    for stop, fix in stops.items():
        typed.ok(*stop)
        said = typed("run", "w.yaml", "--key", "k", "--wait", *way)
        assert said.code == 4
        if way:
            assert [each["next"] for each in json.loads(said.out)["needs_you"]] == [fix]
        else:
            assert said.err.startswith(f"needs you: {fix}\n")
            assert "because: " in said.out
        typed.ok(*fix.split()[1:])
    typed.ok("task", "reset", b)
    assert typed("run", "w.yaml", "--key", "k", "--wait").code == 4
    assert engine.tasks.get(a).status == "done", "what could go on did so first"
    typed.ok("task", "enqueue", b)
    assert typed("run", "w.yaml", "--key", "k", "--wait").code == 0
