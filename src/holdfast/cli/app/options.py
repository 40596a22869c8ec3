"""Arguments and options that several commands share: completion, declaration and parsing.

Completion offers nothing where there is no store, and prints no error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from holdfast.cli.app.session import locate_store, open_service
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.placeholder import refuse_placeholder
from holdfast.settings import RENEWALS

LEAST_LEASE = 1.0


def complete_id(incomplete: str) -> list[str]:
    try:
        if not locate_store().exists:
            return []
        with open_service() as service:
            found = service.addresses.complete_id(incomplete)
    except HoldfastError:
        return []
    return [*(["@last"] if "@last".startswith(incomplete) else []), *found]


def complete_workflow(incomplete: str) -> list[str]:
    return _complete("workflows", incomplete)


def complete_schedule(incomplete: str) -> list[str]:
    return _complete("schedules", incomplete)


def _complete(query: str, incomplete: str) -> list[str]:
    try:
        if not locate_store().exists:
            return []
        with open_service() as service:
            items = getattr(service.queries, query)()["items"]
    except HoldfastError:
        return []
    return [each["name"] for each in items if each["name"].startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=1000, help="How many to show at most.")
]
After = Annotated[
    str | None,
    typer.Option("--after", help="Start after this cursor (`next` of the previous page)."),
]
OnlyLabels = Annotated[
    list[str] | None,
    typer.Option("--label", "-l", metavar="NAME=VALUE", help="Only with this label; repeatable."),
]
NewLabels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        "-l",
        metavar="NAME=VALUE",
        help="A label by which it is found again; repeatable.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(help="Only what was made since: 24h ago, or a time.", metavar="WHEN"),
]
Until = Annotated[
    str | None,
    typer.Option(help="Only what was made before: 24h ago, or a time.", metavar="WHEN"),
]
ErrorText = Annotated[str | None, typer.Option("--error", help="Only with this text in an error.")]
Address = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="A run or task: an id or its first characters, @last, key:KEY, or RUN:step.",
        autocompletion=complete_id,
    ),
]
AnyAddress = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        help="A run or task: an id or its first characters, @last, key:KEY, or RUN:step.",
        autocompletion=complete_id,
    ),
]
_ADDRESSES = typer.Argument(
    metavar="ID",
    help="Runs or tasks: ids or their first characters, @last, key:KEY, or RUN:step.",
    autocompletion=complete_id,
)
AnyAddresses = Annotated[list[str] | None, _ADDRESSES]
TaskAddress = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="A task: an id or its first characters, key:KEY, or RUN:step (@last:build.2.test).",
        autocompletion=complete_id,
    ),
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        "-a",
        help="An agent to serve, or '*' for every one; repeatable (default: default).",
    ),
]
Grace = Annotated[
    str | None,
    typer.Option(help="How long steps may go on after a signal (default: until they end)."),
]
HearCommands = Annotated[
    bool,
    typer.Option("--hear", help="Carry out commands and accept results that arrive on the bus."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="A tag to offer; repeatable.")]
WorkflowName = Annotated[
    str,
    typer.Argument(
        metavar="WORKFLOW",
        help="A workflow: its name, a file, or module:name.",
        autocompletion=complete_workflow,
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="K=V", help="An input: k=value, k:=JSON, k=@file."),
]
ScheduleName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The name of a schedule.", autocompletion=complete_schedule
    ),
]


def read_json(field: str, text: str) -> Any:  # noqa: ANN401 - JSON is any value
    """The value of a text that must be JSON."""
    try:
        return _parse(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(field, f"is not JSON ({error}); text is written '\"text\"'") from error


def read_value(text: str) -> Any:  # noqa: ANN401 - JSON is any value
    """The value of a text that is JSON, else the text itself."""
    try:
        return _parse(text)
    except (ValueError, RecursionError):
        return text


def _parse(text: str) -> Any:  # noqa: ANN401 - JSON is any value
    return json.loads(text, parse_constant=_read_finite, parse_float=_read_finite)


def _read_finite(text: str) -> float:
    """A number of JSON: NaN, Infinity and numbers beyond the range of a float are refused."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number that JSON can hold")
    return number


def read_moment(field: str, text: str | None) -> Any:  # noqa: ANN401 - a datetime, or as it is
    """A moment as a person types it: a time without a zone is in the local zone."""
    from holdfast.model.units import read_datetime

    moment = None if text is None else read_datetime(text)
    if moment is None:
        return text
    try:
        return moment.astimezone() if moment.tzinfo is None else moment
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(field, f"{text!r} is out of reach: {error}") from error


def read_pairs(
    pairs: Sequence[str], read: Callable[[str, str], Any] = lambda _, text: read_value(text)
) -> dict[str, Any]:
    """The values of pairs by name: `k=v`, `k:=json` for JSON, and `k=@file` for a file."""
    given: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name.rstrip(":"):
            raise InvalidInput("input", f"{pair[:60]!r} is not name=value")
        exact = name.endswith(":")
        name = name.removesuffix(":")
        if name in given:
            raise InvalidInput(name, "is given twice")
        refuse_placeholder(name, text, typed=True)
        if text.startswith("@"):
            text = _read_file(name, text[1:])
        given[name] = read_json(name, text) if exact else read(name, text)
    return given


def _read_file(name: str, path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a path as it was typed
            return file.read()
    except OSError as error:
        raise InvalidInput(name, f"the file {path!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(name, f"the file {path!r} is not UTF-8") from error


def read_lease(text: str) -> dict[str, float]:
    """The lease of a worker, and the time between its renewals."""
    from holdfast.model.units import parse_duration

    seconds = parse_duration("lease", text)
    if seconds < LEAST_LEASE:
        raise InvalidInput("lease", f"must be at least 1s, so that it can be renewed, not {text}")
    return {"lease": seconds, "renewal": seconds / RENEWALS}
