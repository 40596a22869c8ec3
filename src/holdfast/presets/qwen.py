"""Qwen Code: its flags, and its stream, which has the form of Claude Code's.

It waits out a usage limit for a long time and writes nothing. At its turn limit it gives no result
line, only the exit code 53.
"""

from __future__ import annotations

from holdfast.presets.claude import ClaudeReader
from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import Event, as_mapping, make_usage, read_text

_API_ERROR = "[API Error:"
_RATE_LIMITS = ("429", "rate limit", "quota")


class QwenReader(ClaudeReader):
    def read_event(self, event: Event) -> None:
        super().read_event(event)
        message = read_text(as_mapping(event.get("error")).get("message"))
        if not message:
            return
        if any(each in message.lower() for each in _RATE_LIMITS):
            self.report.meet_limit(message)
        elif f"{_API_ERROR} 401" in message:
            self.report.fail(message, login=True)

    def _read_usage(self, event: Event) -> None:
        told = as_mapping(event.get("usage"))
        used = make_usage(fresh=told.get("input_tokens"), written=told.get("output_tokens"))
        cached = make_usage(cached=told.get("cache_read_input_tokens")).cached_tokens
        # What was cached is part of the input here.
        used.cached_tokens = min(cached, used.input_tokens)
        self.report.usage = used


QWEN = Preset(
    name="qwen",
    title="Qwen Code",
    program=("qwen", "-o", "stream-json"),
    prompt=(),
    access={
        "read": Access(flags=("--approval-mode", "plan")),
        "edit": Access(flags=("--approval-mode", "auto-edit")),
        "full": Access(flags=("--approval-mode", "yolo")),
    },
    reader=QwenReader,
    model=("-m", "{}"),
    turns=("--max-session-turns", "{}"),
    schema=("--json-schema", "{}"),
    mcp=("--mcp-config", "{}"),
    session=("--resume", "{}"),
    variables={"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"},
    totals_go_on=True,
    silent_at_limit=True,
    install="npm install -g @qwen-code/qwen-code",
    login="qwen",
    notes=(
        "below access full it is offered no shell, so nothing is denied and the work is not done",
        "the exit code 53 is the turn limit, 55 the limit of its own for time or tools",
    ),
)
