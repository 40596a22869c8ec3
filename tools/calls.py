"""Every call of the HTTP server, from its own tables, for the reference."""

from __future__ import annotations

from typing import get_type_hints

from pydantic import BaseModel

from holdfast.server.application import TABLES
from holdfast.server.gate import OPEN_PATHS
from holdfast.server.route_table import RouteEntry
from holdfast.server.schemas.responses import PROBLEMS, UNROUTED_PROBLEMS


def list_calls() -> str:
    """For each noun a table of its calls: who may make them, what they are sent, what they do."""
    rows: dict[str, list[str]] = {}
    for table in TABLES:
        rows.setdefault(table.tag, []).extend(map(_row, table.entries))
    return "".join(
        f"\n## {tag}\n\n| call | for | body | |\n|---|---|---|---|\n{''.join(calls)}"
        for tag, calls in rows.items()
    )


def list_problems() -> str:
    problems = sorted({**PROBLEMS, **UNROUTED_PROBLEMS}.items(), key=lambda each: int(each[0]))
    rows = "".join(f"| {status} | {told['description']} |\n" for status, told in problems)
    return f"\n## Problems\n\n| status | |\n|---|---|\n{rows}"


def _row(entry: RouteEntry) -> str:
    who = (
        "everybody, without a token" if entry.path in OPEN_PATHS else ", ".join(sorted(entry.roles))
    )
    said = (entry.endpoint.__doc__ or "").partition("\n")[0].replace("|", "\\|")
    return f"| `{entry.method} {entry.path}` | {who} | {_body(entry)} | {said} |\n"


def _body(entry: RouteEntry) -> str:
    """The fields of what is sent; those that may be left out in brackets."""
    hint = get_type_hints(entry.endpoint).get("body")
    kinds = [hint] if isinstance(hint, type) else list(getattr(hint, "__args__", ()))
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return " or ".join(f"`{{{', '.join(_fields(model))}}}`" for model in models)


def _fields(model: type[BaseModel]) -> list[str]:
    return [
        name if field.is_required() else f"[{name}]" for name, field in model.model_fields.items()
    ]
