"""The commands, by groups: each has help, an example, `--db`, and an exit code for its answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from holdfast.cli.session import chosen_store

Command = Callable[..., int | None]

EPILOG = (
    "Exit codes: 0 completed, 1 failed, 2 bad input, 3 cancelled, 4 needs a person, 5 no store."
)

app = typer.Typer(
    name="holdfast",
    help="Run pipelines so that no step runs out of order, runs twice or slips backwards.",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Store = Annotated[
    str | None,
    typer.Option(
        "--db", metavar="URL", help="The store: sqlite:///file.db, postgresql://…, a file."
    ),
]
_DB = inspect.Parameter("db", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Store)


def group(name: str, text: str) -> typer.Typer:
    made = typer.Typer(name=name, help=text, rich_markup_mode=None, no_args_is_help=True)
    app.add_typer(made, name=name)
    return made


def command(
    name: str, *, example: str, of: typer.Typer | None = None, hidden: bool = False
) -> Callable[[Command], Command]:
    """Make a function a command; its first line is its help, and what it gives its exit code."""

    def register(function: Command) -> Command:
        settings = {"help_option_names": ["-h", "--help"]}
        made = _with_store(function)
        text = f"Example: {example}"
        (of or app).command(name, epilog=text, hidden=hidden, context_settings=settings)(made)
        return function

    return register


def _with_store(function: Command) -> Command:
    taken = inspect.signature(function, eval_str=True)

    @functools.wraps(function)
    def called(*args: Any, db: str | None = None, **options: Any) -> None:
        token = chosen_store.set(db or chosen_store.get())
        try:
            code = function(*args, **options)
        finally:
            chosen_store.reset(token)
        if code:
            raise typer.Exit(code)

    parameters = [*taken.parameters.values(), _DB]
    vars(called)["__signature__"] = taken.replace(parameters=parameters)
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called
