"""Cursor: its flags and its stream as its documentation has them; nothing of it was tried.

On a failure it writes no result line: the exit code and standard error tell of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.presets.claude import ClaudeReader
from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import Event, as_mapping


class CursorReader(ClaudeReader):
    def read_event(self, event: Event) -> None:
        super().read_event(event)
        if event.get("type") == "tool_call" and event.get("subtype") == "started":
            for name, told in as_mapping(event.get("tool_call")).items():
                if isinstance(told, Mapping):
                    self.report.use_tool(name.removesuffix("ToolCall"), told.get("args"))


CURSOR = Preset(
    name="cursor",
    title="Cursor",
    program=("cursor-agent", "-p", "--trust", "--output-format", "stream-json"),
    prompt=("{}",),
    access={
        "read": Access(flags=("--mode", "plan")),
        "full": Access(flags=("--force",)),
    },
    reader=CursorReader,
    model=("--model", "{}"),
    session=("--resume", "{}"),
    variables={"NO_OPEN_BROWSER": "1"},
    untried=True,
    status=("cursor-agent", "status"),
    install="see cursor.com/cli",
    login="cursor-agent login",
    notes=(
        "written after its documentation, and not tried with the program itself",
        "its own file of permissions decides what it may do between access read and full",
    ),
)
