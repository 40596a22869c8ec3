"""What a refusal or an error says to the person: what, why, the exit code and what to type next."""

from __future__ import annotations

from holdfast.cli.session import with_store
from holdfast.errors import (
    HoldfastError,
    InvalidInput,
    KeyConflict,
    NotFound,
    SchemaTooNew,
    StoreError,
)
from holdfast.service.refused import Refused
from holdfast.service.wording import in_commands

FAILED, BAD_INPUT, CANCELLED, NEEDS_PERSON, UNREACHABLE = 1, 2, 3, 4, 5

_NEXT = {
    "not_found": "holdfast runs",
    "stale_token": "holdfast show {id}",
    "lease_expired": "holdfast show {id}",
    "already_terminal": "holdfast show {id}",
    "already_claimed": "holdfast show {id}",
    "cancelled": "holdfast retry {id}",
    "result_conflict": "holdfast show {id}",
    "version_conflict": "holdfast show {id} --json",
    "started_dependents": "holdfast retry RUN --from STEP",
    "needed_by_others": "holdfast tasks",
    "part_of_run": "holdfast show {id}",
    "unknown_step": "holdfast show {id}",
}
_AFTER: tuple[tuple[type[HoldfastError], str], ...] = (
    (KeyConflict, "holdfast show {id}"),
    (NotFound, "holdfast runs"),
    (SchemaTooNew, "pip install --upgrade holdfast"),
    (StoreError, "holdfast doctor"),
)
_PLAIN = {
    "stale_token": "another attempt has this task now, or none; stop, and change nothing more",
    "lease_expired": "the lease of this attempt has run out; stop, and change nothing more",
}


def exit_code(error: HoldfastError) -> int:
    if isinstance(error, InvalidInput | NotFound | KeyConflict):
        return BAD_INPUT
    return UNREACHABLE if isinstance(error, StoreError) else FAILED


def tell(error: HoldfastError) -> str:
    if isinstance(error, Refused):
        detail = in_commands(error.detail) or _PLAIN.get(error.reason, "")
        plain = _PLAIN.get(error.reason)
        if plain and plain != detail:
            detail = f"{detail}; {plain}"
        return f"{error.identifier} was left as it is, {error.reason}: {detail}".removesuffix(": ")
    return in_commands(str(error))


def next_command(error: HoldfastError) -> str | None:
    """What to type next, unless the message says it already."""
    if isinstance(error, Refused):
        return with_store(_NEXT.get(error.reason, "holdfast why {id}").format(id=error.identifier))
    if "holdfast " in in_commands(str(error)):
        return None
    for kind, following in _AFTER:
        if isinstance(error, kind):
            return with_store(following.format(id=getattr(error, "existing", "")))
    return None
