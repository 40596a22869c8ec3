"""What a shell offers where an id or a name is wanted; silent where there is no store."""

from __future__ import annotations

from holdfast.cli.session import opened, place
from holdfast.errors import HoldfastError


def complete_id(incomplete: str) -> list[str]:
    try:
        if not place().there:
            return []
        with opened() as service:
            found = service.addresses.complete(incomplete)
    except HoldfastError:
        return []
    return [*(["@last"] if "@last".startswith(incomplete) else []), *found]


def complete_workflow(incomplete: str) -> list[str]:
    return _complete("workflows", incomplete)


def complete_schedule(incomplete: str) -> list[str]:
    return _complete("schedules", incomplete)


def _complete(query: str, incomplete: str) -> list[str]:
    try:
        if not place().there:
            return []
        with opened() as service:
            items = getattr(service.queries, query)()["items"]
    except HoldfastError:
        return []
    return [each["name"] for each in items if each["name"].startswith(incomplete)]
