"""A worker written as a script: every verb carries the token, and a late one is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.engine.input.host_tags import make_host_tag
from holdfast.model.run import NewRun
from tests.contract.cli.command_line import Typed
from tests.contract.engine.read.test_step_texts import read
from tests.contract.task_states import NOT_GENUINE, create, start

ASKING = """\
name: asking
agents: {cook: {external: true}}
steps:
  - {id: make, agent: cook, prompt: "Make {{ input.task }}"}
"""

IN_FOLDER = """\
name: in_folder
workspace: /work/shop
agents: {cook: {external: true}}
steps:
  - {id: make, agent: cook, prompt: make}
"""

COUNTING = """\
name: counting
agents: {cook: {external: true}}
steps:
  - {id: count, agent: cook, prompt: count, outputs: {words: integer}}
"""


def claim(typed: Typed, *arguments: str) -> dict[str, Any]:
    said = typed("work", "claim", *arguments)
    assert said.code == 0, said.err
    (assignment,) = json.loads(said.out)["assignments"]
    return dict(assignment)


def test_a_script_claims_renews_logs_and_completes(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = start(engine, input={"n": 1})
    got = claim(typed, "--worker", "shell", "--lease", "10m", "--json")
    assert got["task"]["payload"] == {"input": {"n": 1}}
    task_id, token = got["task"]["id"], got["token"]
    attempt = (task_id, "--token", token)
    typed.ok("work", "renew", *attempt, "--progress", "half", "--usage", '{"usd": 0.1}')
    assert engine.tasks.get(task_id).progress == "half"
    typed.ok("work", "log", *attempt, "--text", "\x1b[31mbuilding\x1b[0m\x07")
    typed.ok("guard", *attempt)
    assert "attempt 1  running" in typed.ok("logs", task_id)
    assert "\nbuilding\\x07\n" in typed.ok("logs", task_id)
    (told,) = typed.json("logs", task_id)["items"]
    assert (told["attempt"], told["log"]) == (1, "\x1b[31mbuilding\x1b[0m\x07\n")
    kept = tmp_path / "holdfast.db.state/logs" / task_id / "1.log"
    assert kept.read_bytes() == b"\x1b[31mbuilding\x1b[0m\x07\n"
    typed.ok("work", "complete", *attempt, "--output", '{"stories": 3}', "--usage", '{"usd": 0.3}')
    assert run.task("plan").output == {"stories": 3}
    assert typed.json("show", run.id)["usage"] == {"usd": 0.3}
    assert "(as before)" in typed.ok("work", "complete", *attempt, "--output", '{"stories": 3}')
    told = typed.refused(1, "work", "complete", *attempt, "--output", "4")
    assert "result_conflict" in told
    following = claim(typed)
    assert following["task"]["payload"]["steps"] == {"plan": {"stories": 3}}


def test_a_result_that_does_not_fit_is_said_to_have_failed_the_attempt(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    path = tmp_path / "counting.yaml"
    path.write_text(COUNTING)
    typed.ok("run", str(path))
    got = claim(typed, "--agent", "cook")
    attempt = (got["task"]["id"], "--token", got["token"])
    told = typed.refused(1, "work", "complete", *attempt, "--output", '{"words": "five"}')
    assert f"{got['task']['id']} has failed this attempt (invalid_output): output.words" in told
    assert engine.tasks.get(got["task"]["id"]).failures == 1


def test_every_verb_of_a_late_worker_is_refused_and_says_to_stop(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    lone = create(engine)
    late = claim(typed, lone)
    assert engine.work.release(lone, late["token"]).ok
    fresh = claim(typed, lone)
    assert fresh["attempt"] == 2
    attempt = (lone, "--token", late["token"])
    for verb, code in (("complete", "stale_token"), ("fail", "stale_token"), ("renew", "stale")):
        told = typed.refused(1, "work", verb, *attempt)
        assert code in told
        assert "stop, and change nothing more: the attempt is over" in told
        assert told.endswith(f"next:  holdfast show {lone}\n")
    assert "already_claimed" in typed.refused(1, "guard", *attempt)
    assert "stale_token" in typed.refused(1, "work", "log", *attempt, "--text", "late")
    assert not (tmp_path / "holdfast.db.state").exists()
    assert engine.tasks.get(lone).attempt == 2
    typed.ok("guard", lone, "--token", fresh["token"])


def test_a_failure_is_tried_again_unless_it_is_final(engine: Engine, typed: Typed) -> None:
    lone = create(engine)
    first = claim(typed, lone)
    typed.ok("work", "fail", lone, "--token", first["token"], "--error", "no disk")
    assert engine.tasks.get(lone).error == "no disk"
    typed.ok("task", "run-now", lone)
    second = claim(typed, lone)
    typed.ok("work", "fail", lone, "--token", second["token"], "--final")
    assert engine.tasks.get(lone).status == "failed"
    assert f"✗ task {lone}  failed" in typed.ok()


def test_a_worker_that_meets_a_usage_limit_says_until_when(engine: Engine, typed: Typed) -> None:
    lone = create(engine)
    held = claim(typed, lone)
    tell = ("work", "fail", lone, "--token", held["token"], "--limit-until")
    assert "error: limit-until: a usage limit lifts at most" in typed.refused(2, *tell, "9d")
    assert "held (limit)" in typed.ok(*tell, "2h")
    assert engine.tasks.get(lone).failures == 0
    resumed = typed("resume", lone)
    assert resumed.code == 0
    assert "holdfast resume --agent default" in resumed.err
    typed.ok("resume", "--agent", "default")
    assert engine.tasks.get(lone).state == "ready"


def test_a_step_in_a_folder_of_this_machine_is_claimed_without_naming_the_machine(
    engine: Engine, typed: Typed
) -> None:
    for host in (None, "elsewhere"):
        engine.runs.start(NewRun(workflow=read(IN_FOLDER), host=host))
    assert claim(typed, "--agent", "cook")["task"]["tags"] == [make_host_tag()]
    assert typed("work", "claim", "--agent", "cook").code == 1
    assert claim(typed, "--agent", "cook", "--tag", "host:elsewhere")["attempt"] == 1


def test_nothing_to_claim_is_an_answer(engine: Engine, typed: Typed) -> None:
    create(engine, agent="developer")
    said = typed("work", "claim")
    assert (said.code, json.loads(said.out)) == (1, {"assignments": []})
    claim(typed, "--agent", "developer")


def test_a_released_task_waits_as_long_as_was_said(engine: Engine, typed: Typed) -> None:
    lone = create(engine)
    got = claim(typed, lone)
    typed.ok("work", "release", lone, "--token", got["token"], "--until", "10m")
    assert engine.tasks.get(lone).state == "scheduled"


def test_a_step_is_found_in_the_environment_and_missing_it_is_said(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone = create(engine)
    got = claim(typed, lone)
    assert "task: is missing; name it, or set HOLDFAST_TASK" in typed.refused(2, "guard")
    monkeypatch.setenv("HOLDFAST_TASK", lone)
    assert "token: is missing" in typed.refused(2, "guard")
    monkeypatch.setenv("HOLDFAST_ATTEMPT_TOKEN", got["token"])
    typed.ok("guard")
    monkeypatch.setenv("HOLDFAST_ATTEMPT_TOKEN", NOT_GENUINE)
    typed.refused(1, "guard")


def test_a_task_that_a_dead_worker_left_is_taken_back_by_the_next_claim(
    engine: Engine, typed: Typed
) -> None:
    lone = create(engine)
    lost = claim(typed, lone, "--lease", "1ms")
    assert claim(typed, lone)["attempt"] == 2
    assert "stale_token" in typed.refused(1, "work", "complete", lone, "--token", lost["token"])
    assert [each.outcome for each in engine.tasks.attempts(lone)] == ["lost", None]


def test_a_claim_as_variables_is_read_by_a_shell_as_it_was_written(
    engine: Engine, typed: Typed
) -> None:
    hostile = "it's $(date) `date` \\n"
    lone = create(engine, title=hostile, payload={"prompt": hostile})
    said = typed("work", "claim", "--shell")
    assert said.code == 0, said.err
    script = said.out + 'printf \'%s|\' "$HOLDFAST_TASK" "$HOLDFAST_TITLE" "$HOLDFAST_PROMPT"'
    read = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert read.stdout == f"{lone}|{hostile}|{hostile}|"
    assert typed("work", "claim", "--shell").code == 1
    assert "must be 1 with --shell" in typed.refused(2, "work", "claim", "--shell", "--max", "2")


def test_a_payload_that_is_too_long_for_a_variable_is_left_out(
    engine: Engine, typed: Typed
) -> None:
    create(engine, payload={"text": "x" * 40_000})
    told = typed.ok("work", "claim", "--shell")
    assert "unset HOLDFAST_PAYLOAD\n" in told
    assert "xxx" not in told


def test_a_script_is_given_the_prompt_of_a_workflow_file(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "asking.yaml"
    file.write_text(ASKING)
    typed.ok("run", str(file), "-i", "task=tea")
    assert claim(typed, "--agent", "cook")["task"]["payload"]["prompt"] == "Make tea"


def test_an_agent_without_a_name_is_refused(engine: Engine, typed: Typed) -> None:
    task = create(engine)
    for line in (("work", "claim"), ("work", "claim", task), ("worker",), ("why", task)):
        said = typed(*line, "--agent", "")
        assert (said.code, said.out) == (2, "")
        assert "error: agents: '' is not a name: " in said.err
    assert engine.tasks.get(task).status == "queued"


def test_guard_of_a_cancelled_attempt_says_to_retry_only_while_the_task_is_cancelled(
    typed: Typed,
) -> None:
    task = typed.json("task", "add", "Rake")["id"]
    token = typed.json("work", "claim")["assignments"][0]["token"]
    typed.ok("cancel", task)
    assert f"holdfast retry {task}" in typed.refused(1, "guard", task, "--token", token)
    typed.ok("retry", task)
    said = typed.refused(1, "guard", task, "--token", token)
    assert f"holdfast show {task}" in said
    assert "holdfast retry" not in said
