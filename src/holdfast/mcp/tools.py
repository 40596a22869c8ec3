"""Tools: methods that agents call by name, their shared fields, their callers and their errors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from holdfast.errors import HoldfastError, InvalidInput, InvalidNow, KeyConflict, NotFound
from holdfast.mcp.tool_words import TOOL_WORDS
from holdfast.model.task import Assignment
from holdfast.model.text import parse_task_id
from holdfast.model.token import AccessToken, Role
from holdfast.service.admin import audit
from holdfast.service.commands.request_errors import Refused, rename_fields
from holdfast.service.commands.token_scope import Forbidden
from holdfast.service.protocol.long_polls import ClaimOptions
from holdfast.service.protocol.protocol import ClaimTerms
from holdfast.service.service import Service

MAX_AUDIT_TEXT = 60


@dataclass(frozen=True, kw_only=True)
class ToolCaller:
    """The caller of a tool: the service in its name, its name as a worker, and its token if any.

    `wait` waits some seconds for ready tasks. `is_gone` tells whether the caller has hung up; a
    caller over pipes has none, because it cannot hang up alone.
    """

    service: Service
    worker: str
    wait: Callable[[ClaimTerms, ClaimOptions, float], Awaitable[list[Assignment]]]
    access: AccessToken | None = None
    is_gone: Callable[[], Awaitable[bool]] | None = None

    @property
    def looks(self) -> bool:
        """Whether the caller may read tasks that it has not claimed."""
        return self.access is None or self.access.role is not Role.WORKER

    def note(self, tool: str, told: str, about: str = "") -> None:
        """Keep in the audit what the caller changed or tried to change; long names are cut."""
        role = None if self.access is None else self.access.role
        did = f"MCP {_shorten(tool)}"
        audit.write_entry(self.service.actor, did, told, role=role, about=_shorten(about))


def _shorten(text: str) -> str:
    return ascii(text)[1:-1][:MAX_AUDIT_TEXT]


FindCaller = Callable[[], ToolCaller]

Method = Callable[..., Any]

# The fields of calls that name a task or a run.
_SUBJECT_FIELDS = ("task_id", "run_id")
_CODES = {
    Forbidden: "forbidden",
    InvalidNow: "invalid_transition",
    InvalidInput: "invalid_input",
    KeyConflict: "key_conflict",
    NotFound: "not_found",
}


class Toolbox:
    """A group of tools: with `looks` all of them only read; `destructive` ones end things.

    Calls of `unaudited` tools are kept in the audit only where they are refused.
    """

    looks: ClassVar[bool] = False
    destructive: ClassVar[frozenset[str]] = frozenset()
    unaudited: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, find_caller: FindCaller) -> None:
        self.find_caller = find_caller

    @property
    def service(self) -> Service:
        return self.find_caller().service

    def find(self, task_id: str | None, run_id: str | None) -> str:
        """The id of the task or the run that a call names; it has to name one of both."""
        if task_id is not None and run_id is None:
            return self.task(task_id)
        if run_id is not None and task_id is None:
            return self.run(run_id)
        raise InvalidInput("task_id", "give either task_id or run_id, one of both")

    def task(self, task_id: str) -> str:
        """The id of the task that a call is about.

        A caller that may not read other tasks has to give the whole id: the error for an id that
        is not found names tasks that are there.
        """
        if not self.find_caller().looks:
            return parse_task_id(task_id)
        with _name_field("task_id"):
            return self.service.addresses.task(task_id)

    def tasks(self, field: str, named: Sequence[str]) -> list[str]:
        """The ids of the tasks that a field of a call names, by their ids or keys."""
        with _name_field(field):
            return [self.service.addresses.task_or_key(each) for each in named]

    def run(self, run_id: str) -> str:
        """The id of the run that a call is about."""
        with _name_field("run_id"):
            return self.service.addresses.run(run_id)

    def find_asked(self, task_id: str) -> str:
        """The id of the task that waits for a person: the one that was named, or that of a run."""
        with _name_field("task_id"):
            return self.service.commands.find_task_for_person(self.service.addresses.find(task_id))

    @classmethod
    def list_names(cls) -> list[str]:
        """The names of the tools: the public methods of this class, in the order of the source."""
        return [*map(_name_tool, cls.list_methods())]

    @classmethod
    def list_methods(cls) -> list[str]:
        """The names of the methods that are tools."""
        own = vars(cls).items()
        return [name for name, value in own if inspect.isfunction(value) and name[0] != "_"]

    def make_tools(self) -> list[Tool]:
        """The tools; each refuses an argument that it does not have."""
        return [_forbid_unknown_arguments(self._make_tool(name)) for name in self.list_methods()]

    def _make_tool(self, name: str) -> Tool:
        method = getattr(self, name)
        return Tool.from_function(
            self._wrap(method),
            name=_name_tool(name),
            description=_clean_docstring(method.__doc__),
            annotations=ToolAnnotations(
                read_only_hint=self.looks,
                destructive_hint=name in self.destructive,
                open_world_hint=False,
            ),
        )

    def _wrap(self, method: Method) -> Method:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the tool gives
            try:
                return self._note_success(method, method(*args, **kwargs), kwargs)
            except HoldfastError as error:
                return self._refuse(method, error, kwargs)

        @functools.wraps(method)
        async def wait(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the tool gives
            try:
                return self._note_success(method, await method(*args, **kwargs), kwargs)
            except HoldfastError as error:
                return self._refuse(method, error, kwargs)

        return wait if inspect.iscoroutinefunction(method) else call

    def _note_success(self, method: Method, given: Any, sent: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        about = describe_subject(given, sent)
        if about and method.__name__ not in self.unaudited and not sent.get("dry_run"):
            self._note(method, "ok", about)
        return given

    def _refuse(self, method: Method, error: HoldfastError, sent: dict[str, Any]) -> CallToolResult:
        self._note(method, find_error_code(error), describe_subject({}, sent))
        return make_error_result(describe_refusal(error))

    def _note(self, method: Method, told: str, about: str) -> None:
        if not self.looks:
            self.find_caller().note(_name_tool(method.__name__), told, about)


def _name_tool(method: str) -> str:
    """The name of the tool of a method; a word of Python has an underscore at its end there."""
    return method.removesuffix("_")


def _name_field(field: str) -> AbstractContextManager[None]:
    """Have an error in an address name the field that held the address."""
    return rename_fields(id=field, task=field, run=field)


def make_error_result(text: str) -> CallToolResult:
    """A result that is an error; its text begins with the code."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def describe_refusal(error: HoldfastError) -> str:
    """An error as text: its code, once, what it is about, and what to do."""
    code = find_error_code(error)
    if not isinstance(error, Refused):
        return f"{code}: {TOOL_WORDS.describe_message(error)}"
    detail = TOOL_WORDS.describe_text(error.detail) or "it was left as it is"
    return f"{code}: {error.identifier}: {detail}"


def find_error_code(error: HoldfastError) -> str:
    if isinstance(error, Refused):
        return str(error.reason)
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), "unavailable")


def describe_subject(given: dict[str, Any], sent: dict[str, Any]) -> str:
    """The task or run that a call was about, or the tasks that a claim was given, if any."""
    if "assignments" in given:
        return " ".join(each["task"]["id"] for each in given["assignments"])
    found = [given.get("id"), *(sent.get(each) for each in _SUBJECT_FIELDS)]
    return next((str(each) for each in found if each), "")


def _forbid_unknown_arguments(tool: Tool) -> Tool:
    """The same tool, which refuses arguments that it does not have; its schema says so too."""
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    tool.parameters = model.model_json_schema(by_alias=True)
    return tool


def _clean_docstring(text: str | None) -> str:
    """A docstring without the indentation of its lines."""
    return "\n".join(line.strip() for line in (text or "").strip().splitlines())


View = dict[str, Any]

TaskId = Annotated[
    str, Field(description="The id of a task (t_…), its key as key:…, or a step of a run, r_…:step")
]
RunId = Annotated[
    str, Field(description="The id of a run (r_…), its key as key:…, or @last for the newest")
]
# Of these two a call names one.
ThisTask = Annotated[str | None, Field(description="The task (t_…, or r_…:step); else give run_id")]
ThisRun = Annotated[str | None, Field(description="The run (r_…, or @last); else give task_id")]
Agent = Annotated[
    str | None, Field(description="The role that works on it, as `developer`; else `default`")
]
Payload = Annotated[
    Any, Field(description="What whoever works on it is to know: any JSON, as {'prompt': '…'}")
]
NewLabels = Annotated[
    dict[str, str | int | float | bool] | None,
    Field(description="Names and values by which it is found again, as {'customer': '7'}"),
]
OnlyLabels = Annotated[
    dict[str, str] | None, Field(description="Only those with all of these labels")
]
Since = Annotated[str | None, Field(description="Only those made since: ISO 8601, or `24h` ago")]
ErrorText = Annotated[str | None, Field(description="Only those with this text in an error")]
Limit = Annotated[int, Field(ge=1, le=1_000, description="How many at most")]
After = Annotated[str | None, Field(description="The `next` of the page before")]

Held = Annotated[str, Field(description="The id of the task that claim gave")]
Token = Annotated[str, Field(description="The token that claim gave with it")]
Lease = Annotated[
    float, Field(gt=0, le=86_400, description="For how many seconds nobody else gets the task")
]


def describe_unknown_tool(
    name: str, known: Sequence[str], of_roles: Iterable[tuple[str, Sequence[str]]]
) -> str:
    """The error for a tool that another role has, or that does not exist."""
    role = next((role for role, box in of_roles if name in box), None)
    if role is not None:
        return (
            f"forbidden: {name} is a tool of the role {role}, which you do not have; whoever "
            f"connected you can connect you as {role}, or have somebody with that role call it"
        )
    close = get_close_matches(name, known, n=1)
    more = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
    return f"not_found: there is no tool {ascii(name)[:60]}; {more}"
