"""Concurrency of calls: the key that each call of a task function has, made of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.api.options import read_concurrency, suggest_name
from holdfast.api.signature import Signature
from holdfast.errors import InvalidInput
from holdfast.model.workflow.graph import Concurrency
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step_template import render_key
from holdfast.model.workflow.template import parse_template

# A function gives the key of a call, or None for a call without one.
KeyFunction = Callable[..., str | None]
ConcurrencyOption = Concurrency | str | KeyFunction | tuple[str | KeyFunction, int] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CallConcurrency:
    """At most `limit` calls at once of each key; `make_key` makes the key of their arguments."""

    limit: int
    make_key: Callable[[Mapping[str, Any]], str | None]

    def of_call(self, payload: Mapping[str, Any]) -> Concurrency | None:
        key = self.make_key(payload)
        return None if key is None else Concurrency(key=key, limit=self.limit)


def check_call_concurrency(given: object) -> None:
    """Refuse what is no concurrency, before the function is known whose arguments it names."""
    chosen, limit = _split(given)
    if callable(chosen):
        Concurrency(key="checked", limit=limit)
    else:
        read_concurrency(given)


def _split(given: object) -> tuple[Any, Any]:
    """The key and its limit."""
    match given:
        case [key, limit]:
            return key, limit
        case _:
            return given, 1


def read_call_concurrency(
    given: object, signature: Signature
) -> Concurrency | CallConcurrency | None:
    """The concurrency of a task function: the same for all calls, or made of their arguments."""
    chosen, limit = _split(given)
    if callable(chosen):
        return CallConcurrency(limit=limit, make_key=_read_key_function(chosen, signature))
    read = read_concurrency(given)
    if read is None or not read.has_variables:
        return read
    return CallConcurrency(limit=read.limit, make_key=_read_key_text(read.key, signature))


def _read_key_text(key: str, signature: Signature) -> Callable[[Mapping[str, Any]], str]:
    for reference in parse_template("concurrency", key).references:
        if reference.root != "input":
            reason = f"{reference} is not known there; the arguments are: {{{{ input.customer }}}}"
            raise InvalidInput("concurrency", reason)
        if len(reference.parts) > 1:
            _refuse_unknown_parameter(reference.parts[1], signature)

    def make_key(payload: Mapping[str, Any]) -> str:
        given = {name: signature.encode(name, value) for name, value in _defaults(signature)}
        try:
            return render_key(key, {"input": {**given, **payload}})
        except Unresolved as error:
            raise InvalidInput("concurrency", f"its key cannot be made: {error}") from None

    return make_key


def _defaults(signature: Signature) -> list[tuple[str, Any]]:
    inputs = signature.inputs.items()
    return [(name, each.default) for name, each in inputs if each.default is not each.empty]


def _read_key_function(
    function: KeyFunction, signature: Signature
) -> Callable[[Mapping[str, Any]], str | None]:
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise InvalidInput("concurrency", f"its parameters cannot be told: {error}") from error
    takes_all = any(each.kind is each.VAR_KEYWORD for each in taken)
    names = [each.name for each in taken if each.kind is not each.VAR_KEYWORD]
    for each in taken:
        if each.kind in {each.POSITIONAL_ONLY, each.VAR_POSITIONAL}:
            reason = f"{each.name!r} of its function cannot be passed by name"
            raise InvalidInput("concurrency", reason)
        if each.kind is not each.VAR_KEYWORD and each.default is each.empty:
            _refuse_unknown_parameter(each.name, signature)

    def make_key(payload: Mapping[str, Any]) -> str | None:
        whole = dict(_defaults(signature))
        whole |= {name: signature.decode(name, value) for name, value in payload.items()}
        chosen = whole if takes_all else {name: whole[name] for name in names if name in whole}
        key = function(**chosen)
        if key is not None and not isinstance(key, str):
            reason = f"its function gave a {type(key).__name__}; a key is text, or None for no key"
            raise InvalidInput("concurrency", reason)
        return key

    return make_key


def _refuse_unknown_parameter(name: str, signature: Signature) -> None:
    known = signature.parameter_names
    if name not in known:
        hint = suggest_name(name, known) or f"; it takes {', '.join(known) or 'none'}"
        reason = f"{name!r} is no parameter of {signature.name!r}{hint}"
        raise InvalidInput("concurrency", reason)
