"""Errors and refusals as a person and a program read them, exit codes, and the next command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from holdfast.cli.app.session import (
    called_command,
    chosen_server,
    format_url,
    typed_arguments,
    with_store,
)
from holdfast.cli.app.terminal import escape, paint, print_json_line, print_note
from holdfast.errors import (
    BusUnreachable,
    HoldfastError,
    InvalidFile,
    InvalidInput,
    InvalidProjectFile,
    InvalidWorkflowFile,
    KeyConflict,
    NotFound,
    SchemaTooNew,
    StoreError,
    StoreUnreachable,
    StoreUnwritable,
)
from holdfast.service.commands.request_errors import STOP, Refused
from holdfast.service.queries.command_lines import (
    describe_message,
    describe_text,
)

FAILED, BAD_INPUT, CANCELLED, NEEDS_PERSON, UNREACHABLE = 1, 2, 3, 4, 5

_AFTER_REFUSAL = {
    "stale_token": "holdfast show {id}",
    "lease_expired": "holdfast show {id}",
    "already_terminal": "holdfast show {id}",
    "already_claimed": "holdfast show {id}",
    "already_passed": "holdfast show {id}",
    "cancelled": "holdfast retry {id}",
    "result_conflict": "holdfast show {id}",
    "version_conflict": "holdfast show {id} --json",
    "started_dependents": "holdfast retry --again {id}",
    "needed_by_others": "holdfast tasks",
    "part_of_run": "holdfast show {id}",
    "unknown_step": "holdfast show {id}",
}
_LISTS = {
    "workflow": "holdfast workflow list",
    "schedule": "holdfast schedule list",
    "worker": "holdfast workers",
    "token": "holdfast token list",
    "group": "holdfast bus groups",
    "relay": "holdfast bus",
}
_MISSING = re.compile(r"(?:^|; )(?:input\.)?([A-Za-z_][\w-]*):? is missing")
_UNKNOWN = re.compile(
    r"(?:^|; )(?:input\.)?([A-Za-z_][\w-]*):? "
    r"(?:is not declared; there is|is no input of '[^']*', which takes) ([\w-]+(?:, [\w-]+)*)"
)
_INPUT = "--input="
_COMMAND_IN_BACKTICKS = re.compile("`(holdfast [^`]+)`")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def print_error(error: HoldfastError, *, json: bool) -> int:
    """Print an error and the command to type next, and return the exit code."""
    if json:
        print_json_line({"error": view_error(error)})
        return exit_code(error)
    print_note(f"{paint('error:', 'red')} {escape(describe_error(error), keep=chr(10))}")
    following = next_command(error)
    if following is not None:
        print_note(f"next:  {escape(following)}")
    return exit_code(error)


def exit_code(error: HoldfastError) -> int:
    if isinstance(error, Refused):
        return BAD_INPUT if error.reason in {"not_found", "unknown_step"} else FAILED
    if isinstance(error, InvalidInput | NotFound | KeyConflict):
        return BAD_INPUT
    return UNREACHABLE if isinstance(error, StoreError | BusUnreachable) else FAILED


def describe_error(error: HoldfastError) -> str:
    if not isinstance(error, Refused):
        return describe_message(error, with_store)
    late = error.reason in {"stale_token", "lease_expired"} and _is_id(error.identifier)
    detail = describe_text(error.detail, with_store)
    details = [detail, STOP if late and STOP not in error.detail else ""]
    told = "; ".join(each for each in details if each)
    what = f"{error.identifier} {_describe_status(error)} ({error.reason})"
    return f"{what}: {told}" if told else what


def _describe_status(error: Refused) -> str:
    if error.reason == "invalid_output":
        return "has failed this attempt"
    return "may not act any more" if called_command.get() == "guard" else "is unchanged"


def view_error(error: HoldfastError) -> dict[str, Any]:
    """An error as JSON: a code that does not change, the message, and the command to type next."""
    named = _CAPITAL.sub("_", type(error).__name__).lower()
    view: dict[str, Any] = {
        "code": str(error.reason) if isinstance(error, Refused) else named,
        "message": describe_error(error),
        "next": next_command(error) or _first_named(describe_error(error)),
    }
    if isinstance(error, InvalidFile):
        view["mistakes"] = [each.told() for each in error.found]
    return view


def _first_named(message: str) -> str | None:
    """The first command in backticks that a message names."""
    found = _COMMAND_IN_BACKTICKS.search(message)
    return None if found is None else found[1]


def next_command(error: HoldfastError) -> str | None:
    """The command to type next, unless the message names one already."""
    if isinstance(error, Refused | NotFound) and _is_on_server():
        return None
    if isinstance(error, Refused):
        if not _is_id(error.identifier):
            return _command_after_lease(error.identifier)
        following = _AFTER_REFUSAL.get(error.reason, "holdfast why {id}")
        if error.reason == "cancelled" and error.status != "cancelled":
            # Only the attempt was cancelled; its task has been retried since.
            following = "holdfast show {id}"
        return with_store(following.format(id=error.identifier))
    if isinstance(error, InvalidProjectFile):
        return f"{_typed_command()}   (once it is mended)"
    if "holdfast " in describe_message(error):
        return None
    return _command_after_error(error)


def _is_on_server() -> bool:
    """Whether the command called a server: no command on a local store would find its tasks."""
    called = (called_command.get() or "").split(" ")[0]
    return called in {"work", "guard"} and chosen_server() is not None


def _command_after_lease(key: str) -> str | None:
    held = (called_command.get() or "").startswith("lease ")
    return with_store(shlex.join(["holdfast", "lease", "acquire", key])) if held else None


def _command_after_error(error: HoldfastError) -> str | None:
    called = called_command.get()
    match error:
        case KeyConflict():
            return with_store(f"holdfast show {error.existing}")
        case NotFound():
            return _typed_with_file(error) or with_store(_command_that_lists(error))
        case SchemaTooNew():
            return "pip install --upgrade .   (in a newer clone of Holdfast)"
        case StoreError() | BusUnreachable():
            return _command_after_store_error(error)
        case InvalidWorkflowFile():
            check = "workflow validate"
            return None if called == check else f"holdfast {check} {error.field}"
        case _:
            return None if called is None else _typed_with_inputs(called, str(error))


def _command_after_store_error(error: StoreError | BusUnreachable) -> str | None:
    if "malformed" in str(error):
        return with_store("holdfast db restore FILE") + "   (its last backup)"
    away = isinstance(error, StoreUnreachable | StoreUnwritable | BusUnreachable)
    return None if away else "holdfast runs --db URL   (another store)"


def _typed_with_inputs(called: str, told: str) -> str:
    """The typed command with its inputs as they are declared, or else the command for its help.

    Inputs that are missing are added, and a misspelt one gets the name that it should have.
    """
    starts = called in {"run", "schedule add"}
    missing = _MISSING.findall(told) if starts else []
    unknown = {name: known.split(", ") for name, known in _UNKNOWN.findall(told) if starts}
    if not missing and not unknown:
        return f"holdfast {called} --help"
    typed = typed_arguments.get()
    given = {_read_input(each)[1] for each in typed}
    renamed = {
        name: _choose_near(name, {*missing, *known} - given) for name, known in unknown.items()
    }
    added = [f"-i {name}=…" for name in missing if name not in renamed.values()]
    return " ".join([format_typed(_rename_inputs(typed, renamed)), *added])


def _choose_near(name: str, names: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, sorted(names), n=1)), None)


def _read_input(argument: str) -> tuple[str, str, str]:
    """The flag, the name and the rest of an argument such as `--input=name:=1`."""
    flag = _INPUT if argument.startswith(_INPUT) else ""
    name = argument.removeprefix(flag).partition("=")[0].removesuffix(":")
    return flag, name, argument[len(flag) + len(name) :]


def _rename_inputs(typed: Sequence[str], renamed: Mapping[str, str | None]) -> list[str]:
    """Typed arguments with other names for some inputs; an input without a name is left out."""
    kept: list[str] = []
    for argument in typed:
        flag, name, rest = _read_input(argument)
        if not rest or name not in renamed:
            kept.append(argument)
        elif (meant := renamed[name]) is not None:
            kept.append(f"{flag}{meant}{rest}")
        elif not flag:
            kept.pop()
    return kept


def _typed_command() -> str:
    return format_typed(typed_arguments.get())


def format_typed(arguments: Iterable[str]) -> str:
    """A typed command with other arguments, without passwords."""
    return shlex.join(["holdfast", *map(format_url, arguments)])


def _typed_with_file(error: NotFound) -> str | None:
    """The typed command with the file of an unknown workflow, if this folder has that file."""
    name = error.identifier
    if "such workflow" not in str(error) or not all(
        each.isalnum() or each in "_-" for each in name
    ):
        return None
    beside = (f"{name}{suffix}" for suffix in (".yaml", ".yml", ".json"))
    found = next((each for each in beside if Path(each).is_file()), None)
    typed = [found if each == name else each for each in typed_arguments.get() if found]
    return format_typed(typed) if found in typed else None


def _command_that_lists(error: NotFound) -> str:
    known, step, _ = error.identifier.partition(":")
    if step and _is_id(known):
        return f"holdfast show {known}"
    if known.startswith("t_"):
        return "holdfast tasks"
    return next(
        (each for kind, each in _LISTS.items() if f"such {kind}" in str(error)), "holdfast runs"
    )


def _is_id(text: str) -> bool:
    return text.startswith(("r_", "t_"))
