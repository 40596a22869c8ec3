"""opencode: its flags, and the events of `opencode run --format json`.

Its stream has neither a first nor a last line: the run is over when the process is, and what it
used is the sum of its steps. It waits out a usage limit silently, and does not end at SIGTERM while
its standard input is open.
"""

from __future__ import annotations

import json

from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import (
    Event,
    JsonReader,
    UnreadableLine,
    as_mapping,
    make_usage,
    read_text,
)

_DENIALS = ("rejected permission", "specified a rule which prevents")
TOO_MANY_REQUESTS, UNAUTHORIZED = 429, (401, 403)


class OpencodeReader(JsonReader):
    def read_event(self, event: Event) -> None:
        kind, report, part = event.get("type"), self.report, as_mapping(event.get("part"))
        if isinstance(session := event.get("sessionID"), str) and session:
            report.session = session
        if kind == "text":
            report.say(part.get("text"))
        elif kind == "tool_use":
            self._read_tool(part)
        elif kind == "step_finish":
            self._read_step(part)
        elif kind == "error":
            self._read_error(as_mapping(event.get("error")))
        elif kind not in {"step_start", "reasoning"}:
            raise UnreadableLine

    def _read_tool(self, part: Event) -> None:
        state = as_mapping(part.get("state"))
        self.report.use_tool(part.get("tool"), state.get("input"))
        error = read_text(state.get("error"))
        if state.get("status") == "error" and any(each in error for each in _DENIALS):
            self.report.deny(part.get("tool"), state.get("input"))

    def _read_step(self, part: Event) -> None:
        tokens = as_mapping(part.get("tokens"))
        cache = as_mapping(tokens.get("cache"))
        self.report.usage.add(
            make_usage(
                fresh=tokens.get("input"),
                cached=cache.get("read"),
                written=tokens.get("output"),
                usd=part.get("cost"),
            )
        )
        if part.get("reason") == "stop":
            self.report.ended, self.report.result = True, self.report.text

    def _read_error(self, error: Event) -> None:
        data = as_mapping(error.get("data"))
        message = read_text(data.get("message")) or read_text(error.get("name"))
        if data.get("statusCode") == TOO_MANY_REQUESTS:
            seconds = read_text(as_mapping(data.get("responseHeaders")).get("retry-after"))
            self.report.meet_limit(message, seconds=float(seconds) if seconds.isdigit() else None)
        else:
            self.report.fail(message, login=data.get("statusCode") in UNAUTHORIZED)


def _permit(**said: str) -> dict[str, str]:
    return {"OPENCODE_PERMISSION": json.dumps(said)}


OPENCODE = Preset(
    name="opencode",
    title="opencode",
    program=("opencode", "run", "--format", "json"),
    prompt=(),
    access={
        "read": Access(flags=("--agent", "plan"), variables=_permit(edit="deny", bash="deny")),
        "edit": Access(variables=_permit(edit="allow", bash="deny")),
        "full": Access(flags=("--auto",)),
    },
    reader=OpencodeReader,
    model=("-m", "{}"),
    session=("-s", "{}"),
    variables={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
    silent_at_limit=True,
    install="npm install -g opencode-ai",
    login="opencode auth login",
    notes=("a denied tool ends its run, with exit code 0", "a model is named provider/model"),
)
