"""Usage errors: command lines that Typer cannot read, the reason, and the command to type next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

from holdfast.cli.app.session import typed_arguments
from holdfast.cli.app.terminal import escape, paint, print_json_line, print_note

BAD_INPUT = 2
MOST_COMMANDS_NAMED = 3
_COMMON_OPTIONS = frozenset({"--db", "--dry-run", "--help", "--json"})
# Commands of other programs, and the command of Holdfast that does the same.
_OTHER_COMMANDS = {"watch": "; `holdfast show --follow` watches a run"}
# Options by words that other things have here, with the option that does the same.
_OTHER_OPTIONS = {"--idle": "--no-enqueue", "--depends-on": "--needs", "--blocked-by": "--needs"}


@runtime_checkable
class UsageError(Protocol):
    """The error that Typer raises for a command line that it cannot read."""

    @property
    def format_message(self) -> Callable[[], str]: ...


def print_usage_error(mistake: UsageError, *, json: bool) -> int:
    called = _describe_called_command(getattr(mistake, "ctx", None))
    if type(mistake).__name__ == "NoArgsIsHelpError" and not json:
        print_note(mistake.format_message())
        return BAD_INPUT
    told, following = describe_usage_error(mistake, called), f"{called} --help"
    if json:
        print_json_line({"error": {"code": "usage", "message": told, "next": following}})
        return BAD_INPUT
    print_note(f"{paint('error:', 'red')} {escape(told)}")
    print_note(f"next:  {escape(following)}")
    return BAD_INPUT


def _describe_called_command(context: Any) -> str:  # noqa: ANN401 - Typer's own
    if context is not None:
        return str(context.command_path)
    # For an option without its value, Typer does not report the command.
    first = typed_arguments.get()[:1]
    return " ".join(["holdfast", *(each for each in first if not each.startswith("-"))])


def describe_usage_error(mistake: UsageError, called: str) -> str:
    option = getattr(mistake, "option_name", None)
    if option is not None and hasattr(mistake, "possibilities"):
        own = _own_options(getattr(mistake, "ctx", None))
        suggestion = _suggest_option(option, mistake.possibilities, own)
        return f"{option}: is not an option of {called}{suggestion}"
    parameter = getattr(mistake, "param", None)
    if parameter is not None:
        return f"{_describe_parameter(parameter)}: {_describe_cause(mistake)}"
    told = mistake.format_message().rstrip(".")
    said = next((how for word, how in _OTHER_COMMANDS.items() if told.endswith(f"'{word}'")), "")
    return f"{told[:1].lower()}{told[1:]}{said}"


def _describe_parameter(parameter: Any) -> str:  # noqa: ANN401 - Typer's own
    """The long name of an option, or an argument as the help shows it."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name.upper()).strip("[]")


def _describe_cause(mistake: Any) -> str:  # noqa: ANN401 - Typer's own
    if type(mistake).__name__ == "MissingParameter":
        return "is missing"
    found = getattr(mistake.__cause__, "errors", None)
    if found is None:
        return str(mistake.message).rstrip(".")
    from holdfast.service.commands.request_errors import translate_errors

    return translate_errors(found())[0].message


def _own_options(context: Any) -> list[str]:  # noqa: ANN401 - Typer's own
    """The options of a command, without the options that all commands share."""
    params = [] if context is None else context.command.params
    options = [_describe_parameter(each) for each in params if each.param_type_name == "option"]
    return [each for each in options if each not in _COMMON_OPTIONS]


def _suggest_option(option: str, possibilities: Sequence[str] | None, own: Sequence[str]) -> str:
    """A suggestion for an unknown option: the few commands that have it, or similar options.

    If the called command has few options of its own, the suggestion lists them too.
    """
    if (same := _OTHER_OPTIONS.get(option)) in own:
        return f"; {same} does that"
    owners = _commands_with_option(option)
    if 0 < len(owners) <= MOST_COMMANDS_NAMED:
        instead = f", which has {', '.join(own)}" if 0 < len(own) <= MOST_COMMANDS_NAMED else ""
        return f"{instead}; {', '.join(owners)} {'has' if len(owners) == 1 else 'have'} one"
    # Options are compared without their dashes, which make all short names look similar.
    names = {each.lstrip("-"): each for each in possibilities or ()}
    close = sorted(names[each] for each in get_close_matches(option.lstrip("-"), names))
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _commands_with_option(option: str) -> list[str]:
    """All commands that have an option."""
    from holdfast.cli.app.command_registry import MODULES, build_command_line

    def walk(command: Any, name: str) -> Iterator[str]:  # noqa: ANN401 - Typer's own
        if any(option in each.opts for each in command.params):
            yield name
        for below, each in getattr(command, "commands", {}).items():
            yield from walk(each, f"{name} {below}")

    return list(walk(build_command_line(tuple(MODULES)), "holdfast"))
