"""Commit outcome: whether a transaction whose COMMIT went unanswered was committed."""

from __future__ import annotations

import psycopg

from holdfast.errors import UnknownOutcome
from holdfast.store.postgresql.session import PostgresqlSession
from holdfast.store.sql_text.transitions import CommitProof

_STATUS = "SELECT pg_xact_status(CAST(%(xid)s AS xid8))"
# The session is found by its transaction: its process id may belong to another session by now.
_END_SESSION = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_xid = CAST(CAST(%(xid)s AS xid8) AS xid) AND pid <> pg_backend_pid()
"""
_FIND_PROOF = """
SELECT 1 FROM holdfast_event
WHERE (entity, version, at, type) = (%(entity)s, %(version)s, %(at)s, %(type)s)
"""


def was_committed(session: PostgresqlSession, xid: str, proof: CommitProof | None) -> bool | None:
    """Whether the transaction was committed; None while it is still in progress.

    The session of a transaction in progress is ended, so that the next call gets an answer.
    """
    status = _read_status(session, xid)
    if status == "in progress":
        session.execute(_END_SESSION, {"xid": xid}).rows()
        return None
    if proof is None:
        return status == "committed"
    # A standby that took over may have given the same number to another transaction.
    return status == "committed" and _has_event(session, proof)


def _read_status(session: PostgresqlSession, xid: str) -> str:
    try:
        ((status,),) = session.execute(_STATUS, {"xid": xid}).rows()[1]
    except psycopg.errors.InvalidParameterValue:
        # The number is in the future: the server that took over never had the transaction.
        return "aborted"
    if status is None:
        raise UnknownOutcome(f"the server has forgotten transaction {xid}")
    return str(status)


def _has_event(session: PostgresqlSession, proof: CommitProof) -> bool:
    return bool(session.execute(_FIND_PROOF, proof.as_parameters()).rows()[1])
