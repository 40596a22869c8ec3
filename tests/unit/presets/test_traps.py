"""The traps of each client's stream and exit code, as captured from the programs themselves."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.presets.agent_report import AgentReport
from holdfast.presets.catalogue import PRESETS
from holdfast.presets.reset_times import find_reset

STREAMS = Path(__file__).parents[2] / "fixtures" / "streams"


def read(name: str) -> AgentReport:
    return read_bytes(name.partition("-")[0], (STREAMS / f"{name}.jsonl").read_bytes())


def read_bytes(client: str, data: bytes) -> AgentReport:
    reader = PRESETS[client].reader()
    reader.feed(data)
    reader.end()
    return reader.report


@pytest.mark.parametrize("name", ["claude-400", "claude-401", "claude-529", "claude-nologin"])
def test_claude_that_ends_with_success_and_an_error_has_failed(name: str) -> None:
    report = read(name)
    assert report.error is not None
    assert report.result is None
    assert report.login == (name in {"claude-401", "claude-nologin"})


def test_claude_that_tries_again_has_met_no_limit() -> None:
    report = read("claude-conn-refused-retry")
    assert (report.limit, report.error, report.ended) == (None, None, False)
    assert report.progress == "asks the model again, try 7: unknown"


def test_the_tokens_of_claude_are_those_of_its_result_and_not_of_its_messages() -> None:
    # Each of the two messages says 1,200, and the last turn is missing in the result's own sum.
    assert read("claude-ok").usage.input_tokens == 2_460
    assert read("claude-budget").usage.output_tokens == 100


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_session_that_goes_on_counts_what_it_used_before(client: str) -> None:
    first, second = read(f"{client}-ok"), read(f"{client}-resume")
    assert PRESETS[client].totals_go_on
    assert second.usage.output_tokens == first.usage.output_tokens + 25


@pytest.mark.parametrize(
    ("name", "denied"),
    [
        ("claude-denied-dontask", "Bash (touch made-by-bash.txt)"),
        (
            "claude-denied-gitcommit",
            "Bash (echo x > committed.txt && git add -A && git commit -qm agent-commit)",
        ),
        ("claude-plan", "Write (/repo/hello.txt)"),
        ("copilot-denied", "bash (touch made-by-bash.txt)"),
        ("gemini-plan", "write_file (/repo/hello.txt)"),
        ("opencode-denyask", "bash (touch made-by-bash.txt)"),
        ("opencode-plan", "write (/repo/hello.txt)"),
    ],
)
def test_a_denied_tool_is_told_although_the_exit_code_is_0(name: str, denied: str) -> None:
    assert [str(each) for each in read(name).denials] == [denied]


@pytest.mark.parametrize("name", ["codex-readonly", "codex-worktree-commit", "gemini-denied"])
def test_a_client_that_blocks_silently_leaves_no_denial(name: str) -> None:
    """The stream cannot tell, so each of these presets has a note of it."""
    report = read(name)
    assert (report.denials, report.result) == ([], "Done: wrote hello.txt.")
    notes = " ".join(PRESETS[name.partition("-")[0]].notes)
    assert "nothing is denied" in notes or "leaves no line" in notes


@pytest.mark.parametrize(
    ("name", "at", "seconds"),
    [
        ("claude-limit", None, None),
        ("claude-429", None, None),
        ("codex-limit", datetime(2030, 1, 1), None),  # noqa: DTZ001 - its machine's own time
        ("codex-429", None, None),
        ("gemini-429", None, None),
        ("copilot-429", None, 3_600.0),
        ("aider-429", None, 3_600.0),
    ],
)
def test_a_usage_limit_is_no_failure(name: str, at: datetime | None, seconds: float | None) -> None:
    report = read(name)
    assert report.limit is not None
    assert (report.limit.at, report.limit.seconds) == (at, seconds)
    assert report.error is None
    assert report.result is None


def test_claude_tells_a_subscription_when_its_limit_lifts() -> None:
    told = {"status": "rejected", "resetsAt": 1_893_456_000, "rateLimitType": "five_hour"}
    line = json.dumps({"type": "rate_limit_event", "rate_limit_info": told}).encode()
    stream = (STREAMS / "claude-limit.jsonl").read_bytes()
    first, rest = stream.split(b"\n", 1)
    report = read_bytes("claude", b"\n".join((first, line, rest)))
    assert report.limit is not None
    assert report.limit.at == datetime(2030, 1, 1, tzinfo=UTC)
    warned = line.replace(b"rejected", b"allowed_warning")
    assert read_bytes("claude", warned).limit is None


def test_opencode_tells_when_its_limit_lifts_in_the_headers_of_an_answer() -> None:
    line = (STREAMS / "opencode-401.jsonl").read_bytes()
    limited = line.replace(b'"statusCode":401', b'"statusCode":429')
    report = read_bytes(
        "opencode", limited.replace(b'"content-length":"134"', b'"retry-after":"90"')
    )
    assert report.limit is not None
    assert report.limit.seconds == 90.0


@pytest.mark.parametrize("client", ["opencode", "qwen"])
def test_a_client_that_waits_out_its_limit_is_known_for_that(client: str) -> None:
    assert PRESETS[client].silent_at_limit
    assert {each.name for each in PRESETS.values() if each.silent_at_limit} == {"opencode", "qwen"}


def test_qwen_is_silent_at_its_limit() -> None:
    report = read("qwen-429")
    assert (report.limit, report.error, report.ended) == (None, None, False)


def test_an_answer_after_a_limit_of_aider_counts_and_the_limit_does_not() -> None:
    limited = (STREAMS / "aider-429.jsonl").read_bytes()
    answered = (STREAMS / "aider-ok.jsonl").read_bytes().split(b"Repo-map: disabled\n", 1)[1]
    report = read_bytes("aider", limited + answered)
    assert report.limit is None
    assert report.result is not None
    assert report.result.endswith(">>>>>>> REPLACE\n```")


@pytest.mark.parametrize("name", ["aider-401", "aider-nokey"])
def test_aider_fails_by_its_text_although_its_exit_code_is_0(name: str) -> None:
    report = read(name)
    assert report.login
    assert report.error is not None
    assert "\n" not in report.error


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("claude-maxturns", "Reached maximum number of turns (3)"),
        ("claude-budget", "Reached maximum budget ($0.02)"),
        ("gemini-maxturns", "Reached max session turns for this session. Increase the number of "),
        ("claude-resume-missing", "No conversation found with session ID: "),
    ],
)
def test_the_end_of_turns_of_money_or_of_a_session_is_said_as_the_client_says_it(
    name: str, error: str
) -> None:
    assert (read(name).error or "").startswith(error)


def test_a_warning_of_codex_is_no_error() -> None:
    assert "not found" in (STREAMS / "codex-ok.jsonl").read_text()
    assert read("codex-ok").error is None


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_killed_run_has_told_the_session_in_which_it_goes_on(client: str) -> None:
    killed, resumed = read(f"{client}-kill9-part1"), read(f"{client}-kill9-part2")
    assert (killed.ended, killed.result) == (False, None)
    assert killed.session == resumed.session is not None


def test_a_question_of_claude_is_no_denial() -> None:
    asked = {"questions": [{"question": "Which database?", "options": []}]}
    used = {"type": "tool_use", "name": "AskUserQuestion", "input": asked}
    lines = [
        {"type": "assistant", "message": {"content": [used]}},
        {
            "type": "result",
            "is_error": False,
            "result": "I have to know which.",
            "permission_denials": [{"tool_name": "AskUserQuestion", "tool_input": asked}],
        },
    ]
    report = read_bytes("claude", "\n".join(map(json.dumps, lines)).encode())
    assert report.questions == ["Which database?"]
    assert report.denials == []


@pytest.mark.parametrize(
    ("message", "at", "seconds"),
    [
        ("Please try again in 1h0m0s.", None, 3_600.0),
        ("try again in 2 days, 3 hours and 5 minutes", None, 183_900.0),
        ("Please retry in 36.5s.", None, 36.5),
        ("resets after 20 minutes", None, 1_200.0),
        ("resets 2030-01-01T00:00:00Z", datetime(2030, 1, 1, tzinfo=UTC), None),
        ("try again at Feb 3rd, 2030 1:05 PM.", datetime(2030, 2, 3, 13, 5), None),  # noqa: DTZ001
        ("try again at Feb 31st, 2030 1:05 PM.", None, None),
        ("try again later", None, None),
        ("in 5 files", None, None),
    ],
)
def test_the_time_at_which_a_limit_lifts_is_found_in_prose(
    message: str, at: datetime | None, seconds: float | None
) -> None:
    assert find_reset(message) == (at, seconds)
