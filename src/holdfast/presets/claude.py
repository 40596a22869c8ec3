"""Claude Code: its flags, and its `stream-json` lines, whose form other clients have too.

An API failure ends with the subtype `success`: `is_error` decides. The usage of an `assistant` line
is that of the start of its message, so only the usage of the result counts.
"""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.presets.agent_report import AgentUsage
from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import (
    Event,
    JsonReader,
    UnreadableLine,
    as_count,
    as_dollars,
    as_list,
    as_mapping,
    make_usage,
    read_text,
)

TOO_MANY_REQUESTS = 429
_LOGIN_ERRORS = frozenset(
    {"authentication_failed", "oauth_org_not_allowed", "account_on_hold", "verification_required"}
)
_QUESTION_TOOL = "AskUserQuestion"


class ClaudeReader(JsonReader):
    def read_event(self, event: Event) -> None:
        report = self.report
        kind = event.get("type")
        if isinstance(session := event.get("session_id"), str) and session:
            report.session = session
        if kind == "assistant":
            self._read_assistant(event)
        elif kind == "result":
            self._read_result(event)
        elif kind == "system":
            self._read_system(event)
        elif kind == "rate_limit_event":
            self._read_rate_limit(as_mapping(event.get("rate_limit_info")))
        elif kind not in {"user", "stream_event", "tool_call"}:
            raise UnreadableLine

    def _read_system(self, event: Event) -> None:
        subtype = event.get("subtype")
        if subtype == "permission_denied":
            self.report.deny(event.get("tool_name"))
        elif subtype == "api_retry":
            why, many = read_text(event.get("error")), event.get("attempt")
            self.report.show(f"asks the model again, try {many}: {why}")

    def _read_rate_limit(self, told: Event) -> None:
        if told.get("status") != "rejected":
            return
        kind = read_text(told.get("rateLimitType")).replace("_", " ")
        at = as_count(told.get("resetsAt"))
        self.report.meet_limit(
            f"the {kind} limit is reached" if kind else "",
            at=datetime.fromtimestamp(at, UTC) if at else None,
        )

    def _read_assistant(self, event: Event) -> None:
        report = self.report
        for block in as_list(as_mapping(event.get("message")).get("content")):
            part = as_mapping(block)
            if part.get("type") == "text":
                report.say(part.get("text"))
            elif part.get("type") == "tool_use":
                report.use_tool(part.get("name"), part.get("input"))
                if part.get("name") == _QUESTION_TOOL:
                    self._read_questions(as_mapping(part.get("input")))
        if isinstance(error := event.get("error"), str):
            if error == "rate_limit":
                report.meet_limit(report.text)
            else:
                report.fail(report.text, login=error in _LOGIN_ERRORS)

    def _read_questions(self, given: Event) -> None:
        for each in as_list(given.get("questions")):
            if question := read_text(as_mapping(each).get("question")):
                self.report.questions.append(question)

    def _read_result(self, event: Event) -> None:
        report = self.report
        report.ended = True
        self._read_usage(event)
        for each in as_list(event.get("permission_denials")):
            denied = as_mapping(each)
            # An agent that asks a person has asked, and was denied nothing.
            if denied.get("tool_name") != _QUESTION_TOOL:
                report.deny(denied.get("tool_name"), denied.get("tool_input"))
        said = event.get("result")
        if not event.get("is_error"):
            report.result = read_text(said)
            report.error, report.limit = None, None
        elif event.get("api_error_status") == TOO_MANY_REQUESTS:
            report.meet_limit(said)
        else:
            errors = [str(each) for each in as_list(event.get("errors"))]
            message = as_mapping(event.get("error")).get("message")
            told = read_text(said) or "; ".join(errors) or read_text(message)
            report.fail(told or read_text(event.get("subtype")) or "it ended with an error")

    def _read_usage(self, event: Event) -> None:
        """The totals by model: unlike the usage of the run, they have its last turn too."""
        used = AgentUsage()
        for each in as_mapping(event.get("modelUsage")).values():
            told = as_mapping(each)
            made = as_count(told.get("cacheCreationInputTokens"))
            used.add(
                make_usage(
                    fresh=as_count(told.get("inputTokens")) + made,
                    cached=told.get("cacheReadInputTokens"),
                    written=told.get("outputTokens"),
                )
            )
        used.usd = as_dollars(event.get("total_cost_usd"))
        self.report.usage = used


CLAUDE = Preset(
    name="claude",
    title="Claude Code",
    program=("claude", "-p", "--output-format", "stream-json", "--verbose"),
    prompt=(),
    access={
        # Other tools do not exist for the model, so that none has to be denied.
        "read": Access(flags=("--tools", "Read", "Grep", "Glob")),
        "edit": Access(flags=("--permission-mode", "acceptEdits")),
        "full": Access(flags=("--permission-mode", "bypassPermissions")),
    },
    reader=ClaudeReader,
    model=("--model", "{}"),
    turns=("--max-turns", "{}"),
    usd=("--max-budget-usd", "{}"),
    schema=("--json-schema", "{}"),
    mcp=("--mcp-config", "{}"),
    session=("--resume", "{}"),
    # A bad key and a refused connection are tried again ten times, for minutes.
    variables={"CLAUDE_CODE_MAX_RETRIES": "3", "DISABLE_AUTOUPDATER": "1"},
    totals_go_on=True,
    status=("claude", "auth", "status"),
    install="npm install -g @anthropic-ai/claude-code",
    login="claude auth login",
    advice={
        "cannot be used with root": "run the worker as another user, or, in a container that is "
        "for this alone, give the agent env: {IS_SANDBOX: '1'}",
        "No conversation found": "the session was on another machine or is gone; retry the task",
        "Credit balance is too low": "buy credits, then retry the task",
    },
    notes=(
        "as root, access full is refused unless IS_SANDBOX=1 is set",
        "access edit lets it edit files and run few commands; git commit is denied",
        "the first system prompt of a session is kept when the session goes on",
    ),
)
