"""Commands and groups of commands: registration with help, an example, `--db` and an exit code.

The table `MODULES` names the module of each command, so that a command loads no other module.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from holdfast.cli.app.placeholders import refuse_typed_placeholder
from holdfast.cli.app.session import called_command, chosen_store

Command = Callable[..., int | None]
CommandLine = Callable[..., object]

NAME = "holdfast"
HELP = {"help_option_names": ["-h", "--help"]}
EPILOG = (
    "Exit codes: 0 completed, 1 failed, 2 bad input, 3 cancelled, 4 needs a person, 5 no store."
)
Store = Annotated[
    str | None,
    typer.Option(
        "--db", metavar="URL", help="The store to use: sqlite:///file.db, postgresql://… or a path."
    ),
]
_DB = inspect.Parameter("db", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Store)
_TYPES = {int: "NUMBER", float: "NUMBER"}
# The commands of each module, in the order of the help.
MODULES = {
    "report": (),
    "init": ("init", "demo"),
    "run": ("run",),
    "show": ("runs", "tasks", "show", "why"),
    "events": ("events", "logs"),
    "activity": ("activity", "costs"),
    "artifacts": ("artifacts",),
    "diff": ("diff",),
    "control": (
        "cancel",
        "retry",
        "pause",
        "resume",
        "approve",
        "reject",
        "answer",
        "continue",
        "signal",
    ),
    "tasks": ("task", "plan"),
    "workers": ("worker", "workers"),
    "agents": ("agent",),
    "protocol": ("work", "guard"),
    "server": ("serve", "up", "token", "open", "mcp"),
    "store": ("doctor", "clean", "db"),
    "imports": ("import",),
    "trust": ("trust",),
    "workflows": ("workflow",),
    "schedules": ("schedule", "lease"),
    "bus": ("bus",),
}
# Command lines that name no command, and need none.
WITHOUT_COMMAND: tuple[list[str], ...] = ([], ["--json"], ["--version"])
# The variable by which a shell asks for completions, which may be of any command.
COMPLETION = f"_{NAME.upper()}_COMPLETE"


class PlainCommand(TyperCommand):
    """A command whose text values and missing values bypass the conversion by Typer.

    Typer converts even these values with pydantic, and the import of pydantic takes longer than
    most commands.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's own
        _make_plain(self.get_params(ctx))
        return super().parse_args(ctx, args)


class PlainGroup(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's own
        _make_plain(self.get_params(ctx))
        return super().parse_args(ctx, args)


def _make_plain(parameters: Sequence[Any]) -> None:
    for each in parameters:
        changes = vars(each)
        changes["process_value"] = functools.partial(_convert_value, each)
        changes["display_type_rich"] = functools.partial(_format_type, each)
        if each.param_type_name == "argument":
            changes["get_usage_pieces"] = lambda _, each=each: [format_argument(each)]


def format_argument(parameter: Any) -> str:  # noqa: ANN401 - Typer's own
    """An argument as a usage line shows it: `NAME`, `[NAME]`, `NAME...`."""
    name = parameter.metavar or parameter.name.upper()
    many = "" if parameter.nargs == 1 else "..."
    return f"{name}{many}" if parameter.required else f"[{name}]{many}"


def _format_type(parameter: Any, ctx: Any) -> str | None:  # noqa: ANN401, ARG001 - Typer's own
    """The type behind the name of an option in its help; arguments show no type."""
    if parameter.param_type_name == "argument":
        return None
    return str(parameter.metavar or _TYPES.get(parameter.type_descriptor.annotation, "TEXT"))


def _convert_value(parameter: Any, context: Any, value: Any) -> Any:  # noqa: ANN401 - Typer's own
    refuse_typed_placeholder(parameter, context, value)
    if not needs_no_conversion(parameter, value):
        return type(parameter).process_value(parameter, context, value)
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


def needs_no_conversion(parameter: Any, value: Any) -> bool:  # noqa: ANN401 - Typer's own
    """Whether a value is text for a parameter that takes text, or is missing and optional."""
    if value is None or value == () or value is parameter.default:
        return not parameter.required
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    given = value if isinstance(value, tuple) else (value,)
    return annotation in {str, list[str]} and all(isinstance(each, str) for each in given)


app = typer.Typer(
    name=NAME,
    cls=PlainGroup,
    help="Run pipelines so that no step runs out of order, runs twice or slips backwards.",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


def group(name: str, text: str, *, alone: bool = False) -> typer.Typer:
    """A group of commands behind one word; with `alone`, the word itself is a command too."""
    made = typer.Typer(
        name=name,
        cls=PlainGroup,
        help=text,
        rich_markup_mode=None,
        no_args_is_help=not alone,
        context_settings=HELP,
    )
    app.add_typer(made, name=name)
    return made


def command(
    name: str, *, example: str, of: typer.Typer | None = None
) -> Callable[[Command], Command]:
    """Make a function a command: its docstring is the help, and its result is the exit code."""

    def register(function: Command) -> Command:
        made = _with_store_option(function, name if of is None else f"{of.info.name} {name}")
        text = f"Example: {example}"
        (of or app).command(name, cls=PlainCommand, epilog=text, context_settings=HELP)(made)
        return function

    return register


def _with_store_option(function: Command, name: str) -> Command:
    taken = inspect.signature(function, eval_str=True)

    @functools.wraps(function)
    def called(*args: Any, db: str | None = None, **options: Any) -> None:
        chosen_store.set(db or chosen_store.get())
        called_command.set(name)
        code = function(*args, **options)
        if code:
            raise typer.Exit(code)

    parameters = [*taken.parameters.values(), _DB]
    vars(called)["__signature__"] = taken.replace(parameters=parameters)
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def load_command_line(arguments: Sequence[str]) -> CommandLine:
    """The program with the called command alone, or with all commands for help and completion."""
    if COMPLETION in os.environ:
        return build_command_line(tuple(MODULES))
    if [*arguments] in WITHOUT_COMMAND:
        return build_command_line(("report",))
    called = arguments[0]
    owner = next((module for module, names in MODULES.items() if called in names), None)
    if owner is None:
        return build_command_line(tuple(MODULES))
    return build_command_line(("report", owner), called)


@cache
def build_command_line(modules: Sequence[str], called: str | None = None) -> CommandLine:
    """The program with the commands of some modules, or with one of them alone.

    It is built once for repeated calls of `main`.
    """
    for module in modules:
        import_module(f"holdfast.cli.commands.{module}")
    if called is None:
        return get_command(app)
    program = copy(app)
    commands, groups = app.registered_commands, app.registered_groups
    program.registered_commands = [each for each in commands if each.name == called]
    program.registered_groups = [each for each in groups if each.name == called]
    return get_command(program)
