"""Tools as methods: each is called by its name, says what it does, and tells a refusal in words."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from holdfast.errors import HoldfastError, InvalidInput, InvalidNow, KeyConflict, NotFound
from holdfast.ids import parse_task_id
from holdfast.mcp.caller import Asking
from holdfast.service.commands.request_errors import Refused, renamed
from holdfast.service.commands.token_scope import Forbidden
from holdfast.service.queries.wording import in_commands
from holdfast.service.service import Service

Tool = Callable[..., Any]

# The fields that tell which task or run a call is about.
_NAMES = ("task_id", "run_id")
_CODES = {
    Forbidden: "forbidden",
    InvalidNow: "invalid_transition",
    InvalidInput: "invalid_input",
    KeyConflict: "key_conflict",
    NotFound: "not_found",
}


class Toolbox:
    """Some tools on one store: all of them look only, or some end things, and some change none."""

    looks: ClassVar[bool] = False
    ends: ClassVar[frozenset[str]] = frozenset()
    keeps: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, asking: Asking) -> None:
        self.asking = asking

    @property
    def service(self) -> Service:
        return self.asking().service

    def find(self, task_id: str | None, run_id: str | None) -> str:
        """What a call is about that takes the one or the other."""
        if task_id is not None and run_id is None:
            return self.task(task_id)
        if run_id is not None and task_id is None:
            return self.run(run_id)
        raise InvalidInput("task_id", "give either task_id or run_id, one of both")

    def task(self, task_id: str) -> str:
        """The id of the task that a call is about.

        To find one by less than its id is to look: what is not found is told with what there is.
        """
        if not self.asking().looks:
            return parse_task_id(task_id)
        with _named("task_id"):
            return self.service.addresses.task(task_id)

    def tasks(self, field: str, ids: Sequence[str]) -> list[str]:
        """The ids of tasks that a field of a call names."""
        with _named(field):
            return [self.service.addresses.task(each) for each in ids]

    def run(self, run_id: str) -> str:
        """The id of the run that a call is about."""
        with _named("run_id"):
            return self.service.addresses.run(run_id)

    def asked(self, task_id: str) -> str:
        """The id of the task that waits for a person: the one that was named, or that of a run."""
        with _named("task_id"):
            return self.service.commands.asked_of_person(self.service.addresses.find(task_id))

    @classmethod
    def names(cls) -> list[str]:
        """Its tools: the public methods that are its own, in the order they were written."""
        own = vars(cls).items()
        return [name for name, value in own if inspect.isfunction(value) and name[0] != "_"]

    def install(self, server: MCPServer) -> None:
        for name in self.names():
            method = getattr(self, name)
            server.add_tool(
                self._told(method),
                description=_describe(method.__doc__),
                annotations=ToolAnnotations(
                    read_only_hint=self.looks,
                    destructive_hint=name in self.ends,
                    open_world_hint=False,
                ),
            )

    def _told(self, method: Tool) -> Tool:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the tool gives
            try:
                return self._give(method, method(*args, **kwargs), kwargs)
            except HoldfastError as error:
                return self._refuse(method, error, kwargs)

        @functools.wraps(method)
        async def wait(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the tool gives
            try:
                return self._give(method, await method(*args, **kwargs), kwargs)
            except HoldfastError as error:
                return self._refuse(method, error, kwargs)

        return wait if inspect.iscoroutinefunction(method) else call

    def _give(self, method: Tool, given: Any, sent: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        about = tell_about(given, sent)
        if about and method.__name__ not in self.keeps:
            self._note(method, "ok", about)
        return given

    def _refuse(self, method: Tool, error: HoldfastError, sent: dict[str, Any]) -> CallToolResult:
        self._note(method, code_of(error), tell_about({}, sent))
        return refuse(f"{code_of(error)}: {in_commands(str(error))}")

    def _note(self, method: Tool, told: str, about: str) -> None:
        if not self.looks:
            self.asking().note(method.__name__, told, about)


def _named(field: str) -> AbstractContextManager[None]:
    """Tells a mistake in an address by the field that it came in."""
    return renamed(id=field, task=field, run=field)


def refuse(text: str) -> CallToolResult:
    """An error that begins with its code."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def code_of(error: HoldfastError) -> str:
    if isinstance(error, Refused):
        return str(error.reason)
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), "unavailable")


def tell_about(given: dict[str, Any], sent: dict[str, Any]) -> str:
    """Which task or run a call was about; of a claim what it got, which may be nothing."""
    if "assignments" in given:
        return " ".join(each["task"]["id"] for each in given["assignments"])
    found = [given.get("id"), *(sent.get(each) for each in _NAMES)]
    return next((str(each) for each in found if each), "")


def _describe(text: str | None) -> str:
    """A docstring as one reads it: without the blanks before its lines."""
    return "\n".join(line.strip() for line in (text or "").strip().splitlines())
