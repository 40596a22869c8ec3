"""Run selection: the options by which one command is for all runs that fit them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

import typer

from holdfast.cli.app.options import ErrorText, OnlyLabels, Since, Until, read_moment
from holdfast.errors import InvalidInput
from holdfast.model.filters import RunFilters
from holdfast.model.labels import parse_labels

Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = {
    "everything": (
        Annotated[
            bool,
            typer.Option("--all", help="All runs that fit these options, in place of named ones."),
        ],
        False,
    ),
    "workflow": (Annotated[str | None, typer.Option(help="Only runs of this workflow.")], None),
    "label": (OnlyLabels, None),
    "holding_step": (
        Annotated[str | None, typer.Option("--step", help="Only runs with a task of this step.")],
        None,
    ),
    "served_by": (
        Annotated[
            str | None, typer.Option("--for-agent", help="Only runs with a task for this agent.")
        ],
        None,
    ),
    "since": (Since, None),
    "until": (Until, None),
    "error": (ErrorText, None),
    "name": (
        Annotated[
            str | None, typer.Option(help="Only with this text in the workflow's name or the key.")
        ],
        None,
    ),
}
_STATUS = (
    Annotated[str | None, typer.Option(help="Only failed runs (the default), or cancelled ones.")],
    None,
)


@dataclass(frozen=True, kw_only=True)
class RunSelection:
    """What was typed to choose runs: whether `--all` was, and the filters beside it."""

    everything: bool
    filters: RunFilters

    def require_either(self, named: bool) -> None:
        """Refuse ids beside `--all`, filters without it, and nothing at all."""
        if self.everything and named:
            raise InvalidInput("all", "is for all runs that fit, and takes no ids")
        if any(self.filters.values()) and not self.everything:
            raise InvalidInput("all", "is missing: filters choose among all runs; add --all")
        if not self.everything and not named:
            raise InvalidInput("id", "is missing: name runs or tasks, or --all with filters")


def takes_selection(*, status: bool = False) -> Callable[[Command], Command]:
    """Give a command the options that choose runs; it gets them as its argument `selection`."""
    options = _OPTIONS | ({"status": _STATUS} if status else {})

    def change(function: Command) -> Command:
        taken = inspect.signature(function, eval_str=True)

        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> Any:  # noqa: ANN401 - the exit code of the command
            typed = {name: given.pop(name, default) for name, (_, default) in options.items()}
            return function(*args, selection=_read_selection(typed), **given)

        own = [each for each in taken.parameters.values() if each.name != "selection"]
        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for name, (kind, default) in options.items()
        ]
        vars(called)["__signature__"] = taken.replace(parameters=[*own, *more])
        return cast("Command", called)

    return change


def _read_selection(typed: dict[str, Any]) -> RunSelection:
    return RunSelection(
        everything=typed["everything"],
        filters=RunFilters(
            status=typed.get("status"),
            workflow=typed["workflow"],
            labels=parse_labels("label", typed["label"]),
            step=typed["holding_step"],
            agent=typed["served_by"],
            since=read_moment("since", typed["since"]),
            until=read_moment("until", typed["until"]),
            error=typed["error"],
            name=typed["name"],
        ),
    )
