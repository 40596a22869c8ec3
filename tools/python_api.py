"""The page of the Python API: each exported name with its signature, its members and its words."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

import holdfast
from holdfast.api import option_types
from holdfast.engine.core.sync_async import OperationMethod, ReadMethod

_HEAD = """# Python API

Everything that `holdfast` exports, and [what a Holdfast leads to](#members-of-a-holdfast). What is
not here is not for programs, and may change. Classes without a signature are made by Holdfast. What
is marked *operation* waits when it is called; `await ….aio(…)` is the same for coroutines, and
`….submit(…)` gives a future. What is marked *read* has `aio` too. Keywords after `**` are listed
[at the end](#keywords).

"""


# The classes that programs make; all others are made by Holdfast.
_MADE_BY_PROGRAMS = {
    *("AgentCommand", "Concurrency", "Holdfast", "NewRun", "NewSchedule", "NewTask", "Renewal"),
    *("RetryAfter", "RetryPolicy", "Settings"),
}


# The properties of a Holdfast that lead to operations, and the members of these that are not for
# programs: the engine and its workers call them.
_FACADES: dict[str, frozenset[str]] = {
    "tasks": frozenset({"lifted", "unhold_known", "wanted"}),
    "runs": frozenset({"begin_due", "expire", "start_and_read"}),
    "work": frozenset(
        {
            *("add_standing_claim", "attempts_over", "check_room", "check_write", "children"),
            *("effects_page", "first_to_run_now", "give_back", "lease", "needed_around", "pull"),
            *("recover", "renew_each", "secrets_of", "standing_claim", "suspend", "take_signal"),
            *("tell", "trace_of", "workflows_since"),
        }
    ),
    "leases": frozenset(),
    "schedules": frozenset({"fire"}),
    "workers": frozenset({"announce", "forget", "note_stop", "register"}),
    "hooks": frozenset({"register"}),
}


def make_api_page() -> str:
    exported = [(name, getattr(holdfast, name)) for name in holdfast.__all__]
    listed = "".join(_describe_export(name, each) for name, each in exported)
    facades = "".join(_describe_facade(name, inner) for name, inner in _FACADES.items())
    listed += f"## Members of a Holdfast\n\n{facades}"
    note = "<!-- Made by `make reference` from the code; change the code, not this page. -->\n\n"
    return note + _HEAD + listed + "## Keywords\n\n" + "".join(_describe_keywords())


def _describe_export(name: str, exported: Any) -> str:  # noqa: ANN401 - whatever is exported
    if not inspect.isclass(exported):
        return f"## `{name}{_signature(exported)}`\n\n{_words(exported)}\n\n"
    members = "".join(_describe_members(exported))
    return f"## `{name}{_constructor(exported)}`\n\n{_words(exported)}\n\n" + (
        f"{members}\n" if members else ""
    )


def _describe_facade(name: str, internal: frozenset[str]) -> str:
    """The members of `hf.tasks` and its kin."""
    leads_to = getattr(holdfast.Holdfast, name).fget
    kind = typing.get_type_hints(leads_to)["return"]
    known = _public_members(kind)
    if not internal <= known:
        raise ValueError(f"hf.{name} has no {', '.join(sorted(internal - known))}")
    members = "".join(
        _describe_member(each, inspect.getattr_static(kind, each))
        for each in sorted(known - internal)
    )
    return f"### `hf.{name}`\n\n{_words(leads_to)}\n\n{members}\n"


def _constructor(kind: type[Any]) -> str:
    """The parameters of a class that programs make; what Holdfast makes shows none."""
    return _signature(kind) if kind.__name__ in _MADE_BY_PROGRAMS else ""


def _describe_members(kind: type[Any]) -> Iterator[str]:
    if issubclass(kind, Enum):
        yield from (f"- `{each.name}` = `{each.value!r}`\n" for each in kind)
        return
    if is_dataclass(kind):
        for name, hint in kind.__annotations__.items():
            if not name.startswith("_"):
                yield f"- `{name}: {_plain(hint)}`\n"
    for name in sorted(_public_members(kind)):
        yield _describe_member(name, inspect.getattr_static(kind, name))


def _public_members(kind: type[Any]) -> set[str]:
    """The members that the package itself defines, whichever class of it does."""
    return {
        name
        for base in kind.__mro__
        if base.__module__.startswith("holdfast.")
        for name, member in vars(base).items()
        if not name.startswith("_") and _is_method(member)
    }


def _is_method(member: object) -> bool:
    kinds = (property, classmethod, staticmethod, OperationMethod, ReadMethod)
    return isinstance(member, kinds) or inspect.isfunction(member)


def _describe_member(name: str, member: Any) -> str:  # noqa: ANN401 - whatever a class holds
    kind, function = _unwrap(member)
    if isinstance(member, property):
        returned = function.__annotations__.get("return", "Any")
        shown = f"{name}: {_plain(returned)}"
    else:
        shown = f"{name}{_signature(function, bound=True)}"
    return f"- `{shown}`{kind}: {_first_sentence(function)}\n"


def _unwrap(member: Any) -> tuple[str, Callable[..., Any]]:  # noqa: ANN401 - as above
    if isinstance(member, OperationMethod):
        return " (operation)", member._method  # noqa: SLF001 - how it is described
    if isinstance(member, ReadMethod):
        return " (read)", member._method  # noqa: SLF001 - the same
    if isinstance(member, property):
        assert member.fget is not None
        return "", member.fget
    return "", getattr(member, "__func__", member)


def _signature(function: Callable[..., Any], *, bound: bool = False) -> str:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1 if bound else 0 :]
    plain = [_plain_parameter(each) for each in parameters]
    returned: object = signature.return_annotation
    if inspect.isclass(function) or returned is inspect.Signature.empty:
        returned = inspect.Signature.empty
    else:
        returned = _Shown(re.sub(r"^Future\[(.*)\]$", r"\1", _plain(returned)))
    return str(inspect.Signature(plain, return_annotation=returned))


class _Shown:
    """An annotation that is shown as it was written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _plain_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    if parameter.annotation is not parameter.empty:
        parameter = parameter.replace(annotation=_Shown(_plain(parameter.annotation)))
    if parameter.default is not parameter.empty:
        parameter = parameter.replace(default=_Shown(_plain_default(parameter.default)))
    return parameter


def _plain(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _plain_default(default: object) -> str:
    return "…" if type(default).__repr__ is object.__repr__ else repr(default)


def _words(described: object) -> str:
    return inspect.getdoc(described) or ""


def _first_sentence(described: object) -> str:
    return _words(described).partition("\n\n")[0].replace("\n", " ")


def _describe_keywords() -> Iterator[str]:
    kinds = [each for each in vars(option_types).values() if hasattr(each, "__total__")]
    for kind in kinds:
        rows = "".join(
            f"- `{name}: {' '.join(hint.__forward_arg__.split())}`\n"
            for name, hint in kind.__annotations__.items()
        )
        yield f"### `{kind.__name__}`\n\n{_words(kind)}\n\n{rows}\n"
