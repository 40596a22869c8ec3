"""Turns the arguments of a named query into what both drivers bind."""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet

from holdfast.store.database import Rows
from holdfast.store.queries import Query

encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def bind(query: Query, rows: Rows | None, parameters: dict[str, object]) -> dict[str, object]:
    if rows is not None:
        parameters["rows"] = encode(rows)
    for name in query.lists & parameters.keys():
        parameters[name] = encode(parameters[name])
    check(query, parameters.keys())
    return parameters


def check(query: Query, given: AbstractSet[str]) -> None:
    if given != query.parameters:
        told, wanted = sorted(given), sorted(query.parameters)
        raise TypeError(f"{query.name} takes the parameters {wanted}, not {told}")


def transition(query: Query) -> Query:
    if query.changes is None:
        raise TypeError(f"{query.name} is no transition: its headers do not say what it changes")
    if query.counted:
        raise TypeError(f"{query.name} tells only how many: run it with insert()")
    return query


def counted(query: Query) -> Query:
    if not query.counted:
        raise TypeError(f"{query.name} is no insert: its headers do not say that it answers count")
    return query


def plain(query: Query) -> Query:
    if query.changes is not None:
        raise TypeError(
            f"{query.name} is a transition: run it with change(), which records its events"
        )
    return query
