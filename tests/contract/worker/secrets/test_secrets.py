"""A planted secret: it reaches the step that asks for it, and no store, log or file."""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Holdfast, InvalidInput, NewRun, TaskFailed
from holdfast.engine.engine import engine_of
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import StepFailed
from holdfast.worker.secrets.secrets import Secrets
from tests.acceptance.worker.watched_attempt import program
from tests.contract.planted_secret import ENV, LOOKED_FOR, SECRET, found
from tests.contract.worker.file_steps import ONCE, SOON, file_steps
from tests.race.racers import eventually

# It says the secret in every way it can think of; on its first attempt it fails with it.
TELLS = """
import base64, json, os, sys, time
secret = os.environ["PLANTED"]
for letter in secret:
    os.write(1, letter.encode())
for n in range(3):
    print("\\n" + base64.b64encode(b"x" * n + secret.encode()).decode(), flush=True)
print(json.dumps({"said": secret, secret: [secret]}))
sys.stderr.write(secret[:5]); sys.stderr.flush(); sys.stderr.write(secret[5:] + "\\n")
if os.environ["HOLDFAST_ATTEMPT"] == "1":
    sys.exit(secret)
with open(os.environ["HOLDFAST_OUTPUT"], "w") as file:
    json.dump({"%s": secret, secret: base64.b64encode(secret.encode()).decode()}, file)
"""


@pytest.mark.parametrize("key", ["said", "question"])
def test_a_secret_reaches_a_command_and_nothing_that_is_written_down(
    store_url: str, tmp_path: Path, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with file_steps(store_url, tmp_path, {"PLANTED": SECRET}, renewal=0.05) as steps:
        text = TELLS.replace(", secret: base64.b64encode(secret.encode()).decode()", "") % key
        task_id = steps.enqueue(StepWork(command=program(text), env=ENV), retry=SOON)
        assert eventually(
            lambda: (
                steps.hf.tasks.get(task_id).terminal
                or steps.hf.tasks.get(task_id).question is not None
            )
        )
        task = steps.hf.tasks.get(task_id)
        assert (task.output or {key: task.question}) == {key: "[secret PLANTED]"}
        assert steps.log(task_id).count("[secret PLANTED]") >= 6
        assert found(store_url, tmp_path) == []
    assert not any(each in caplog.text for each in LOOKED_FOR)


def test_outputs_errors_and_progress_of_a_function_are_stored_without_the_workers_secrets(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept" / "secrets"
    kept.parent.mkdir()
    kept.touch(mode=0o600)
    kept.write_text(f"# of the store\n\nPLANTED = {SECRET}\n")
    monkeypatch.setenv("HOLDFAST_SECRETS", str(kept))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    with Holdfast(store_url, renewal=0.05) as hf:

        @hf.task(max_attempts=2, backoff=0.01)
        def tell(ctx: Context) -> list[str]:
            ctx.progress({"now": SECRET})
            ctx.log(SECRET)
            if ctx.attempt == 1:
                raise StepFailed("x" * 1990 + SECRET)
            assert isinstance(ctx, AttemptContext)
            return [SECRET, ctx.latest_progress["now"]]

        with hf.worker(concurrency=1):
            given = tell.enqueue().result(20)
        assert given == ["[secret PLANTED]", "[secret PLANTED]"]
        kept.unlink()
        assert found(store_url, tmp_path) == []


def test_values_that_a_function_would_read_again_are_refused_by_the_name_of_their_secret(
    store_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    kept = tmp_path / "secrets"
    kept.touch(mode=0o600)
    kept.write_text(f"PLANTED = {SECRET}\n")
    monkeypatch.setenv("HOLDFAST_SECRETS", str(kept))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    raw = b"\0" + base64.b64encode(SECRET.encode())
    with Holdfast(store_url, renewal=0.05) as hf:

        @hf.task
        def child(given: dict[str, list[str]]) -> None: ...

        @hf.task(max_attempts=1)
        def tell(ctx: Context, way: str) -> object:
            both = {SECRET: [SECRET]}
            ways: dict[str, Callable[[], object]] = {
                "effect": lambda: ctx.effect("pay", lambda: both),
                "effect name": lambda: ctx.effect(SECRET, int),
                "child": lambda: ctx.spawn(child, both),
                "children": lambda: ctx.map(child, [both]),
                "file": lambda: ctx.artifact("raw.bin", raw),
                "file name": lambda: ctx.artifact(SECRET, "x"),
                "lease": lambda: ctx.lease(SECRET, 1),
                "path": lambda: ctx.artifact("secrets", kept),
                "wait": lambda: ctx.wait_for("signal", name=SECRET),
                "text": lambda: ctx.artifact("notes.txt", f"see {SECRET}").read_text(),
                "error": lambda: raise_with(SECRET),
            }
            return ways[way]()

        refused = {"effect", "child", "children", "file", "lease", "path", "wait"}
        refused |= {"effect name", "file name"}
        with hf.worker(concurrency=4):
            jobs = {way: tell.enqueue(way) for way in [*refused, "error", "text"]}
            assert jobs["text"].result(20) == "see [secret PLANTED]"
            errors: dict[str, Any] = {}
            for way in [*refused, "error"]:
                with pytest.raises(TaskFailed):
                    jobs[way].result(20)
                errors[way] = hf.tasks.get(jobs[way].id).error
        for way in refused:
            assert "holds the secret PLANTED" in errors[way]["message"], way
        assert "\n".join(errors["error"]["traceback"]).count("[secret PLANTED]") >= 4
        kept.unlink()
        assert found(store_url, tmp_path) == []
    assert not any(each in caplog.text for each in LOOKED_FOR)


def raise_with(secret: str) -> None:
    """An error with a secret in its message, its notes and what it was caused by."""
    try:
        try:
            os.environ[secret]
        except KeyError as error:
            error.add_note(secret)
            raise ValueError({"key": secret}) from error
    except ValueError as error:
        raise ExceptionGroup(secret, [error]) from None


def test_the_token_of_an_attempt_is_kept_out_of_what_its_function_says(
    sqlite_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    tokens = []
    with Holdfast(sqlite_store_url) as hf:

        @hf.task(max_attempts=2, backoff=0.01)
        def tell(ctx: Context) -> str:
            tokens.append(ctx.token)
            ctx.log(ctx.token)
            if ctx.attempt == 1:
                raise ValueError(ctx.token)
            return ctx.token

        with hf.worker():
            job = tell.enqueue()
            assert job.result(20) == "[secret HOLDFAST_ATTEMPT_TOKEN]"
        assert found(sqlite_store_url, tmp_path, dict(zip("AB", tokens, strict=True))) == []


def test_a_secret_is_one_before_the_first_step_of_its_run_and_is_not_inherited(
    store_url: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLANTED", SECRET)
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret"
    elsewhere.write_text(f"{SECRET}\n")
    show = StepWork(command=("sh", "-c", 'echo "<$PLANTED>"; cat "$0"', str(elsewhere)))
    use = StepWork(command=("sh", "-c", '[ "$PLANTED" = "$(cat "$0")" ]', str(elsewhere)), env=ENV)
    workflow = Workflow.define(
        "two", (Step(id="show", work=show), Step(id="use", work=use, needs=("show",)))
    )
    with file_steps(store_url, tmp_path, {"PLANTED": SECRET}) as steps:
        run = steps.hf.runs.start(NewRun(workflow=workflow))
        assert eventually(lambda: steps.hf.runs.get(run.id).terminal)
        assert steps.hf.runs.get(run.id).status == "completed"
        first, _ = steps.hf.runs.tasks(run.id)
        assert steps.log(first.id) == "<>\n[secret PLANTED]\n"
        assert found(store_url, tmp_path) == []


def test_the_secret_of_a_workflow_that_has_not_begun_is_one_for_the_commands_of_others(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", SECRET)
    use = Step(id="use", work=StepWork(command=("true",), env=ENV))
    with file_steps(store_url, tmp_path, {"PLANTED": SECRET}) as steps:
        say = StepWork(command=("sh", "-c", 'echo "<$PLANTED>"'))
        earlier = steps.done(say)
        assert steps.log(earlier.id) == f"<{SECRET}>\n"
        engine_of(steps.hf).workflows.add(Workflow.define("another", (use,)))
        assert steps.log(steps.done(say).id) == "<[secret PLANTED]>\n"


def test_secrets_come_from_the_file_first_and_then_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"A": "from-the-file"}))
    secrets = Secrets("sqlite:///x", {"HOLDFAST_SECRETS": str(path), "A": "1", "B": "from-outside"})
    assert secrets.redaction.text("from-the-file, from-outside") == "[secret A], from-outside"
    assert (secrets.get("A"), secrets.get("B")) == ("from-the-file", "from-outside")
    assert secrets.redaction.text("from-the-file, from-outside") == "[secret A], [secret B]"


def test_two_secrets_of_one_name_are_both_kept_out(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.touch(mode=0o600)
    path.write_text("HOLDFAST_TOKEN=of-the-user\nWORKER_TOKEN=another-of-the-user\n")
    own = {"WORKER_TOKEN": "of-the-worker"}
    secrets = Secrets("sqlite:///x", {"HOLDFAST_SECRETS": str(path)}, own)
    clean = secrets.make_redaction_with({"HOLDFAST_TOKEN": "of-the-attempt"})().text
    said = "of-the-user another-of-the-user of-the-worker of-the-attempt"
    told = "[secret HOLDFAST_TOKEN] [secret WORKER_TOKEN] [secret WORKER_TOKEN_]"
    assert clean(said) == f"{told} [secret HOLDFAST_TOKEN_]"


def test_the_password_of_the_store_is_a_secret_where_the_url_stands() -> None:
    url = "postgresql://postgres:postgres@localhost/shop"
    told = Secrets(url, {}).redaction.text(f"postgres at {url}")
    assert told == "postgres at postgresql://[secret HOLDFAST_DB]/shop"


PASSWORD = "correct-horse/battery"


@pytest.mark.parametrize(
    ("url", "variables"),
    [
        ("postgresql://me:correct-horse%2Fbattery@db/x", {}),
        ("postgresql://me@db/x?password=correct-horse%2Fbattery", {}),
        ("postgresql://db/x?user=me&p%61ssword=correct-horse%2fbattery", {}),
        ("postgresql://me@db/x", {"PGPASSWORD": PASSWORD}),
    ],
)
def test_the_password_of_the_store_is_a_secret_wherever_it_stands(
    url: str, variables: dict[str, str]
) -> None:
    clean = Secrets(url, variables).redaction.text
    assert "horse" not in clean(f"HOLDFAST_DB={url}")
    assert clean(f"PGPASSWORD={PASSWORD}") == "PGPASSWORD=[secret HOLDFAST_DB_PASSWORD]"


def test_a_short_password_of_the_store_is_a_secret_where_the_url_names_it() -> None:
    told = Secrets("postgresql://db/x?password=horse", {}).redaction.text
    assert told("a horse, password=horse") == "a horse, [secret HOLDFAST_DB]"


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("A=long-enough", 0o644, "chmod 600"),
        ("A=short", 0o600, "must have 8"),
        ("no separator", 0o600, "line 1: write NAME=value"),
        ('{"A": 1}', 0o600, "must hold a text for each name"),
        ('{"A"', 0o600, "is not JSON"),
        ("a b=long-enough", 0o600, "is no name"),
        (None, 0o600, "cannot be read"),
    ],
)
def test_a_file_of_secrets_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str | None, mode: int, reason: str
) -> None:
    path = tmp_path / "secrets"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(InvalidInput, match=reason):
        Secrets("sqlite:///x", {"HOLDFAST_SECRETS": str(path)})


def test_a_secret_that_is_too_short_is_refused_where_it_is_asked_for(
    sqlite_url: str, tmp_path: Path
) -> None:
    with file_steps(sqlite_url, tmp_path, {"PLANTED": "1234"}) as steps:
        task = steps.done(StepWork(command=("true",), env=ENV), retry=ONCE)
        assert "secret PLANTED: has 4 characters" in task.error["message"]
