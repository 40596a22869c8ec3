"""Every captured stream, read whole, in pieces, cut off at every line, and with a wrong line."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from holdfast.presets.agent_report import MOST_UNKNOWN, AgentReport
from holdfast.presets.catalogue import PRESETS

FIXTURES = Path(__file__).parents[2] / "fixtures"
STREAMS = sorted((FIXTURES / "streams").glob("*.jsonl"))
# What each stream says, looked through once by eye.
REPORTS: dict[str, Any] = json.loads((FIXTURES / "stream_reports.json").read_text())
FOREIGN = (b"Segmentation fault\n", b"[1, 2]\n", b'{"type": 7}\n', b'{"cut": "off\n', b"\xff\xfe\n")
# Lines of a known kind in a form that no client has written so far.
ODD = (
    b'{"type": "assistant", "message": 7, "error": ["x"]}\n',
    b'{"type": "item.completed", "item": {"type": "file_change"}}\n',
    b'{"type": "tool_use", "part": {"state": []}, "parameters": 3}\n',
    b'{"type": "tool.execution_complete", "data": {"error": "denied"}}\n',
    b'{"type": "message", "role": "assistant", "content": {"a": 1}}\n',
    b'{"type": "step_finish", "part": {"tokens": {"input": "many", "cache": 0}, "cost": true}}\n',
    b'{"type": "system", "subtype": {}}\n',
)


def read(client: str, *pieces: bytes) -> AgentReport:
    reader = PRESETS[client].reader()
    for piece in pieces:
        reader.feed(piece)
    reader.end()
    return reader.report


def client_of(stream: Path) -> str:
    return stream.name.partition("-")[0]


def describe(report: AgentReport) -> dict[str, Any]:
    told = json.loads(json.dumps(asdict(report), default=str))
    told["unknown"] = report.unknown_count
    return {name: value for name, value in told.items() if value and name != "unknown_count"}


every_stream = pytest.mark.parametrize("stream", STREAMS, ids=[each.stem for each in STREAMS])


def test_there_is_a_report_for_every_stream() -> None:
    assert [each.stem for each in STREAMS] == list(REPORTS)
    assert {client_of(each) for each in STREAMS} == PRESETS.keys() - {"cursor"}


@every_stream
def test_a_whole_stream_says_what_it_should(stream: Path) -> None:
    assert describe(read(client_of(stream), stream.read_bytes())) == REPORTS[stream.stem]


@every_stream
def test_a_stream_says_the_same_in_pieces_of_any_size(stream: Path) -> None:
    data, client = stream.read_bytes(), client_of(stream)
    for size in (1, 7, 4_096):
        pieces = [data[n : n + size] for n in range(0, len(data), size)]
        assert describe(read(client, *pieces)) == REPORTS[stream.stem]


@every_stream
def test_a_stream_that_is_cut_off_says_no_more_than_the_whole(stream: Path) -> None:
    lines, client = stream.read_bytes().splitlines(keepends=True), client_of(stream)
    whole = read(client, *lines)
    for count, line in enumerate(lines):
        for cut in (b"", line[: len(line) // 2]):
            part = read(client, *lines[:count], cut)
            assert part.session in {None, whole.session}
            assert part.result in {None, whole.result}
            assert part.usage.output_tokens <= whole.usage.output_tokens
            assert {each.tool for each in part.denials} <= {each.tool for each in whole.denials}
            assert part.ended <= whole.ended


@every_stream
def test_a_wrong_line_anywhere_is_kept_and_changes_nothing(stream: Path) -> None:
    lines, client = stream.read_bytes().splitlines(keepends=True), client_of(stream)
    if client == "aider":
        # Its stream is plain text, in which every line is right.
        return
    expected = REPORTS[stream.stem]
    kept = expected.get("unknown", 0) + 1
    for at in range(len(lines)):
        wrong = FOREIGN[at % len(FOREIGN)]
        report = read(client, *lines[:at], wrong, *lines[at:])
        assert describe(report) == {**expected, "unknown": kept}
        if report.unknown_count <= MOST_UNKNOWN:
            assert wrong.decode("utf-8", "replace").strip() in report.unknown


@every_stream
def test_a_line_of_an_odd_form_changes_neither_session_nor_result(stream: Path) -> None:
    lines, client = stream.read_bytes().splitlines(keepends=True), client_of(stream)
    whole = read(client, *lines)
    for at in range(len(lines)):
        report = read(client, *lines[:at], *ODD, *lines[at:])
        assert report.session == whole.session
        assert report.usage == whole.usage
        assert report.ended == whole.ended
        assert (report.limit is None) == (whole.limit is None)


def test_a_line_without_an_end_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.presets.stream_reader.LONGEST_STREAM_LINE", 1_000)
    reader = PRESETS["claude"].reader()
    for _ in range(100):
        reader.feed(b"x" * 100)
    assert reader.report.unknown_count == 9
