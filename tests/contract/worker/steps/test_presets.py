"""Steps that use a preset, against stand-ins that replay what the real programs wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import NewRun, RetryPolicy
from holdfast.engine.engine import engine_of
from holdfast.model.budget import Budget
from holdfast.model.status import Hold
from holdfast.model.task import Task
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.presets.catalogue import PRESETS
from holdfast.settings import AgentUse
from tests.contract.worker.file_steps import ONCE, FileSteps, file_steps
from tests.programs_of_agents import AgentPrograms, Run, replay
from tests.race.racers import eventually

SUMMARY = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "files": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["summary"],
}
WANT_A_LOGIN = {
    "claude-401",
    "aider-nokey",
    "aider-401",
    "opencode-401",
    "gemini-nologin",
    "copilot-nologin",
    "codex-nologin",
}
ANSWERED = {"claude", "codex", "copilot", "gemini", "opencode", "qwen"}


@pytest.fixture
def steps(sqlite_url: str, tmp_path: Path) -> Iterator[FileSteps]:
    with file_steps(sqlite_url, tmp_path) as made:
        yield made


@pytest.fixture
def install_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentPrograms:
    return AgentPrograms(tmp_path / "programs", monkeypatch)


def using(preset: str, *, prompt: str = "Create hello.txt", **fields: Any) -> StepWork:
    asked = {name: fields.pop(name) for name in AgentUse.__slots__ if name in fields}
    return StepWork(prompt=prompt, use=AgentUse(preset=preset, **asked), **fields)


def attempt_of(steps: FileSteps, task: Task | str, number: int = 1) -> Any:  # noqa: ANN401
    task_id = task if isinstance(task, str) else task.id
    return steps.hf.tasks.attempts(task_id)[number - 1]


def message_of(steps: FileSteps, task: Task, number: int = 1) -> str:
    return str(attempt_of(steps, task, number).error["message"])


def held(steps: FileSteps, task_id: str, hold: Hold) -> bool:
    return eventually(lambda: hold in steps.hf.tasks.get(task_id).holds)


def test_the_answer_the_usage_and_the_session_of_claude_are_recorded(
    store_url: str, tmp_path: Path, install_agent: AgentPrograms
) -> None:
    claude = install_agent("claude", replay("claude-ok"))
    with file_steps(store_url, tmp_path) as steps:
        task = steps.done(using("claude", model="opus", turns=5, usd=1.5))
        assert (task.status, task.output) == ("done", {"text": "Done: wrote hello.txt."})
        assert attempt_of(steps, task).usage == {
            "preset": "claude",
            "session": "00000000-0000-4000-8000-000000000115",
            "input_tokens": 2460,
            "cached_tokens": 40,
            "output_tokens": 50,
            "usd": 0.010708,
        }
        assert '"type":"result"' in steps.log(task.id)
    assert claude.input() == "Create hello.txt"
    assert " ".join(claude.arguments()) == (
        "-p --output-format stream-json --verbose --permission-mode acceptEdits --model opus "
        "--max-turns 5 --max-budget-usd 1.5"
    )
    assert claude.environment()["DISABLE_AUTOUPDATER"] == "1"


@pytest.mark.parametrize("name", sorted(PRESETS.keys() - {"cursor"}))
def test_each_client_that_was_captured_does_its_work(
    steps: FileSteps, name: str, install_agent: AgentPrograms
) -> None:
    program = install_agent(PRESETS[name].program[0], replay(f"{name}-ok"))
    task = steps.done(using(name))
    assert task.status == "done", task.error
    said = "Done: wrote hello.txt." if name in ANSWERED else "I will add it."
    assert task.output["text"].startswith(said)
    asked = program.arguments() if PRESETS[name].takes_prompt else [program.input()]
    assert "Create hello.txt" in asked


@pytest.mark.parametrize(
    ("stream", "fix"),
    [
        ("claude-denied-gitcommit", "Bash (echo x > committed.txt"),
        ("claude-plan", "Write (/repo/hello.txt)"),
        ("copilot-denied", "bash (touch made-by-bash.txt)"),
        ("gemini-plan", "write_file (/repo/hello.txt)"),
        ("opencode-denyask", "bash (touch made-by-bash.txt)"),
    ],
)
def test_a_denied_tool_is_a_failed_attempt_that_names_the_fix(
    steps: FileSteps, stream: str, fix: str, install_agent: AgentPrograms
) -> None:
    name = stream.partition("-")[0]
    install_agent(name, replay(stream))
    task = steps.done(using(name), retry=ONCE)
    assert task.status == "failed"
    said = message_of(steps, task)
    assert said.startswith(f"{PRESETS[name].title} was not allowed to use {fix}")
    assert "give agent 'default' `access: full` or `flags:` that allow it" in said


@pytest.mark.parametrize(
    ("stream", "code"),
    [("copilot-429", 1), ("aider-429", 0), ("claude-limit", 1), ("codex-limit", 1)],
)
def test_a_usage_limit_holds_the_task_and_costs_no_attempt(
    steps: FileSteps, stream: str, code: int, install_agent: AgentPrograms
) -> None:
    name = stream.partition("-")[0]
    program = install_agent(name, replay(stream, code=code))
    task_id = steps.enqueue(using(name))
    assert held(steps, task_id, Hold.LIMIT)
    task = steps.hf.tasks.get(task_id)
    assert (task.status, task.failures, task.lost) == ("queued", 0, 0)
    assert attempt_of(steps, task_id).outcome == "released"
    assert "limit" in str(steps.hf.why(task_id))
    assert program.count == 1


@pytest.mark.parametrize(("stream", "seconds"), [("copilot-429", 3_600), ("claude-limit", 300)])
def test_the_hold_ends_when_the_stream_says_that_the_limit_lifts_or_else_soon(
    steps: FileSteps, stream: str, seconds: int, install_agent: AgentPrograms
) -> None:
    name = stream.partition("-")[0]
    install_agent(name, replay(stream, code=1))
    task_id = steps.enqueue(using(name))
    assert held(steps, task_id, Hold.LIMIT)
    until = steps.hf.tasks.get(task_id).held_until
    assert until is not None
    left = until.timestamp() - engine_of(steps.hf).now() / 1e6
    assert seconds - 30 < left <= seconds


def test_a_client_that_waits_out_its_limit_silently_is_ended_and_held(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    install_agent("opencode", Run(hangs=True))
    task_id = steps.enqueue(using("opencode", idle_timeout=0.3))
    assert held(steps, task_id, Hold.LIMIT)
    assert steps.hf.tasks.get(task_id).failures == 0


def test_a_silent_client_that_is_not_known_to_wait_has_failed(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    install_agent("codex", Run(hangs=True))
    task = steps.done(using("codex", idle_timeout=0.3), retry=ONCE)
    assert message_of(steps, task) == "was silent for longer than 0.3 s"


def test_a_repair_goes_on_in_the_same_session(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    claude = install_agent("claude", replay("claude-ok"), replay("claude-schema"))
    task = steps.done(using("claude", outputs=SUMMARY))
    assert (task.status, task.output) == ("done", {"summary": "did it", "files": ["hello.txt"]})
    assert claude.arguments(2)[-2:] == ["--resume", "00000000-0000-4000-8000-000000000115"]
    asked = claude.input(2)
    assert asked.startswith("Your answer could not be read as it has to be:\n\n- there is no JSON")
    assert "Create hello.txt" not in asked
    assert "HOLDFAST_OUTPUT" not in claude.input(1) + asked


def test_what_a_session_used_before_its_repair_is_counted_once(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    first = replay("claude-ok")
    resumed = replay("claude-resume").stream.replace(
        b"00000000-0000-4000-8000-000000000164", b"00000000-0000-4000-8000-000000000115"
    )
    assert resumed.count(b"000000000115") > 2
    install_agent("claude", first, Run(stream=resumed))
    task = steps.done(using("claude", outputs=SUMMARY), retry=ONCE)
    assert task.status == "failed"
    assert attempt_of(steps, task).usage["usd"] == 0.016062
    assert attempt_of(steps, task).usage["output_tokens"] == 75


def test_a_repair_by_a_client_without_sessions_is_told_everything(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    answered = replay("aider-ok").stream.replace(b"I will add it.", b'{"summary": "added"}')
    aider = install_agent("aider", replay("aider-ok"), Run(stream=answered))
    task = steps.done(using("aider", outputs=SUMMARY))
    assert (task.status, task.output) == ("done", {"summary": "added"})
    assert "Create hello.txt" in aider.arguments(2)[-1]
    # Each run tells what it used itself.
    assert attempt_of(steps, task).usage["output_tokens"] == 50


def test_a_client_holds_its_answer_to_a_schema_where_it_is_told_to(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    claude = install_agent("claude", replay("claude-schema"))
    codex = install_agent("codex", replay("codex-schema"))
    for name in ("claude", "codex"):
        task = steps.done(using(name, schema=True, outputs=SUMMARY))
        assert task.output["summary"] == "did it"
    given = claude.arguments()
    assert json.loads(given[given.index("--json-schema") + 1]) == SUMMARY
    file = codex.arguments()[codex.arguments().index("--output-schema") + 1]
    assert file.endswith("schema.json")
    assert not Path(file).exists()


def test_a_question_waits_for_a_person_and_the_answer_comes_in_the_prompt(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    asked = replay("codex-ok").stream.replace(
        b"Done: wrote hello.txt.", rb"{\"question\": \"Which file?\"}"
    )
    codex = install_agent("codex", Run(stream=asked), replay("codex-ok"))
    task_id = steps.enqueue(using("codex"))
    assert held(steps, task_id, Hold.QUESTION)
    assert attempt_of(steps, task_id).usage["output_tokens"] == 50
    steps.hf.answer(task_id, "hello.txt")
    assert eventually(lambda: steps.hf.tasks.get(task_id).terminal)
    assert codex.input(2).endswith("Which file?\nhello.txt\n")


@pytest.mark.parametrize(
    ("stream", "code", "said"),
    [
        (
            "claude-bypass-root",
            1,
            "ended with exit code 1: --dangerously-skip-permissions cannot be used with root/sudo ",
        ),
        (
            "claude-401",
            1,
            "Claude Code: Invalid API key · Fix external API key; log in with `claude auth login` ",
        ),
        ("claude-maxturns", 1, "Claude Code: Reached maximum number of turns (3)"),
        ("claude-budget", 1, "Claude Code: Reached maximum budget ($0.02)"),
        ("aider-nokey", 0, "aider: AuthenticationError: OpenAIException - The api_key client "),
        (
            "aider-401",
            0,
            "aider: AuthenticationError: OpenAIException - Incorrect API key provided: fake. The ",
        ),
        ("opencode-401", 0, "opencode: Incorrect API key provided: fake.; log in with "),
        ("qwen-maxturns", 53, "ended with exit code 53: "),
        ("gemini-nologin", 41, "ended with exit code 41: Please set an Auth method in your "),
        ("copilot-nologin", 1, "ended with exit code 1: Error: No authentication information "),
        ("codex-nologin", 1, "ended with exit code 1: "),
    ],
)
def test_a_run_that_goes_wrong_is_told_as_the_client_tells_it(
    steps: FileSteps, stream: str, code: int, said: str, install_agent: AgentPrograms
) -> None:
    name = stream.partition("-")[0]
    install_agent(name, replay(stream, code=code))
    task = steps.done(using(name), retry=ONCE)
    assert task.status == "failed"
    message = message_of(steps, task)
    assert message.startswith(said)
    # What a program wants for a login is said once, and as something to type.
    assert message.count("then retry") == (stream in WANT_A_LOGIN)


def test_lines_that_nobody_knows_change_nothing(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    stream = replay("gemini-ok").stream
    install_agent("gemini", Run(stream=b"\x00\xff\n{}\n" + stream.replace(b"\n", b"\nnews\n")))
    task = steps.done(using("gemini"))
    assert task.output == {"text": "Done: wrote hello.txt."}


def test_the_progress_is_what_the_agent_does_now(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    install_agent("claude", replay("claude-kill9-part1", hangs=True))
    task_id = steps.enqueue(using("claude"))
    told = {"log": "Write: /repo/hello.txt"}
    assert eventually(lambda: steps.hf.tasks.get(task_id).progress == told)
    steps.hf.tasks.cancel(task_id)
    assert eventually(lambda: steps.idle)


@pytest.mark.parametrize(
    ("of_agent", "of_attempt", "given"), [(0.5, None, "0.5"), (0.5, 0.2, "0.2"), (None, 3, "3")]
)
def test_the_lower_of_the_money_of_an_agent_and_of_an_attempt_is_the_limit_of_a_run(
    steps: FileSteps,
    of_agent: float | None,
    of_attempt: float | None,
    given: str,
    install_agent: AgentPrograms,
) -> None:
    claude = install_agent("claude", replay("claude-ok"))
    step = Step(id="step", work=using("claude", usd=of_agent))
    declared = WorkflowDeclarations(budget=Budget(usd_per_attempt=of_attempt))
    workflow = Workflow.define("one", (step,), declared=declared)
    run = steps.hf.runs.start(NewRun(workflow=workflow))
    assert eventually(lambda: steps.hf.runs.get(run.id).terminal)
    assert claude.arguments()[-2:] == ["--max-budget-usd", given]


def test_an_attempt_that_used_more_than_it_may_has_failed_although_it_answered(
    steps: FileSteps, install_agent: AgentPrograms
) -> None:
    install_agent("opencode", replay("opencode-ok"))
    step = Step(id="step", work=using("opencode"), retry=ONCE)
    declared = WorkflowDeclarations(budget=Budget(usd_per_attempt=0.002))
    workflow = Workflow.define("one", (step,), declared=declared)
    run = steps.hf.runs.start(NewRun(workflow=workflow))
    (task,) = steps.hf.runs.tasks(run.id)
    assert eventually(lambda: steps.hf.tasks.get(task.id).terminal)
    told = steps.hf.tasks.get(task.id)
    assert told.status == "failed"
    assert "an attempt may use $0.002" in message_of(steps, told)


def test_a_client_that_meets_a_silent_limit_again_and_again_fails_in_the_end(
    steps: FileSteps, install_agent: AgentPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.worker.steps.command_step.MOST_FREE_ATTEMPTS", 0)
    install_agent("opencode", Run(hangs=True))
    task = steps.done(using("opencode", idle_timeout=0.3), retry=ONCE)
    assert message_of(steps, task) == "was silent for longer than 0.3 s"


def test_what_a_worker_or_an_agent_sets_comes_before_what_a_preset_would(
    steps: FileSteps, install_agent: AgentPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCODE_DISABLE_AUTOUPDATE", "no")
    monkeypatch.setenv("OPENCODE_PERMISSION", "everything")
    opencode = install_agent("opencode", replay("opencode-ok"))
    steps.done(using("opencode", access="read", env={"MINE": "too"}))
    given = opencode.environment()
    assert given["OPENCODE_DISABLE_AUTOUPDATE"] == "no"
    assert json.loads(given["OPENCODE_PERMISSION"]) == {"edit": "deny", "bash": "deny"}
    assert given["MINE"] == "too"


def test_a_secret_in_the_stream_of_an_agent_is_kept_out_of_its_answer(
    sqlite_url: str, tmp_path: Path, install_agent: AgentPrograms
) -> None:
    stream = replay("claude-ok").stream.replace(b"Done: wrote", b"Done with hunter2hunter2: wrote")
    install_agent("claude", Run(stream=stream))
    with file_steps(sqlite_url, tmp_path, {"KEY": "hunter2hunter2"}) as steps:
        task = steps.done(using("claude", env={"KEY": "{{ secret.KEY }}"}))
        assert task.output == {"text": "Done with [secret KEY]: wrote hello.txt."}
        assert "hunter2" not in steps.log(task.id)


def test_a_later_attempt_is_a_new_session(steps: FileSteps, install_agent: AgentPrograms) -> None:
    retry = RetryPolicy(max_attempts=2, backoff=0.01, backoff_max=0.01)
    claude = install_agent("claude", replay("claude-kill9-part1", code=1), replay("claude-ok"))
    task = steps.done(using("claude"), retry=retry)
    assert (task.status, task.attempt) == ("done", 2)
    assert "--resume" not in claude.arguments(2)
    assert attempt_of(steps, task).usage["session"] != attempt_of(steps, task, 2).usage["session"]
