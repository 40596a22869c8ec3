"""Filters of lists, read into the parameters of queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from holdfast.errors import InvalidInput
from holdfast.ids import first_id
from holdfast.model.labels import clean_labels, write_labels
from holdfast.model.status import Hold, RunStatus, Status
from holdfast.model.text import clean_name, clean_text
from holdfast.model.units import Moment, is_duration, parse_duration, parse_moment

Parameters = dict[str, Any]
MAX_SEARCHED = 200
# The clocks of the processes that make ids may differ from that of the database by so much.
_CLOCK_SKEW: Final = 3_600_000_000
_MICROSECONDS: Final = 1_000_000


def read_run_filters(given: Mapping[str, Any], now: Callable[[], int]) -> Parameters:
    """The filters of runs as the parameters of queries."""
    return _read_shared(given, RunStatus, "r_", now) | {"held": _read_hold(given.get("held"))}


def read_task_filters(given: Mapping[str, Any], now: Callable[[], int]) -> Parameters:
    """The filters of tasks as the parameters of queries, without `run` and `parent`."""
    return _read_shared(given, Status, "t_", now)


def _read_shared(
    given: Mapping[str, Any], statuses: type[StrEnum], prefix: str, now: Callable[[], int]
) -> Parameters:
    since, until = (_read_past(field, given.get(field), now) for field in ("since", "until"))
    labels = clean_labels("labels", given.get("labels"))
    # This sorts behind every id: the first character of an id's time is at most 7.
    newest = f"{prefix}8"
    return {
        "status": _check_status(statuses, given.get("status")),
        **{name: _read_name(name, given.get(name)) for name in ("workflow", "agent", "step")},
        "labels": write_labels(labels),
        "since": since,
        "until": until,
        # Ids begin with the time: what is older or newer is not looked at.
        "first": prefix if since is None else first_id(prefix, since - _CLOCK_SKEW),
        "before": newest if until is None else first_id(prefix, until + _CLOCK_SKEW),
        "error": _read_searched("error", given.get("error"), json_text=True),
        "name": _read_searched("name", given.get("name")),
    }


def _read_hold(name: object) -> int | None:
    known = [str(each.name).lower() for each in Hold]
    if name is None:
        return None
    if not isinstance(name, str) or name not in known:
        raise InvalidInput("held", f"{name!r} is not one of {', '.join(known)}")
    return int(Hold[name.upper()])


def first_label(parameters: Parameters) -> Parameters:
    """The label by which a query begins, where it has an index for that."""
    name, value = next(iter(json.loads(parameters["labels"]).items()))
    return {"label": name, "value": value}


def _read_name(field: str, value: object) -> str | None:
    return None if value is None else clean_name(field, value)


def _check_status(kind: type[StrEnum], status: object) -> str | None:
    known = [each.value for each in kind]
    if status is not None and (not isinstance(status, str) or status not in known):
        raise InvalidInput("status", f"{status!r} is not one of {', '.join(known)}")
    return None if status is None else str(status)


def _read_past(field: str, value: Moment | None, now: Callable[[], int]) -> int | None:
    """A moment; a duration counts back from now."""
    if is_duration(value):
        return max(0, now() - round(parse_duration(field, value) * _MICROSECONDS))
    return None if value is None else parse_moment(field, value, now)


def _read_searched(field: str, value: object, *, json_text: bool = False) -> str | None:
    """A pattern that finds a text anywhere; in JSON as JSON writes it."""
    if value is None:
        return None
    text = clean_text(field, value, limit=MAX_SEARCHED)
    if not text.strip():
        raise InvalidInput(field, "is empty; say what is to be found, or leave it out")
    if json_text:
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return f"%{text}%"
