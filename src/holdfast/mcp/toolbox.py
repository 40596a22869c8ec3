"""Tools as methods: each is called by its name, says what it does, and tells a refusal in words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mcp.server.mcpserver.exceptions import ToolError

from holdfast.errors import HoldfastError, InvalidInput, KeyConflict, NotFound
from holdfast.service.refused import Refused
from holdfast.service.service import Service
from holdfast.service.wording import in_commands

P = ParamSpec("P")
T = TypeVar("T")

_CODES = {InvalidInput: "invalid_input", NotFound: "not_found", KeyConflict: "key_conflict"}


class Toolbox:
    """Some tools on one store."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def tools(self) -> list[Callable[..., Any]]:
        """Its public methods that are its own, in the order they were written."""
        names = [name for name in vars(type(self)) if not name.startswith("_")]
        return [_told(getattr(self, name)) for name in names]


def _told(method: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except HoldfastError as error:
            raise ToolError(f"{_code(error)}: {in_commands(str(error))}") from error

    return call


def _code(error: HoldfastError) -> str:
    if isinstance(error, Refused):
        return str(error.reason)
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), "unavailable")
