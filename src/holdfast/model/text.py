"""Text: checks of text, names and JSON that a store keeps; an error names the field."""

from __future__ import annotations

import hashlib
import json
import math
import re

from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, advise

MAX_DEPTH = 100
MAX_NAME = 200
MAX_TEXT = 10_000

# No check for circles: `_check_value` has refused them already, because their depth never ends.
_encode = json.JSONEncoder(
    ensure_ascii=False,
    check_circular=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
).encode
_HARMLESS = frozenset({type(None), bool, int})
# The alphabet of `holdfast.ids`, which the model may not import: `ids` reads the clock.
ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID = re.compile(rf"[rt]_[0-7][{ID_ALPHABET}]{{19}}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]*\Z")
# Codes by which programs colour their text, move in it and link it: none of them is text.
_TERMINAL_CODE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b(?:[ -/]+[0-~]|[0-Z\\^-~])"
)


def clean_text(field: str, value: object, *, limit: int = MAX_TEXT) -> str:
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be text, not {type(value).__name__}")
    if len(value) > limit:
        raise InvalidInput(field, f"is {len(value)} characters long; at most {limit} are kept")
    if "\x00" in value:
        raise InvalidInput(field, "contains a NUL character, which PostgreSQL cannot store")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidInput(field, "contains a lone surrogate, which is not valid Unicode")
    return value


def clean_name(field: str, value: object) -> str:
    text = clean_text(field, value, limit=MAX_NAME)
    if not _NAME.match(text):
        raise InvalidInput(
            field,
            f"{text!r} is not a name: letters, digits and _ . : / @ + -, not starting with .-",
        )
    return text


def clean_key(field: str, value: object) -> str:
    text = clean_text(field, value, limit=MAX_NAME)
    # Printable text has no control characters, and `isprintable` is fast.
    control = not text.isprintable() and any(ord(character) < ord(" ") for character in text)
    if not text or text != text.strip() or control:
        raise InvalidInput(field, "must be non-empty, without control characters or outer blanks")
    return text


def encode_json(field: str, value: object, *, limit: int) -> str:
    """The one JSON text of a value: sorted keys, no blanks, nothing a store would refuse."""
    if not value and type(value) is dict:
        return "{}"
    try:
        _check_value(field, value, 0)
        text = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(field, f"is not JSON: {error}") from error
    size = len(text) if text.isascii() else len(text.encode())
    if size > limit:
        raise InvalidInput(field, f"is {size} bytes of JSON; at most {limit} are kept")
    return text


def _check_value(field: str, value: object, depth: int) -> None:
    if type(value) in _HARMLESS:
        return
    match value:
        case None | bool() | int():
            return
        case str():
            clean_text(field, value, limit=len(value))
        case float():
            if not math.isfinite(value):
                raise InvalidInput(field, f"contains {value}, which JSON does not have")
        case dict() | list() | tuple():
            _check_nested(field, value, depth + 1)
        case _:
            raise InvalidInput(field, f"contains a {type(value).__name__}, which is not JSON")


def _check_nested(
    field: str, value: dict[object, object] | list[object] | tuple[object, ...], depth: int
) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(field, f"is nested deeper than {MAX_DEPTH} levels")
    if not isinstance(value, dict):
        for inner in value:
            _check_value(field, inner, depth)
        return
    for key, inner in value.items():
        if not isinstance(key, str):
            raise InvalidInput(field, f"has the key {key!r}, which is not text")
        clean_text(field, key)
        if type(inner) not in _HARMLESS:
            _check_value(f"{field}.{key}" if depth == 1 else field, inner, depth)


def strip_terminal_codes(text: str) -> str:
    """A text without the codes by which a program colours its lines or moves the cursor."""
    return _TERMINAL_CODE.sub("", text) if "\x1b" in text or "\x9b" in text else text


def digest(*texts: str) -> str:
    """A short name of some content; equal contents have equal digests."""
    content = hashlib.sha256()
    for text in texts:
        content.update(text.encode())
        content.update(b"\0")
    return content.hexdigest()[:32]


def is_task_id(text: str) -> bool:
    """Whether a text has the form of a task's whole id."""
    return text.startswith("t_") and _ID.fullmatch(text) is not None


def parse_task_id(text: str, *, field: str = "task_id") -> str:
    if text.startswith("r_") and _ID.fullmatch(text):
        other = f"{text} is a run, and a task is wanted; one of its tasks is "
        raise InvalidInput(field, other + advise(Action.NAME_STEP) + ", by its step")
    return _parse_id(text, "t_", field)


def parse_run_id(text: str, *, field: str = "run_id") -> str:
    if text.startswith("t_") and _ID.fullmatch(text):
        other = f"{text} is a task, and a run is wanted; the run of a task is its run_id"
        raise InvalidInput(field, other)
    return _parse_id(text, "r_", field)


def _parse_id(text: str, prefix: str, field: str) -> str:
    if not _ID.fullmatch(text):
        shape = f"{prefix!r} and 20 characters of {ID_ALPHABET}"
        raise InvalidInput(field, f"{text[:40]!r} is not an id; one is {shape}")
    return text
