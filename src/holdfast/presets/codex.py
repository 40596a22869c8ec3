"""Codex: its flags, and the events of `codex exec --json`.

A command that the sandbox blocks leaves no line in the stream, so a denial shows only in what was
not done. An item of the type `error` is a warning. The time at which a limit lifts is prose, in the
machine's own time zone.
"""

from __future__ import annotations

from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import (
    Event,
    JsonReader,
    UnreadableLine,
    as_list,
    as_mapping,
    make_usage,
    read_text,
)

_LIMITS = ("usage limit", "429 too many requests", "rate limit")
_LOGINS = ("401 unauthorized", "not logged in")
_QUIET = frozenset({"turn.started", "item.updated"})


class CodexReader(JsonReader):
    def read_event(self, event: Event) -> None:
        kind, report = event.get("type"), self.report
        if kind == "thread.started":
            report.session = read_text(event.get("thread_id")) or None
        elif kind in {"item.started", "item.completed"}:
            self._read_item(as_mapping(event.get("item")), done=kind == "item.completed")
        elif kind == "turn.completed":
            self._read_usage(as_mapping(event.get("usage")))
            report.ended, report.result = True, report.text
            report.error, report.limit = None, None
        elif kind == "turn.failed":
            report.ended = True
            self._fail(as_mapping(event.get("error")).get("message"))
        elif kind == "error":
            self._fail(event.get("message"))
        elif kind not in _QUIET:
            raise UnreadableLine

    def _fail(self, message: object) -> None:
        said = read_text(message).lower()
        if any(each in said for each in _LIMITS):
            self.report.meet_limit(message)
        else:
            self.report.fail(message, login=any(each in said for each in _LOGINS))

    def _read_item(self, item: Event, *, done: bool) -> None:
        kind, report = item.get("type"), self.report
        if kind == "agent_message" and done:
            report.say(item.get("text"))
        elif kind == "command_execution":
            report.use_tool("runs", item.get("command"))
        elif kind == "file_change":
            paths = [read_text(as_mapping(each).get("path")) for each in as_list(item["changes"])]
            report.use_tool("edits", ", ".join(paths))
        elif kind == "mcp_tool_call":
            report.use_tool("calls", item.get("tool"))
        elif kind == "web_search":
            report.use_tool("searches", item.get("query"))

    def _read_usage(self, told: Event) -> None:
        used = make_usage(fresh=told.get("input_tokens"), written=told.get("output_tokens"))
        cached = make_usage(cached=told.get("cached_input_tokens")).cached_tokens
        used.cached_tokens = min(cached, used.input_tokens)
        self.report.usage = used


CODEX = Preset(
    name="codex",
    title="Codex",
    program=("codex", "exec", "--json", "--skip-git-repo-check"),
    # A lone `-` reads the prompt from standard input.
    prompt=("-",),
    access={
        "read": Access(flags=("-s", "read-only")),
        "edit": Access(flags=("-s", "workspace-write")),
        "full": Access(flags=("-s", "danger-full-access")),
    },
    reader=CodexReader,
    model=("-m", "{}"),
    schema_file=("--output-schema", "{}"),
    session=("resume", "{}"),
    totals_go_on=True,
    status=("codex", "login", "status"),
    install="npm install -g @openai/codex",
    login="codex login",
    advice={"Not logged in": "log in with `codex login` as the user of this worker, then retry"},
    notes=(
        "it has no money limit and tells no cost",
        "in a git worktree it cannot commit below access full: the index is outside of its sandbox",
        "a blocked command leaves no line in its stream",
        "CODEX_HOME has to exist, and should not be below /tmp",
    ),
)
