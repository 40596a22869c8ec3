"""Errors for programs and for people: JSON where it was asked for, and what to type next."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.cli.command_line import Typed
from tests.contract.engine.explain.test_key_circles import circle
from tests.contract.task_states import bring, create, finish, start, take
from tests.race.racers import eventually

ASKING = "name: asking\ninput: {topic: string, tone: string}\nsteps:\n  - {id: a, run: [echo]}\n"


def error(typed: Typed, code: int, *arguments: str) -> dict[str, Any]:
    said = typed(*arguments, "--json")
    assert said.code == code, said
    told: dict[str, Any] = json.loads(said.out)
    assert told.keys() == {"error"}
    return dict(told["error"])


def test_an_error_is_json_where_json_was_asked_for(engine: Engine, typed: Typed) -> None:
    stage = bring(engine, Status.DONE)
    told = error(typed, 1, "cancel", stage.task_id)
    assert told.keys() == {"code", "message", "next"}
    assert told["code"] == "already_terminal"
    assert told["next"] == f"holdfast show {stage.task_id}"
    missing = error(typed, 2, "show", "t_zzz")
    assert (missing["code"], missing["next"]) == ("not_found", "holdfast tasks")
    away = error(typed, 5, "runs", "--db", "none.db")
    assert (away["code"], away["next"]) == ("store_unreachable", "holdfast db upgrade --db none.db")
    assert "no such task" in missing["message"]


def test_a_mistake_in_typing_is_json_too(typed: Typed) -> None:
    told = error(typed, 2, "runs", "--bad")
    assert told["code"] == "usage"
    assert "--bad" in told["message"]
    assert told["next"] == "holdfast runs --help"


@pytest.mark.parametrize(
    ("typing", "told", "following"),
    [
        (("runs", "--limit", "5000"), "--limit: must be 1000 at most, not '5000'", "runs"),
        (("worker", "--concurrency", "x"), "must be a whole number, not 'x'", "worker"),
        (("serve", "--port", "-1"), "--port: must be 0 or more, not '-1'", "serve"),
        (("runs", "--stats"), "is not an option of holdfast runs; did you mean --status?", "runs"),
        (
            ("up", "--server", "a"),
            "is not an option of holdfast up; holdfast worker, holdfast open have one",
            "up",
        ),
        (
            ("reject", "t_1", "--note", "no"),
            "is not an option of holdfast reject, which has --reason, --comment; holdfast approve",
            "reject",
        ),
        (("continue", "t_1", "-m", "hi"), "-m: is not an option of holdfast continue", "continue"),
        (
            ("task", "add", "roof", "--idle"),
            "--idle: is not an option of holdfast task add; --no-enqueue does that",
            "task add",
        ),
        (("runs", "-z"), "-z: is not an option of holdfast runs", "runs"),
        (("runs", "--limit"), "option '--limit' requires an argument", "runs"),
        (("db", "backup"), "FILE: is missing", "db backup"),
        (("show", "a", "b"), "got unexpected extra argument", "show"),
        (("tokn",), "no such command 'tokn'. Did you mean 'token'?", ""),
        (("watch",), "no such command 'watch'; `holdfast show --follow` watches a run", ""),
    ],
)
def test_a_mistake_in_typing_is_told_with_its_place_and_the_way_to_the_help(
    typed: Typed, typing: tuple[str, ...], told: str, following: str
) -> None:
    said = typed.refused(2, *typing)
    assert told in said
    assert said.endswith(f"next:  {' '.join(filter(None, ('holdfast', following)))} --help\n")
    assert "Input should" not in said


def test_the_next_command_that_an_error_names_can_be_typed(engine: Engine, typed: Typed) -> None:
    done, ready = bring(engine, Status.DONE), create(engine)
    needed = create(engine, key="a")
    finish(engine, needed)
    take(engine, create(engine, needs=(needed,)))
    lines = {
        ("cancel", done.task_id): "already_terminal",
        ("retry", ready): "invalid_transition",
        ("guard", done.task_id, "--token", str(done.token)): "may not act any more",
        ("work", "complete", done.task_id, "--token", "9.00"): "stale_token",
        ("work", "claim", done.task_id): "cannot be claimed now",
        ("task", "reset", needed): "started_dependents",
        ("task", "delete", needed): "needed_by_others",
        ("task", "add", "other", "--key", "a", "--payload", "7"): "key 'a' already belongs",
        ("task", "edit", ready, "--title", "x", "--version", "99"): "version_conflict",
        ("show", "r_zzzz"): "no such run",
        ("workflow", "show", "none"): "no such workflow",
        ("workers", "drain", "none"): "no such worker",
        ("token", "revoke", "none"): "no such token",
        ("schedule", "pause", "none"): "no such schedule",
        ("runs", "--status", "none"): "is not one of",
    }
    for line, told in lines.items():
        said = typed(*line)
        assert told in said.err, said
        found = re.findall(r"^next:  holdfast (.*)$", said.err, re.MULTILINE)
        assert len(found) == 1, said
        then = typed(*shlex.split(found[0].partition("   (")[0]))
        assert (then.code, "error:" in then.err) == (0, False), (line, then)


def test_every_command_that_is_told_names_the_store_that_was_typed(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_DB")
    store = ("--db", "holdfast.db")
    done, run = bring(engine, Status.DONE), start(engine)
    asked = create(engine)
    taken = take(engine, asked)
    assert engine.work.ask(asked, taken.token, "Which?").ok
    lines = {
        ("approve", run.id): f"`holdfast why {run.id} --db holdfast.db` tells what",
        ("retry", done.task_id): f"holdfast retry --again {done.task_id} --db holdfast.db does it",
        ("approve", asked): f"for an answer: holdfast answer {asked} '<answer>' --db holdfast.db\n",
        ("events", run.id, "--limit", "1"): " --db holdfast.db\n",
        ("logs", run.steps["plan"]): f"yet: holdfast why {run.steps['plan']} --db holdfast.db\n",
        ("workers",): "Start one: holdfast worker [APP] --db holdfast.db\n",
        ("task", "edit", asked): "`holdfast task edit --help`",
    }
    for line, told in lines.items():
        assert told in typed(*line, *store).err, line
    elsewhere = typed.refused(5, "runs")
    assert "or set --db or HOLDFAST_DB" in elsewhere


def test_commands_that_are_told_of_a_store_that_was_typed_can_be_typed_as_they_stand(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = create(engine, agent="late")
    (lost,) = engine.work.claim("worker", agents=["late"], lease=0.001)
    _, second = circle(engine)
    fails = Step(id="pack", retry=RetryPolicy(max_attempts=1))
    broken = start(engine, Workflow.define("broken", (fails,)))
    error = {"message": "add it: `holdfast workflow add nowhere.yaml`"}
    got = take(engine, broken.steps["pack"])
    assert engine.work.fail(got.task.id, got.token, error, retryable=False).ok
    view = engine.database.view
    assert eventually(lambda: bool(view(lambda tx: tx.read("expired_tasks", count=1))))
    monkeypatch.delenv("HOLDFAST_DB")
    typing = "--db holdfast.db"
    told = {
        ("doctor",): [
            f"`holdfast doctor --fix {typing}` takes them back",
            f"; holdfast cancel {second.id} {typing}; holdfast retry {second.id} {typing}\n",
        ],
        ("schedule", "list"): [f"--workflow … {typing}\n"],
        ("bus",): [f"nobody: holdfast worker {typing} does it\n"],
        ("why", second.id): [f"Fix:   holdfast cancel {second.id} {typing}\n"],
        ("show", broken.id): [f"`holdfast workflow add nowhere.yaml {typing}`"],
        ("why", broken.id): [f"`holdfast workflow add nowhere.yaml {typing}`"],
    }
    assert lost.task_id == late
    for line, hints in told.items():
        said = typed(*line, "--db", "holdfast.db")
        assert [each for each in hints if each not in said.out + said.err] == [], (line, said)
    fixes = typed.json("why", second.id, "--db", "holdfast.db")["fixes"]
    assert f"holdfast retry {second.id} {typing}" in fixes
    assert typing not in str(typed.json("doctor", "--db", "holdfast.db")["checks"])


def test_a_name_that_is_not_there_is_looked_for_in_its_own_list(typed: Typed) -> None:
    assert typed.refused(2, "token", "revoke", "no").endswith("next:  holdfast token list\n")
    for verb in ("lag", "forget"):
        told = typed.refused(2, "bus", verb, "workflow.events", "nobody")
        assert told.endswith("next:  holdfast bus groups\n")
    stale = typed.refused(1, "lease", "release", "a key", "--token", "1.00")
    assert stale.endswith("next:  holdfast lease acquire 'a key'\n")


def test_each_mistake_of_a_file_is_told_with_its_place(typed: Typed, tmp_path: Path) -> None:
    broken = "name: broken\nsteps:\n  - {id: test, run: [npm], rnu: 1}\n"
    (tmp_path / "broken.yaml").write_text(broken)
    told = error(typed, 2, "workflow", "validate", "broken.yaml")
    assert told["code"] == "invalid_workflow_file"
    (mistake,) = told["mistakes"]
    assert mistake == {
        "line": 3,
        "column": 28,
        "message": "step has no key 'rnu'",
        "hint": "did you mean 'run'?",
    }


def test_the_file_of_a_workflow_that_the_store_does_not_know_is_offered(
    typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "asking.yaml").write_text(ASKING)
    told = typed.refused(2, "run", "asking", "-i", "topic=a b", "--wait")
    assert told.endswith("next:  holdfast run asking.yaml -i 'topic=a b' --wait\n")
    assert typed.refused(2, "run", "other").endswith("next:  holdfast workflow list\n")


def test_the_input_that_is_missing_is_offered(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "asking.yaml").write_text(ASKING)
    told = typed.refused(2, "run", "asking.yaml", "--key", "a b")
    assert told.endswith("next:  holdfast run asking.yaml --key 'a b' -i topic=… -i tone=…\n")


@pytest.mark.parametrize(
    ("given", "following"),
    [
        ("-i topc=tea -i tone=dry", "-i topic=tea -i tone=dry"),
        ("--input=topc:=1 -i tone=dry", "--input=topic:=1 -i tone=dry"),
        ("-i topc=tea", "-i topic=tea -i tone=…"),
        ("-i topic=tea -i tone=dry -i more=1", "-i topic=tea -i tone=dry"),
        ("-i topic=tea -i tone=dry -i topics=1", "-i topic=tea -i tone=dry"),
    ],
)
def test_an_input_of_a_wrong_name_gets_the_right_one(
    typed: Typed, tmp_path: Path, given: str, following: str
) -> None:
    (tmp_path / "asking.yaml").write_text(ASKING)
    told = typed.refused(2, "run", "asking.yaml", *given.split())
    assert told.endswith(f"next:  holdfast run asking.yaml {following}\n")


def test_json_that_is_asked_for_before_the_command_is_given(engine: Engine, typed: Typed) -> None:
    task = create(engine)
    for before in (["--json"], ["--db", "holdfast.db", "--json"], ["--json", "--db=holdfast.db"]):
        (listed,) = json.loads(typed.ok(*before, "tasks"))["items"]
        assert listed["id"] == task
    assert json.loads(typed("--json", "cancel", "t_zzz").out)["error"]["code"] == "not_found"
    assert "--json: is not an option of holdfast up" in typed("--json", "up").out


def test_an_attempt_that_may_not_act_is_told_so(engine: Engine, typed: Typed) -> None:
    stage = bring(engine, Status.DONE)
    told = typed.refused(1, "guard", stage.task_id, "--token", str(stage.token))
    assert f"{stage.task_id} may not act any more (already_terminal)" in told
    assert told.count("stop, and change nothing more: the attempt is over") == 1
    late = typed.refused(1, "guard", stage.task_id, "--token", "9.00")
    assert late.count("stop, and change nothing more") == 1
    assert "is unchanged" in typed.refused(1, "cancel", stage.task_id)


def test_why_is_asked_of_the_last_run_where_none_is_named(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    assert typed.json("why")["id"] == run.id


def test_ctrl_c_while_it_starts_ends_it_without_a_word(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.app.command_registry.load_command_line", interrupt)
    said = typed("runs")
    assert (said.code, said.out, said.err) == (130, "", "")


@pytest.mark.parametrize(
    ("typing", "reason"),
    [
        (("worker", "--lease", "1ms"), "lease: must be at least 1s, so that it can be renewed"),
        (("task", "add", " "), "title: is empty; say what is to be done"),
        (("schedule", "add", "n", "--cron", "9 9 9", "--workflow", "none"), "cron: '9 9 9'"),
    ],
)
def test_a_value_that_could_only_go_wrong_later_is_refused_at_once(
    engine: Engine, typed: Typed, typing: tuple[str, ...], reason: str
) -> None:
    assert reason in typed.refused(2, *typing)
    assert engine.tasks.list() == []


def test_a_bus_that_is_no_url_is_refused_and_its_password_is_not_told(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine.tasks.list() == []
    monkeypatch.setenv("HOLDFAST_BUS", "amqp://ada:secret@there")
    for asked in (("bus", "groups"), ("worker",), ("serve", "--port", "0")):
        said = typed(*asked)
        assert said.code == 2
        assert "error: HOLDFAST_BUS: is no URL of a Redis; write redis://HOST:PORT/0" in said.err
        assert "secret" not in said.err


@pytest.mark.parametrize("asked", [("tasks", "--db"), ("db", "upgrade", "--db"), ("db", "backup")])
def test_a_name_that_no_file_can_have_is_told(typed: Typed, asked: tuple[str, ...]) -> None:
    said = typed.refused(5, *asked, "x" * 300)
    assert "x" * 300 in said
    assert "File name too long" in said


def test_a_folder_that_is_no_more_is_told(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    assert "the current folder cannot be used: No such file" in typed.refused(5, "tasks")


@pytest.mark.parametrize("name", ["fastapi", "httptools", "prometheus_client", "uvicorn"])
def test_a_server_of_which_a_part_is_not_installed_says_how_to_install_it(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    assert f"server: needs {name}: type pip install" in typed.refused(2, "serve", "--port", "0")
