"""Line format: lines of commits as JSON, each field checked before a worker elsewhere uses it."""

from __future__ import annotations

from typing import Any

from holdfast.model.moment import count_microseconds, to_datetime
from holdfast.model.text import clean_text
from holdfast.model.workflow.line import Draft, Head, HostLine, LineState, NewHead, clean_sha
from holdfast.worker.remote.assignment_format import (
    FieldCheck,
    mapping,
    optional,
    read_fields,
    run_id,
    seconds,
    whole_number,
)

PackedLine = dict[str, Any]


def _text(field: str, value: object) -> str:
    return clean_text(field, value)


_DRAFT_CHECKS: dict[str, FieldCheck] = {"base": clean_sha, "sha": clean_sha}
_HEAD_CHECKS: dict[str, FieldCheck] = {"line": _text, "number": whole_number, "sha": clean_sha}
_COMMON_CHECKS: dict[str, FieldCheck] = {
    "run_id": run_id,
    "base": clean_sha,
    "head": clean_sha,
    "number": whole_number,
    "branch": _text,
}
_LINE_CHECKS: dict[str, FieldCheck] = {
    **_COMMON_CHECKS,
    "id": _text,
    "repository": optional(_text),
    "host": optional(_text),
    "draft": optional(mapping),
    "subject": optional(clean_sha),
    "around": optional(mapping),
    "around_base": optional(clean_sha),
}
_HOST_LINE_CHECKS: dict[str, FieldCheck] = {
    **_COMMON_CHECKS,
    "repository": _text,
    "keep": seconds,
    "ended_at": optional(whole_number),
}


def pack_line(line: LineState) -> PackedLine:
    told = {
        **{name: getattr(line, name) for name in _LINE_CHECKS},
        "draft": None if line.draft is None else pack_draft(line.draft),
        "around": None
        if line.around is None
        else {name: getattr(line.around, name) for name in _HEAD_CHECKS},
    }
    return {name: value for name, value in told.items() if value is not None}


def unpack_line(packed: object) -> LineState:
    told = read_fields(_LINE_CHECKS, "line", packed)
    if told["draft"] is not None:
        told["draft"] = Draft(**read_fields(_DRAFT_CHECKS, "line.draft", told["draft"]))
    if told["around"] is not None:
        told["around"] = Head(**read_fields(_HEAD_CHECKS, "line.around", told["around"]))
    return LineState(**told)


def pack_host_line(line: HostLine) -> PackedLine:
    told = {name: getattr(line, name) for name in _HOST_LINE_CHECKS}
    if line.ended_at is None:
        return {name: value for name, value in told.items() if name != "ended_at"}
    return told | {"ended_at": count_microseconds(line.ended_at)}


def unpack_host_line(packed: object) -> HostLine:
    told = read_fields(_HOST_LINE_CHECKS, "line", packed)
    ended = told["ended_at"]
    return HostLine(**told | {"ended_at": None if ended is None else to_datetime(ended)})


def pack_draft(draft: Draft) -> dict[str, Any]:
    return {"base": draft.base, "sha": draft.sha}


def pack_new_head(head: NewHead) -> dict[str, Any]:
    return {"line": head.line, "number": head.number, "base": head.base, "sha": head.sha}
