"""Labels: the names and values by which people find runs and tasks again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.text import clean_key, clean_name

MAX_LABELS = 20
MAX_VALUE = 200

Labels = Mapping[str, str]


def clean_labels(field: str, given: object) -> dict[str, str]:
    """The labels that were given, in the order of their names; a label without a value is none.

    Numbers, `true` and `false` stand for their texts.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(field, f"must be an object of names and values, not {_kind(given)}")
    if len(given) > MAX_LABELS:
        raise InvalidInput(field, f"are {len(given)}; at most {MAX_LABELS} are kept")
    found = {_clean_label_name(field, name): value for name, value in given.items()}
    return {
        name: _clean_value(f"{field}.{name}", found[name])
        for name in sorted(found)
        if found[name] is not None
    }


def _clean_label_name(field: str, name: object) -> str:
    return clean_name(field, name)


def _clean_value(field: str, value: object) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text or a number, not {_kind(value)}")
    if len(value) > MAX_VALUE:
        raise InvalidInput(field, f"has {len(value)} characters; at most {MAX_VALUE} are kept")
    return clean_key(field, value)


def parse_labels(field: str, texts: Iterable[str] | None) -> dict[str, str] | None:
    """Labels as they are typed, `NAME=VALUE`; None where there are none."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(field, f"{text!r} is not NAME=VALUE, as customer=7")
        if name in found:
            raise InvalidInput(field, f"{name!r} is given twice")
        found[name] = value
    return clean_labels(field, found) or None


def write_labels(labels: Labels) -> str | None:
    """The one JSON text of some labels; None for none."""
    return _encode(labels) if labels else None


def read_labels(text: str | None) -> dict[str, str]:
    found: dict[str, str] = {} if text is None else json.loads(text)
    return found


_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _kind(value: Any) -> str:  # noqa: ANN401 - whatever was given
    return type(value).__name__
