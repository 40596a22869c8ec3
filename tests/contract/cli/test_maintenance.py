"""The doctor, schedules, leases, workflows, copies: by the command line."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.effect import WakeCondition
from holdfast.model.retry import RetryPolicy
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.model.worker import Overrun
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.worker.files.homes import make_private_directory
from holdfast.worker.files.state_directory import find_state_directory
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_linked_loops import named
from tests.contract.engine.state.needs.test_older_needs import stuck
from tests.contract.engine.state.plans.test_plans import plan, states
from tests.contract.raw_store import raw
from tests.contract.single_statements import complete, write
from tests.contract.task_states import FORK, create, start, take


def test_the_doctor_finds_nothing_in_a_sound_store_and_names_what_is_wrong(
    engine: Engine, typed: Typed, url: str
) -> None:
    run = start(engine)
    told = typed.json("doctor")
    assert told["ok"]
    assert {"name": "fold_status", "violations": []} in told["checks"]
    assert "no violations" in typed.ok("doctor")
    change = "UPDATE holdfast_task SET attempt = attempt + {} WHERE id = '{}'"
    with raw(url) as run_sql:
        run_sql(change.format(1, run.steps["plan"]))
    said = typed("doctor", "--json")
    assert said.code == 1
    broken = [each for each in json.loads(said.out)["checks"] if each["violations"]]
    assert broken[0]["violations"][0]["entity"] == run.steps["plan"]
    assert f"✗ fold_status: {run.steps['plan']}" in typed("doctor").out
    with raw(url) as run_sql:
        run_sql(change.format(-1, run.steps["plan"]))


def test_the_doctor_warns_of_a_full_disk_of_who_stops_for_it_and_of_logs_to_throw_away(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    begun = engine.workers.register("w", agents=["default"])
    assert begun is not None
    engine.workers.announce("w", begun["started_at"], "the disk is full")
    assert "the disk is full" in typed.ok("workers")
    logs = make_private_directory(find_state_directory(engine.settings.url).root) / "logs" / "t_old"
    logs.mkdir(parents=True)
    os.utime(logs, (0, 0))
    (tmp_path / "holdfast.yaml").write_text("least_disk: 9000TB\nkeep: {logs: 3d}\n")
    told = typed.json("doctor")
    assert told["ok"]
    worker, disk, old = told["warnings"]
    assert worker == "worker w: the disk is full"
    assert disk.endswith("of disk are free, and it claims nothing below 9e+03 TB")
    assert old.startswith("the logs of 1 task in")
    assert old.endswith("are older than the 3 days that they are kept")
    assert "agents: " in typed.ok("doctor")


def test_the_doctor_finds_and_settles_a_plan_that_was_left_without_children(
    engine: Engine, typed: Typed
) -> None:
    top, (inner,) = plan(engine, "inner")
    assert engine.tasks.start_planning(inner).ok
    last = create(engine, "last", parent=inner, enqueue=False)
    for each in (top, inner):
        assert engine.tasks.finalize_plan(each).ok
    assert write(engine, "delete_task", task_id=last, actor="user") == {last}
    assert not engine.doctor().ok
    assert "would settle 1 plan" in typed("doctor", "--fix", "--dry-run").out
    assert engine.tasks.get(inner).status == "idle"
    assert "settled 1 plan" in typed.ok("doctor", "--fix")
    assert states(engine, [inner, top]) == ["done", "done"]
    assert engine.tasks.advance(top).ok
    assert not engine.tasks.advance(create(engine)).ok


def test_the_doctor_finds_and_wakes_who_waits_for_children_that_are_gone(
    engine: Engine, typed: Typed
) -> None:
    parent = create(engine)
    attempt = take(engine, parent)
    (child,) = engine.work.spawn(parent, attempt.token, [NewTask(title="c")], name="map").value
    assert engine.work.suspend(parent, attempt.token, WakeCondition(children=True)).ok
    # As if the process had died between the end of the child and what follows from it.
    take(engine, child)
    complete(engine, child)
    assert "would wake 1 task" in typed("doctor", "--fix", "--dry-run").out
    assert engine.tasks.get(parent).state == "waiting"
    assert "woke 1 task" in typed.ok("doctor", "--fix")
    assert engine.tasks.get(parent).state == "ready"


def test_the_doctor_passes_on_needs_that_an_older_release_left(
    engine: Engine, typed: Typed
) -> None:
    run, aside = stuck(engine, engine.settings.url)
    left = engine.tasks.blocked_by(aside)
    would = "would pass on what 1 task waited for in vain"
    assert would in typed("doctor", "--fix", "--dry-run").out
    assert engine.tasks.blocked_by(aside) == left
    assert "\npassed on what 1 task waited for in vain" in typed.ok("doctor", "--fix")
    assert list(engine.tasks.blocked_by(aside)) == [named(engine, run, "build")]


def test_the_doctor_takes_back_expired_leases_when_told_so(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    take(engine, run.steps["plan"], lease=0.001)
    assert "1 leases have run out" in typed.ok("doctor")
    would = typed.ok("doctor", "--fix", "--dry-run")
    assert "would take back 1 expired lease\nwould look at 1 open run" in would
    assert run.task("plan").status == "running"
    told = typed.ok("doctor", "--fix")
    assert "took back 1 expired lease: 1 task is queued now\n" in told
    assert "looked at 1 open run, 1 of which moved on\n" in told
    assert run.task("plan").status == "queued"


def test_the_doctor_says_which_runs_it_has_failed_or_completed(
    engine: Engine, typed: Typed
) -> None:
    once = Step(id="once", retry=RetryPolicy(max_lost=1))
    failed, still = start(engine, Workflow.define("frail", (once,))), start(engine)
    take(engine, failed.steps["once"], lease=0.001)
    told = typed.ok("doctor", "--fix")
    assert told.startswith(
        "took back 1 expired lease: 1 task is failed now\n"
        "looked at 2 open runs, 0 of which moved on\n"
        f"  frail {failed.id} has failed\n"
    )
    assert (failed.status, still.status) == ("failed", "running")
    assert "looked at 1 open run, 0 of which moved on\n" in typed.ok("doctor", "--fix")


def test_a_schedule_is_added_for_a_workflow_or_a_task_and_replaced_by_its_name(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "w.yaml").write_text("{name: w, input: {n: integer}, steps: [{id: a, run: [x]}]}")
    put = ("schedule", "add", "nightly", "--cron", "30 2 * * *", "--zone", "Europe/Berlin")
    said = typed.ok(*put, "--workflow", "w.yaml", "-i", "n=1")
    assert said.startswith("nightly starts w at 30 2 * * * Europe/Berlin, next in ")
    kept = engine.schedules.get("nightly")
    assert (kept.workflow, kept.input) == ("w", {"n": 1})
    told = typed.json(*put, "--task", "Tidy up", "--agent", "cleaner", "--payload", "[1]")
    assert (told["task"], told["input"], told["version"]) == ("Tidy up", [1], 2)
    for wrong, why in (
        (("--workflow", "w.yaml"), "n: is missing"),
        (("--workflow", "w.yaml", "--task", "t"), "either --workflow or --task"),
        ((), "either --workflow or --task"),
        (("--task", "t", "-i", "a=1"), "input: is for a workflow"),
        (("--workflow", "nobody"), "there is no such workflow"),
        (("--task", "t", "--missed", "some"), "missed: 'some' is not one of skip, one, all"),
    ):
        assert why in typed.refused(2, *put, *wrong)
    assert engine.schedules.get("nightly").version == kept.version + 1


def test_schedules_are_listed_paused_resumed_and_removed(engine: Engine, typed: Typed) -> None:
    engine.schedules.put(
        NewSchedule(name="nightly", cron="30 2 * * *", starts=NewTask(title="t", step="tidy"))
    )
    (told,) = typed.json("schedule", "list")["items"]
    assert (told["name"], told["task"], told["paused"]) == ("nightly", "tidy", False)
    assert typed.ok("schedule", "pause", "nightly") == "nightly is paused\n"
    assert "paused" in typed.ok("schedule", "list")
    assert typed.ok("schedule", "pause", "nightly") == "nightly is paused (as before)\n"
    typed.ok("schedule", "resume", "nightly")
    told = typed.refused(2, "schedule", "pause", "nightl")
    assert "known are nightly; did you mean 'nightly'?" in told
    assert typed.ok("schedule", "remove", "nightly") == "nightly is removed\n"
    assert typed.json("schedule", "list")["items"] == []


def test_ticks_are_previewed_without_a_store(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_DB")
    ticks = typed.json("schedule", "preview", "0 9 * * 1-5", "--zone", "Europe/Berlin", "-n", "3")
    moments = [datetime.fromisoformat(each) for each in ticks["items"]]
    assert [(each.hour, each.weekday() < 5) for each in moments] == [(9, True)] * 3
    assert "cron: 'x' is not a cron expression" in typed.refused(2, "schedule", "preview", "x")
    told = typed.refused(2, "schedule", "preview", "0 9 * * *", "--zone", "Mars/Olympus")
    assert "zone: 'Mars/Olympus' is not a time zone" in told


@pytest.mark.usefixtures("engine")
def test_a_lease_is_held_by_one_renewed_and_given_back(typed: Typed) -> None:
    got = typed.json("lease", "acquire", "deploy", "--ttl", "10m", "--owner", "ada")
    assert (got["owner"], got["fence"]) == ("ada", 1)
    other = typed("lease", "acquire", "deploy")
    assert other.code == 1
    assert "deploy is held by somebody else" in other.err
    held = typed("lease", "acquire", "deploy", "--json")
    assert (held.code, json.loads(held.out)["error"]["code"]) == (1, "already_claimed")
    typed.ok("lease", "renew", "deploy", "--token", got["token"], "--ttl", "1h")
    assert typed.ok("lease", "release", "deploy", "--token", got["token"]) == "deploy is free\n"
    again = json.loads(typed.ok("lease", "acquire", "deploy"))
    assert again["fence"] == 2
    told = typed.refused(1, "lease", "release", "deploy", "--token", got["token"])
    assert "deploy is unchanged (stale_token)" in told


def test_workflows_that_were_started_are_known_drawn_and_run_again(
    engine: Engine, typed: Typed
) -> None:
    start(engine, FORK)
    (told,) = typed.json("workflow", "list")["items"]
    assert (told["name"], told["versions"]) == ("fork", [FORK.version])
    shown = typed.ok("workflow", "show", "fork").splitlines()
    assert shown[0] == f"fork  {FORK.version[:12]}"
    assert shown[3].startswith("├─ right")
    assert shown[3].endswith("after plan")
    assert typed.json("workflow", "show", "fork", "--version", FORK.version[:6])["name"] == "fork"
    run = typed.json("run", "fork", "-i", "n=1", "-i", "name=007x", "--key", "k")
    assert run["input"] == {"n": 1, "name": "007x"}
    assert (
        typed.json("run", "fork", "-i", "n=1", "-i", "name=007x", "--key", "k")["id"] == run["id"]
    )
    assert "already exists: running" in typed.ok(
        "run", "fork", "-i", "n=1", "-i", "name=007x", "--key", "k"
    )
    assert "already belongs to" in typed.refused(2, "run", "fork", "--key", "k")
    told = typed.refused(2, "run", "frok")
    assert "known are fork; did you mean 'fork'?" in told
    assert told.endswith("next:  holdfast workflow list\n")
    assert "there are" in typed.refused(2, "workflow", "show", "fork", "--version", "zzz")


FILE = """
name: greeting
input: {name: string, times: {type: integer, default: 1}, where: {type: path, default: .}}
agents: {speaker: {external: true}}
steps:
  - {id: say, agent: speaker, prompt: "Greet {{ input.name }} {{ input.times }} times"}
"""


def test_a_file_is_drawn_checked_and_run_with_its_types(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "greeting.yaml").write_text(FILE)
    assert "greeting.yaml is valid" in typed.ok("workflow", "validate", "greeting.yaml")
    assert "say" in typed.ok("workflow", "show", "greeting.yaml")
    assert typed.json("workflow", "add", "greeting.yaml")["created"]
    assert "was added before" in typed.ok("workflow", "add", "greeting.yaml")
    assert [each["name"] for each in typed.json("workflow", "list")["items"]] == ["greeting"]
    given = ("-i", "name=007", "-i", "times=3")
    run = typed.json("run", "greeting.yaml", *given)
    assert run["input"] == {"name": "007", "times": 3, "where": str(tmp_path)}
    assert typed.json("run", "greeting", *given)["input"] == run["input"]
    (taken,) = engine.work.claim_by_id(run["tasks"][0]["id"], "w", agents=["speaker"])
    assert taken.work is not None
    assert taken.work.prompt == "Greet 007 3 times"
    for pairs, said in (
        ([], "name: is missing"),
        (["name=x", "times=many"], "times: must be a whole number"),
        (["name=x", "nmae=y"], "nmae"),
    ):
        options = [each for pair in pairs for each in ("-i", pair)]
        assert said in typed.refused(2, "run", "greeting.yaml", *options)
    assert len(engine.runs.list()) == 2


REHEARSED = """
name: feature
input: {task: string}
agents: {planner: {external: true}, reviewer: {external: true, tags: [gpu]}}
steps:
  - {id: plan, agent: planner, prompt: "{{ input.task }}", outputs: {stories: [{title: string}]}}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    steps:
      - {id: implement, run: [rm, -rf, /nowhere], outputs: {size: int}}
      - {id: verify, agent: reviewer, verifies: implement, prompt: "Is {{ subject.size }} good?"}
  - {id: approve, approval: "Merge?"}
  - {id: tell, http: {url: "http://127.0.0.1:1/"}}
"""


def test_a_file_is_rehearsed_by_stubs_and_nothing_of_it_is_kept(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "feature.yaml").write_text(REHEARSED)
    told = typed.json("run", "feature.yaml", "-i", "task=x", "--rehearse")
    assert told["status"] == "completed"
    done = [each["step"] for each in told["tasks"] if each["kind"] == "work"]
    assert sorted(done) == ["implement"] * 2 + ["plan", "tell"] + ["verify"] * 2
    said = typed("run", "feature.yaml", "-i", "task=x", "--rehearse")
    assert "build.2.verify  done" in said.out
    assert "nothing of it is kept" in said.err
    assert engine.runs.list() == []
    start(engine)
    assert "is for workflow files" in typed.refused(2, "run", "chain", "--rehearse")


def test_a_stub_gives_what_fits_the_limits_that_are_declared(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(
        "name: w\nsteps:\n"
        "  - {id: a, run: [x], outputs: {port: {type: integer, minimum: 1024}}}\n"
        "  - {id: b, run: [x], verifies: a, outputs: {verdict: string, score: int}}\n"
    )
    assert typed.json("run", "w.yaml", "--rehearse")["status"] == "completed"


def test_an_input_that_json_cannot_hold_is_refused_by_its_name(
    typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "w.yaml").write_text("name: w\ninput: {n: int}\nsteps: [{id: a, run: [x]}]\n")
    for text in ("1e999", "[-1e999]", "NaN", "-Infinity"):
        assert "n: is not JSON" in typed.refused(2, "run", "w.yaml", "-i", f"n:={text}")
        typed.refused(2, "run", "w.yaml", "-i", f"n={text}")


def test_a_program_whose_module_is_no_name_is_refused(typed: Typed) -> None:
    for app in (".:hf", "/:hf", ".py:hf", "..:hf"):
        assert "names no object of a program" in typed.refused(2, "run", app)


def test_every_mistake_of_a_file_is_told_with_its_place(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: bad\nsteps:\n  - {id: a, rnu: [x]}\n  - {id: a}\n")
    told = typed.refused(2, "workflow", "validate", "bad.yaml")
    assert "bad.yaml:3:13: step has no key 'rnu'" in told
    assert "did you mean 'run'?" in told
    assert "next:" not in told
    started = typed.refused(2, "run", "bad.yaml")
    assert started.count("bad.yaml:") == told.count("bad.yaml:")
    assert started.endswith("next:  holdfast workflow validate bad.yaml\n")
    assert not (tmp_path / "holdfast.db").exists()
    assert "cannot be read" in typed.refused(2, "run", "nowhere.yaml")


def test_workers_are_listed_and_told_to_leave(engine: Engine, typed: Typed) -> None:
    assert typed("workers").err == "No live workers. Start one: holdfast worker [APP]\n"
    assert typed("token", "list").err == "No tokens.\n"
    begun = engine.workers.register("build-1", agents=["developer"], tags=["gpu"], concurrency=3)
    (told,) = typed.json("workers")["items"]
    assert (told["name"], told["agents"], told["tags"]) == ("build-1", ["developer"], ["gpu"])
    assert (told["used"], told["free"], told["running"]) == (0, 3, [])
    run, late = start(engine), create(engine, "late")
    assert engine.work.claim_by_id(run.steps["plan"], "build-1", agents=["default"])
    assert begun is not None
    over = Overrun(late, 2, begun["started_at"])
    engine.workers.announce("build-1", begun["started_at"], None, [over])
    (told,) = typed.json("workers")["items"]
    assert (told["used"], told["free"]) == (2, 1)
    assert [each["name"] for each in (*told["running"], *told["overruns"])] == ["plan", "late"]
    shown = typed.ok("workers")
    assert "2 of 3" in shown
    assert f"  ● plan  {run.steps['plan']} of {run.id}  0." in shown
    assert re.search(rf"  ● late  {late}  .*, attempt 2, over: its function goes on\n", shown)
    assert typed.ok("workers", "drain", "build-1") == "build-1 is told to leave\n"
    assert "leaving" in typed.ok("workers")
    told = typed.refused(2, "workers", "evict", "build-2")
    assert "known are build-1; did you mean 'build-1'?" in told
    assert told.endswith("next:  holdfast workers\n")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["n"], "'n' is not name=value"),
        (["=1"], "'=1' is not name=value"),
        (["n:={bad"], "n: is not JSON"),
        (["n=1", "n=2"], "n: is given twice"),
        (["n=@nowhere"], "n: the file 'nowhere' cannot be read: No such file or directory\n"),
    ],
)
def test_inputs_that_cannot_be_read_start_nothing(
    engine: Engine, typed: Typed, given: list[str], said: str
) -> None:
    start(engine, FORK)
    options = [each for pair in given for each in ("-i", pair)]
    assert said in typed.refused(2, "run", "fork", *options)
    assert len(engine.runs.list()) == 1


def test_a_copy_holds_the_whole_store_and_takes_no_other_files_place(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = start(engine)
    run.finish("plan")
    target = tmp_path / "copy.db"
    told = typed.json("db", "backup", str(target))
    assert told["bytes"] == target.stat().st_size
    assert target.stat().st_mode & 0o777 == 0o600
    run.finish("work")
    then, now = (typed.json("show", run.id, "--db", each) for each in (str(target), "holdfast.db"))
    assert (then["progress"]["done"], now["progress"]["done"]) == (1, 2)
    assert typed.json("doctor", "--db", str(target))["ok"]
    assert "already exists" in typed.refused(2, "db", "backup", str(target))
    assert "runs --db 'my copy.db'\n" in typed("db", "backup", "my copy.db").err
    assert "cannot be written" in typed.refused(2, "db", "backup", str(tmp_path / "no/where.db"))
    assert {each.name for each in tmp_path.iterdir() if each.name.startswith(".copy")} == set()


def test_the_store_is_the_one_typed_and_what_is_typed_next_names_it(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    create(engine)
    told = typed.refused(2, "show", "t_7zzz", "--db", str(tmp_path / "holdfast.db"))
    assert told.endswith(f"next:  holdfast tasks --db {tmp_path}/holdfast.db\n")
    told = typed.refused(5, "runs", "--db", "typo.db")
    assert "there is no store at sqlite:///" in told
    assert not (tmp_path / "typo.db").exists()
    assert typed.ok("db", "upgrade", "--db", "fresh.db").startswith("sqlite:///")
    assert typed.json("runs", "--db", "fresh.db") == {"items": []}


def test_a_token_that_is_good_no_more_says_so_in_the_list_and_a_name_is_given_once(
    typed: Typed,
) -> None:
    for name, more in (("ci", ()), ("old", ("--expires", "0.001s")), ("gone", ())):
        typed.ok("token", "create", name, "--role", "worker", *more)
    typed.ok("token", "revoke", "gone")
    ends = {line.split()[0]: line.split()[-1] for line in typed.ok("token", "list").splitlines()}
    assert (ends["ci"], ends["old"], ends["gone"]) == ("ago", "expired", "revoked")
    told = typed.refused(2, "token", "create", "ci")
    assert told.startswith("error: name 'ci' already belongs to ci, a token that is good; ")


def test_a_host_that_is_none_of_this_machine_is_refused_by_its_name(typed: Typed) -> None:
    told = typed("serve", "--host", "203.0.113.1", "--port", "0", "--public")
    assert (told.code, told.out) == (2, "")
    assert "error: host: 203.0.113.1:0 cannot be listened on" in told.err


def test_the_doctor_names_git_and_warns_where_workspaces_want_a_newer_one(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.fullmatch(r"\d+\.\d+.*", typed.json("doctor")["versions"]["git"])
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\necho git version 2.37.1\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    assert typed.json("doctor")["warnings"] == []
    text = "name: w\nworkspace: {git: /work/shop}\nsteps: [{id: a, run: ['true']}]\n"
    (tmp_path / "w.yaml").write_text(text)
    typed.ok("workflow", "add", str(tmp_path / "w.yaml"))
    (warning,) = typed.json("doctor")["warnings"]
    assert warning.endswith("git is git 2.37.1; install git 2.38 or later")
    assert warning.startswith("steps of workflows work in git workspaces, and ")
