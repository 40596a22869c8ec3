"""Schema: the table of keys as a JSON Schema for editors, and as a page for people."""

from __future__ import annotations

from typing import Any

from holdfast.definition.keys import (
    ACCESSES,
    ACTIONS,
    AGENT,
    BUDGET,
    CONCURRENCY,
    ESCALATION,
    GOTO,
    HTTP,
    MERGE,
    METHODS,
    SECTIONS,
    STEP,
    STRATEGIES,
    WORKFLOW,
    WORKSPACE,
    Key,
    Section,
    ValueKind,
)
from holdfast.definition.types import SHORT_TYPES
from holdfast.model.labels import MAX_LABELS
from holdfast.presets.catalogue import PRESETS
from holdfast.presets.preset import ACCESS

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_VARIABLES: Schema = _TEXTS | {
    "propertyNames": {"pattern": "^(?!HOLDFAST_)[A-Za-z_][A-Za-z0-9_]*$"},
}
_LABELS: Schema = _TEXTS | {"maxProperties": MAX_LABELS}
_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]*$", "maxLength": 100}
_COUNT: Schema = {"type": "integer", "minimum": 1}


def _reference(section: Section) -> Schema:
    return {"$ref": f"#/$defs/{section.name}"}


KINDS: dict[ValueKind, tuple[Schema, str]] = {
    "access": ({"enum": list(ACCESSES)}, "a word"),
    "action": ({"enum": list(ACTIONS)}, "a word"),
    "agents": (
        {"type": "object", "additionalProperties": _reference(AGENT)},
        "a mapping of agents",
    ),
    "any": ({}, "anything"),
    "budget": (_reference(BUDGET), "budget"),
    "command": (
        {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1},
        "a list of texts",
    ),
    "concurrency": ({"anyOf": [_TEXT, _reference(CONCURRENCY)]}, "a key, or concurrency"),
    "count": (_COUNT, "a whole number from 1"),
    "duration": (
        {"type": ["string", "number"]},
        "a duration: `90`, `30s`, `1h30m`",
    ),
    "globs": (
        {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
        "a list of files, with `*` and `**`",
    ),
    "flag": ({"type": "boolean"}, "true or false"),
    "flags": (
        {"type": "array", "items": {"type": ["string", "number"]}},
        "a list of texts",
    ),
    "http": ({"anyOf": [_TEXT, _reference(HTTP)]}, "a URL, or http"),
    "integer": ({"type": "integer"}, "a whole number"),
    "labels": (_LABELS, "a mapping of texts with variables"),
    "merge": ({"anyOf": [_TEXT, _reference(MERGE)]}, "a branch, or merge"),
    "method": ({"enum": list(METHODS)}, "a method"),
    "money": ({"type": "number", "exclusiveMinimum": 0}, "dollars"),
    "name": (_NAME, "a name"),
    "names": ({"anyOf": [_NAME, {"type": "array", "items": _NAME}]}, "a list of names"),
    "on_failure": (
        {"anyOf": [{"enum": list(ACTIONS)}, _reference(GOTO), _reference(ESCALATION)]},
        "a word, on_failure or escalation",
    ),
    "preset": ({"enum": list(PRESETS)}, "a preset"),
    "preset_access": ({"enum": list(ACCESS)}, "a word"),
    "reference": (_TEXT, "one variable"),
    "size": ({"type": ["string", "integer"]}, "a size: `500KB`, `10MB`"),
    "steps": ({"type": "array", "items": _reference(STEP), "minItems": 1}, "a list of steps"),
    "strategy": ({"enum": list(STRATEGIES)}, "a word"),
    "template": (_TEXT, "text with variables"),
    "templates": (_TEXTS, "a mapping of texts with variables"),
    "text": (_TEXT, "text"),
    "types": (
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/type"}},
        "a mapping of types",
    ),
    "variables": (_VARIABLES, "a mapping of texts with variables"),
    "workspace": ({"anyOf": [_TEXT, _reference(WORKSPACE)]}, "a repository, or workspace"),
}


def make_schema() -> Schema:
    """The JSON Schema of a workflow file, for editors."""
    parts = {
        section.name: _section_schema(section) for section in SECTIONS if section is not WORKFLOW
    }
    names = [name + end for name in SHORT_TYPES for end in ("", "?")]
    kind = {
        "description": "A short form such as string, [string] or {name: string}, or JSON Schema.",
        "anyOf": [{"enum": names}, {"type": "array", "maxItems": 1}, {"type": "object"}],
    }
    return {
        "$schema": DRAFT,
        "title": "A Holdfast workflow",
        **_section_schema(WORKFLOW),
        "$defs": parts | {"type": kind},
    }


def _section_schema(section: Section) -> Schema:
    return {
        "description": section.about,
        "type": "object",
        "properties": {key.name: _key_schema(key) for key in section.keys if key.supported},
        "required": [key.name for key in section.keys if key.required],
        "additionalProperties": False,
    }


def _key_schema(key: Key) -> Schema:
    default = f" Unless said: {key.default}." if key.default else ""
    about = f"{key.about[0].upper()}{key.about[1:]}.{default}"
    return {"description": about, **KINDS[key.kind][0]}


def make_key_tables() -> str:
    """The keys as tables, one for each section of a file."""
    return "\n".join(_table(section) for section in SECTIONS)


def _table(section: Section) -> str:
    head = f"## {section.name}\n\n{section.about}\n\n"
    rows = "".join(
        f"| `{key.name}`{' (required)' if key.required else ''} | {KINDS[key.kind][1]} "
        f"| {key.about}{_describe_step_kind(key)} | {key.default} |\n"
        for key in section.keys
        if key.supported
    )
    missing = ", ".join(f"`{key.name}`" for key in section.keys if not key.supported)
    later = f"\nNot there yet, and refused: {missing}.\n" if missing else ""
    return f"{head}| key | value | what it says | unless said |\n|---|---|---|---|\n{rows}{later}"


def _describe_step_kind(key: Key) -> str:
    return (
        f" (of {key.step_kinds[0]})"
        if len(key.step_kinds) == 1 and key.step_kinds[0] not in {"work", key.name}
        else ""
    )
