"""Called runs that have ended: each goes on only through the step that called it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.engine.read.task_state import name_tasks
from holdfast.model.advice import Action, advise
from holdfast.model.status import TERMINAL, Hold
from holdfast.store.database import Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedCall:
    """An ended run that a step called: the state of its caller, and the call that continues it."""

    status: str
    detail: str
    fix: str = ""
    # The run above, if the caller ended together with it: retrying that run retries this one.
    retry_run_id: str | None = None


def find_ended_call(tx: Transaction, run_id: str | None) -> EndedCall | None:
    """Describe an ended called run; None for a run that has not ended, or that no step called."""
    caller = None if run_id is None else _find_caller(tx, run_id)
    return None if caller is None else _describe_call(tx, *caller)


def _find_caller(tx: Transaction, run_id: str) -> tuple[Row, str] | None:
    """The task that called a run, with its address, if the run has ended."""
    rows = tx.read("callers_of", ids=[run_id])
    if not rows or rows[0]["ended"] is None:
        return None
    (name,) = name_tasks(tx, [rows[0]["task_id"]]).values()
    return rows[0], name


def retry_step(tx: Transaction, run_id: str, address: str) -> str:
    """The call that does a step again.

    If the run was called and has ended, the step that called it.
    """
    while (above := _find_caller(tx, run_id)) is not None:
        if above[0]["run_id"] is None:
            return advise(Action.RETRY, above[0]["task_id"])
        run_id, address = above[0]["run_id"], above[1]
    return advise(Action.RETRY, run_id, ("step", address))


def fix_or_retry(tx: Transaction, run_id: str | None, retry: str) -> str:
    """The call that continues a failed part of a run: the retry, or the fix of an ended call."""
    call = find_ended_call(tx, run_id)
    return retry if call is None or call.retry_run_id is not None else call.fix


def goes_on_by_retry(tx: Transaction, run_id: str | None) -> bool:
    """Whether a run that has ended goes on by a retry: of itself, or of the run that called it."""
    call = find_ended_call(tx, run_id)
    return call is None or call.retry_run_id is not None


def _describe_lone_call(caller: Row, name: str) -> EndedCall:
    """The call of a task outside of any run: whatever goes on, goes on by that task."""
    task_id = caller["task_id"]
    if caller["present"] and caller["status"] in TERMINAL:
        again = Action.REOPEN if caller["status"] == "done" else Action.RETRY
        fix = advise(again, task_id)
        told = f"{name!r} {task_id} has called it, and has ended with it; "
        return EndedCall(status=caller["ended"], detail=told + fix + " has it go on", fix=fix)
    look = advise(Action.WHY, task_id)
    told = f"{name!r} {task_id} has called it; "
    return EndedCall(status=caller["ended"], detail=told + look + " says how that stands", fix=look)


def _describe_call(tx: Transaction, caller: Row, name: str) -> EndedCall:
    if caller["run_id"] is None:
        return _describe_lone_call(caller, name)
    who = f"{name!r} of {caller['run_id']}"
    if caller["superseded"]:
        detail = f"it was called by {who} in an epoch that is over, and counts no more"
        return EndedCall(status=caller["ended"], detail=detail)
    if caller["status"] == "done":
        return _describe_continued_caller(tx, caller, name)
    if caller["present"] and caller["status"] in TERMINAL:
        return _describe_ended_caller(tx, caller, who)
    if caller["present"] and caller["holds"] & Hold.APPROVAL:
        approve = advise(Action.APPROVE, caller["task_id"])
        detail = f"its caller {who} waits for approval; " + approve + _describe_retry(caller)
        return EndedCall(status=caller["ended"], detail=detail, fix=approve)
    stands = "has not gone on from its end yet" if caller["present"] else "has begun anew"
    look = advise(Action.WHY, caller["task_id"])
    detail = f"its caller {who} {stands}; " + look + " says how it stands"
    return EndedCall(status=caller["ended"], detail=detail, fix=look)


def _describe_retry(caller: Row) -> str:
    return " calls it anew" if caller["ended"] == "completed" else " takes it up where it failed"


def _describe_ended_caller(tx: Transaction, caller: Row, who: str) -> EndedCall:
    run, above = caller["run_id"], find_ended_call(tx, caller["run_id"])
    if above is not None:
        return replace(above, detail=f"its caller is part of {run}: " + above.detail)
    retry = advise(Action.RETRY, run)
    detail = f"its caller {who} has ended with it; " + retry + _describe_retry(caller)
    return EndedCall(status=caller["ended"], detail=detail, fix=retry, retry_run_id=run)


def _describe_continued_caller(tx: Transaction, caller: Row, name: str) -> EndedCall:
    run, above = caller["run_id"], find_ended_call(tx, caller["run_id"])
    detail = f"it was called by {name!r} of {run}, which has gone on from its end"
    if above is not None:
        # The step can call again only once its own run goes on.
        detail = f"{detail}, and {run} has ended: " + above.detail
        return EndedCall(status=caller["ended"], detail=detail, fix=above.fix)
    anew = advise(Action.RETRY, run, ("step", name))
    detail = f"{detail}; " + anew + " calls it anew"
    return EndedCall(status=caller["ended"], detail=detail, fix=anew)
