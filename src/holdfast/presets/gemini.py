"""Gemini CLI: its flags, and its `stream-json` events.

Its exit code is an HTTP status modulo 256, or its own: 53 is the turn limit. In a folder that it
does not trust, `yolo` is silently less, so the preset trusts the folder.
"""

from __future__ import annotations

from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import (
    Event,
    JsonReader,
    UnreadableLine,
    as_mapping,
    make_usage,
    read_text,
)

_LIMITS = ("quota", "rate limit", "resource_exhausted", '"code":429')
_LOGINS = ("api key not valid", "auth method", "api_key_invalid", '"code":401')
_DENIALS = ("access denied", "denied by policy", "not allowed", "user rejected")


class GeminiReader(JsonReader):
    def __init__(self) -> None:
        super().__init__()
        self._said = ""
        self._tools: dict[str, tuple[object, object]] = {}

    def read_event(self, event: Event) -> None:
        kind, report = event.get("type"), self.report
        if kind == "init":
            report.session = read_text(event.get("session_id")) or None
        elif kind == "message":
            self._read_message(event)
        elif kind == "tool_use":
            self._said = ""
            used = (event.get("tool_name"), event.get("parameters"))
            self._tools[str(event.get("tool_id"))] = used
            report.use_tool(*used)
        elif kind == "tool_result":
            self._read_tool_result(event)
        elif kind == "result":
            self._read_result(event)
        elif kind == "error":
            report.show(read_text(event.get("message")))
        else:
            raise UnreadableLine

    def _read_message(self, event: Event) -> None:
        if event.get("role") != "assistant":
            self._said = ""
            return
        said = read_text(event.get("content"))
        # Pieces of one message follow each other.
        self._said = self._said + said if event.get("delta") else said
        self.report.say(self._said)

    def _read_tool_result(self, event: Event) -> None:
        if event.get("status") != "error":
            return
        message = read_text(as_mapping(event.get("error")).get("message"))
        if any(each in message.lower() for each in _DENIALS):
            tool, given = self._tools.get(str(event.get("tool_id")), ("a tool", None))
            self.report.deny(tool, given)

    def _read_result(self, event: Event) -> None:
        report = self.report
        report.ended = True
        told = as_mapping(event.get("stats"))
        used = make_usage(fresh=told.get("input_tokens"), written=told.get("output_tokens"))
        cached = make_usage(cached=told.get("cached")).cached_tokens
        used.cached_tokens = min(cached, used.input_tokens)
        report.usage = used
        if event.get("status") == "success":
            report.result = report.text
            return
        message = read_text(as_mapping(event.get("error")).get("message"))
        said = message.lower().replace(" ", "")
        if any(each.replace(" ", "") in said for each in _LIMITS):
            report.meet_limit(message)
        else:
            login = any(each.replace(" ", "") in said for each in _LOGINS)
            report.fail(message or "it ended with an error", login=login)


GEMINI = Preset(
    name="gemini",
    title="Gemini CLI",
    program=("gemini", "-o", "stream-json", "--skip-trust"),
    prompt=(),
    access={
        "read": Access(flags=("--approval-mode", "plan")),
        "edit": Access(flags=("--approval-mode", "auto_edit")),
        "full": Access(flags=("--approval-mode", "yolo")),
    },
    reader=GeminiReader,
    model=("-m", "{}"),
    session=("-r", "{}"),
    variables={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    install="npm install -g @google/gemini-cli",
    login="gemini",
    advice={
        "Please set an Auth method": "log in with `gemini`, or set GEMINI_API_KEY and choose the "
        "key in its settings, then retry",
        "Reached max session turns": "raise model.maxSessionTurns in its settings",
    },
    notes=(
        "its turn limit is in its own settings: model.maxSessionTurns",
        "below access full it is offered no shell, so nothing is denied and the work is not done",
        "it exits with 41 where no way to log in was chosen, and with an HTTP status modulo 256",
    ),
)
