"""Front ends: what a Python program, the command line, HTTP and MCP give a user to read."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr
from contextvars import Context
from pathlib import Path
from typing import Any, cast

from holdfast.cli.app.advice import print_error
from holdfast.cli.app.session import chosen_store, with_store
from holdfast.cli.render.formats import describe_error_line
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, summarize_error
from holdfast.mcp.tool_words import TOOL_WORDS
from holdfast.mcp.tools import Toolbox, ToolCaller
from holdfast.service.admin import health
from holdfast.service.commands import request_errors
from holdfast.service.commands.http_problems import describe_error
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.command_lines import AdviceWords, CommandWords
from holdfast.service.queries.explanations import explain
from holdfast.settings import ProjectSettings
from tests.contract.advice.situations import Examined, Explained, Read, Refused, Stored

# A name of a store that has to be in every command to type.
STORE = "sqlite:///shop.db"


def read_python(read: Read) -> list[str]:
    match read:
        case Refused():
            return [read.answer.detail]
        case Explained():
            return str(read.told).splitlines()
        case Examined():
            return str(read.engine.doctor()).splitlines()
        case Stored():
            return [summarize_error(read.error)]
        case HoldfastError():
            return str(read).splitlines()


def read_command_line(read: Read, store: str = STORE) -> list[str]:
    # An empty context: this process may have typed other commands before.
    return Context().run(_read_command_line, read, store)


def _read_command_line(read: Read, store: str) -> list[str]:
    chosen_store.set(store)
    return _read_view(read, with_store) if _is_view(read) else _read_errors(read)


def _read_errors(read: Read) -> list[str]:
    if isinstance(read, Stored):
        return [describe_error_line(read.error)]
    with redirect_stderr(io.StringIO()) as written:
        print_error(_error(read), json=False)
    return written.getvalue().splitlines()


def read_http(read: Read) -> list[str]:
    if _is_view(read):
        return _read_view(read, str)
    if isinstance(read, Stored):
        return []
    return str(describe_error(_error(read)).body["detail"]).splitlines()


def read_mcp(read: Read) -> list[str]:
    if isinstance(read, Examined | Stored):
        # An agent has no tool that examines the store.
        return []
    if isinstance(read, Explained):
        return _read_explained(read, TOOL_WORDS)
    return Refusing(_error(read)).read().splitlines()


class Refusing(Toolbox):
    """A tool that refuses whatever it is asked."""

    looks = True

    def __init__(self, error: HoldfastError) -> None:
        super().__init__(cast("Callable[[], ToolCaller]", None))
        self._error = error

    def fail(self) -> None:
        """Refuse."""
        raise self._error

    @classmethod
    def list_methods(cls) -> list[str]:
        return ["fail"]

    def read(self) -> str:
        (tool,) = self.make_tools()
        return str(tool.fn().content[0].text)


def _error(read: Read) -> HoldfastError:
    if isinstance(read, Refused):
        return request_errors.Refused(read.identifier, read.answer)
    assert isinstance(read, HoldfastError)
    return read


def _is_view(read: Read) -> bool:
    return isinstance(read, Explained | Examined)


def _read_view(read: Read, typed: Callable[[str], str]) -> list[str]:
    if isinstance(read, Explained):
        return _read_explained(read, CommandWords(typed))
    assert isinstance(read, Examined)
    return _read_examined(read.engine, typed)


def _read_explained(read: Explained, words: AdviceWords) -> list[str]:
    told = read.told
    identifier = told.run.id if hasattr(told, "run") else told.task.id
    return _lines(explain(read.engine, identifier, agents=read.agents, words=words))


def _lines(told: dict[str, Any]) -> list[str]:
    lines = [told["summary"]]
    for each in told.get("tasks", ()):
        lines += [
            f"  {each['line']}",
            *(f"    {each['others']}" for _ in each.get("alike", ())[:1]),
        ]
    lines += [
        f"  {each['name']}: {each['detail']}" for each in told.get("clauses", ()) if each["detail"]
    ]
    lines += [f"fix: {each}" for each in told["fixes"]]
    return [*lines, *(f"look: {each}" for each in told["looks"])]


def _read_examined(engine: Engine, typed: Callable[[str], str]) -> list[str]:
    place = StoreLocation(url=STORE, home=Path("nowhere"), may_be_created=True)
    told = health.examine_store(engine, place, ProjectSettings(), CommandWords(typed))
    lines = [
        f"{check['name']}: {each['entity']} {each['detail']}"
        for check in told["checks"]
        for each in check["violations"]
    ]
    return lines + [each for each in told["warnings"] if "nowhere" not in each]
