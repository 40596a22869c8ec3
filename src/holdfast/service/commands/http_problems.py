"""HTTP problems: errors as front ends show them, with an HTTP status and a stable code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.errors import (
    HoldfastError,
    InvalidInput,
    InvalidNow,
    InvalidWorkflowFile,
    KeyConflict,
    NotFound,
    StoreError,
    StoreGone,
    StoreUnwritable,
    TooMuchKept,
)
from holdfast.service.commands.request_errors import FieldMistake, Refused
from holdfast.service.commands.token_scope import Forbidden
from holdfast.service.queries.command_lines import describe_message, describe_text
from holdfast.worker.problem import HttpReply, problem

MAX_FILE_MISTAKES = 50


def describe_error(error: HoldfastError) -> HttpReply:
    said = describe_message(error)
    match error:
        case Refused():
            return _describe_refusal(error)
        case InvalidInput():
            return _describe_invalid_input(error, said)
        case NotFound() | Forbidden():
            outside = isinstance(error, Forbidden)
            return problem(403 if outside else 404, "forbidden" if outside else "not_found", said)
        case KeyConflict():
            differing = {"differing": list(error.differing)} if error.differing else {}
            return problem(409, "key_conflict", said, existing=error.existing, **differing)
        case StoreError():
            return _describe_store_error(error, said)
        case _:
            return problem(503, "shutting_down", said)


def _describe_store_error(error: StoreError, said: str) -> HttpReply:
    if isinstance(error, StoreUnwritable):
        return problem(503, "store_unwritable", said)
    if isinstance(error, StoreGone):
        gone = "the store's file is gone, and this server ends; its log tells more"
        return problem(503, "store_gone", gone)
    return problem(503, "store_unavailable", "the store does not answer; ask again")


def describe_mistakes(mistakes: Sequence[FieldMistake]) -> HttpReply:
    """The problem of a request whose shape is wrong."""
    more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
    listed = [{"field": each.field, "message": each.message} for each in mistakes]
    said: dict[str, Any] = {"field": mistakes[0].field, "mistakes": listed}
    return problem(422, "invalid_input", f"{mistakes[0]}{more}", **said)


def _describe_invalid_input(error: InvalidInput, said: str) -> HttpReply:
    if isinstance(error, InvalidNow):
        more = {"field": error.field, "current": error.status}
        return problem(409, "invalid_transition", said, **more)
    if isinstance(error, TooMuchKept):
        return problem(413, "too_much_kept", said, field=error.field)
    if not isinstance(error, InvalidWorkflowFile):
        return problem(422, "invalid_input", said, field=error.field)
    mistakes = [each.told() for each in error.found[:MAX_FILE_MISTAKES]]
    return problem(422, "invalid_workflow", said, mistakes=mistakes)


def _describe_refusal(error: Refused) -> HttpReply:
    code = str(error.reason)
    status = 404 if code == "not_found" else 409
    detail = describe_text(error.detail) or f"{error.identifier} was left as it is"
    if error.status is None:
        return problem(status, code, detail)
    return problem(status, code, detail, current=error.status)
