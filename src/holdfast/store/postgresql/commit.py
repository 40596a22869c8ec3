"""Asks the server what became of a transaction whose COMMIT was never answered."""

from __future__ import annotations

import psycopg

from holdfast.errors import UnknownOutcome
from holdfast.store.postgresql.session import Session
from holdfast.store.transitions import Mark

_STATUS = "SELECT pg_xact_status(CAST(%(xid)s AS xid8))"
# The session is known by its transaction: its process id may belong to someone else by now.
_END_SESSION = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_xid = CAST(CAST(%(xid)s AS xid8) AS xid) AND pid <> pg_backend_pid()
"""
_FIND_MARK = """
SELECT 1 FROM holdfast_event
WHERE (entity, version, at, type) = (%(entity)s, %(version)s, %(at)s, %(type)s)
"""


def was_committed(session: Session, xid: str, mark: Mark | None) -> bool | None:
    """Tell whether the transaction was committed; None while the server has not decided.

    An undecided one is ended, so that the next question gets an answer.
    """
    status = _status(session, xid)
    if status == "in progress":
        session.execute(_END_SESSION, {"xid": xid}).rows()
        return None
    if mark is None:
        return status == "committed"
    # A standby that took over may have given the same number to another transaction.
    return status == "committed" and _exists(session, mark)


def _status(session: Session, xid: str) -> str:
    try:
        ((status,),) = session.execute(_STATUS, {"xid": xid}).rows()[1]
    except psycopg.errors.InvalidParameterValue:
        # A number of the future: the server that took over never saw that transaction.
        return "aborted"
    if status is None:
        raise UnknownOutcome(f"the server has forgotten transaction {xid}")
    return str(status)


def _exists(session: Session, mark: Mark) -> bool:
    return bool(session.execute(_FIND_MARK, mark.as_parameters()).rows()[1])
