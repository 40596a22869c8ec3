"""The commands, by groups: each has help, an example, `--db`, and an exit code for its answer.

All commands: which module has each, so that one command does not load the others.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from holdfast.cli.app.session import called_command, chosen_store

Command = Callable[..., int | None]

HELP = {"help_option_names": ["-h", "--help"]}
EPILOG = (
    "Exit codes: 0 completed, 1 failed, 2 bad input, 3 cancelled, 4 needs a person, 5 no store."
)


class PlainCommand(TyperCommand):
    """A command that takes what needs no conversion as it is.

    Typer asks pydantic even about text and about what was not given, and to import that takes
    longer than most commands.
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
    """An argument as a usage line writes it: `NAME`, `[NAME]`, `NAME...`."""
    name = parameter.metavar or parameter.name.upper()
    many = "" if parameter.nargs == 1 else "..."
    return f"{name}{many}" if parameter.required else f"[{name}]{many}"


def _format_type(parameter: Any, ctx: Any) -> str | None:  # noqa: ANN401, ARG001 - Typer's own
    """What follows the name of an option in its help; an argument's name says enough."""
    if parameter.param_type_name == "argument":
        return None
    return str(parameter.metavar or _TYPES.get(parameter.type_descriptor.annotation, "TEXT"))


_TYPES = {int: "NUMBER", float: "NUMBER"}


def _convert_value(parameter: Any, context: Any, value: Any) -> Any:  # noqa: ANN401 - Typer's own
    if not needs_no_conversion(parameter, value):
        return type(parameter).process_value(parameter, context, value)
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


def needs_no_conversion(parameter: Any, value: Any) -> bool:  # noqa: ANN401 - Typer's own
    """Whether it is the text that is wanted, or was not given where it need not be."""
    if value is None or value == () or value is parameter.default:
        return not parameter.required
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    given = value if isinstance(value, tuple) else (value,)
    return annotation in {str, list[str]} and all(isinstance(each, str) for each in given)


app = typer.Typer(
    name="holdfast",
    cls=PlainGroup,
    help="Run pipelines so that no step runs out of order, runs twice or slips backwards.",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)

Store = Annotated[
    str | None,
    typer.Option(
        "--db", metavar="URL", help="The store to use: sqlite:///file.db, postgresql://… or a path."
    ),
]
_DB = inspect.Parameter("db", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Store)


def group(name: str, text: str, *, alone: bool = False) -> typer.Typer:
    """Commands behind one word, which `alone` has a command of its own."""
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
    """Make a function a command; its first line is its help, and what it gives its exit code."""

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


# In the order that help lists them.
MODULES = {
    "report": (),
    "init": ("init", "demo"),
    "run": ("run",),
    "show": ("runs", "tasks", "show", "why"),
    "events": ("events", "logs"),
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
    "protocol": ("work", "guard"),
    "server": ("serve", "up", "token", "open", "mcp"),
    "store": ("doctor", "clean", "db"),
    "trust": ("trust",),
    "workflows": ("workflow",),
    "schedules": ("schedule", "lease"),
    "bus": ("bus",),
}


CommandLine = Callable[..., object]


def load_command_line(arguments: Sequence[str]) -> CommandLine:
    """The program with the command that is called, or with all of them for help and completion."""
    called = arguments[0] if arguments else ""
    owner = next((module for module, names in MODULES.items() if called in names), None)
    return build_command_line(tuple(MODULES) if owner is None else ("report", owner))


@cache
def build_command_line(modules: Sequence[str]) -> CommandLine:
    """Put together once: Typer would do it again for each line that is typed in a program."""
    for module in modules:
        import_module(f"holdfast.cli.commands.{module}")
    return get_command(app)
