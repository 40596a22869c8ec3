"""Copilot CLI: its flags, and the events of `--output-format json`.

Tokens are in no event of its stream. It blanks out its own key wherever the key occurs in the
stream, so that a short key garbles other words.
"""

from __future__ import annotations

from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import (
    Event,
    JsonReader,
    UnreadableLine,
    as_mapping,
    read_text,
)

_LOGIN = "authentication"
_LIMIT = "rate_limit"


class CopilotReader(JsonReader):
    def __init__(self) -> None:
        super().__init__()
        self._tools: dict[str, tuple[object, object]] = {}

    def read_event(self, event: Event) -> None:
        kind, report, data = event.get("type"), self.report, as_mapping(event.get("data"))
        if kind == "assistant.message":
            report.say(data.get("content"))
        elif kind == "tool.execution_start":
            used = (data.get("toolName"), data.get("arguments"))
            self._tools[str(data.get("toolCallId"))] = used
            report.use_tool(*used)
        elif kind == "tool.execution_complete":
            if as_mapping(data.get("error")).get("code") == "denied":
                report.deny(*self._tools.get(str(data.get("toolCallId")), ("a tool", None)))
        elif kind == "session.error":
            self._read_error(data)
        elif kind == "result":
            report.session = read_text(event.get("sessionId")) or report.session
            report.ended = True
            if event.get("exitCode") == 0:
                report.result = report.text
        elif not isinstance(kind, str) or "." not in kind:
            raise UnreadableLine

    def _read_error(self, data: Event) -> None:
        if data.get("errorType") == _LIMIT:
            self.report.meet_limit(data.get("message"))
        else:
            self.report.fail(data.get("message"), login=data.get("errorType") == _LOGIN)


COPILOT = Preset(
    name="copilot",
    title="Copilot CLI",
    program=("copilot", "--output-format", "json", "--no-ask-user"),
    prompt=("-p", "{}"),
    access={
        "read": Access(),
        "edit": Access(flags=("--allow-tool=write",)),
        "full": Access(flags=("--allow-all-tools",)),
    },
    reader=CopilotReader,
    model=("--model", "{}"),
    mcp=("--additional-mcp-config", "@{}"),
    session=("--resume={}",),
    variables={"COPILOT_AUTO_UPDATE": "false"},
    install="npm install -g @github/copilot",
    advice={
        "No authentication information found": "start `copilot` as the user of this worker, type "
        "/login there, then retry",
        "Authentication failed": "set the key of its provider in the environment of this worker, "
        "or start `copilot` and type /login there, then retry",
    },
    notes=(
        "its stream tells no tokens and no cost",
        "without a login it writes plain text to standard error and exits with 1",
    ),
)
