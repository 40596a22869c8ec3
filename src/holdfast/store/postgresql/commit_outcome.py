"""Commit outcome: whether a transaction whose COMMIT went unanswered was committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
# A process id may belong to another session by now, which then began later.
_READ_IDENTITY = """
SELECT pid, CAST(EXTRACT(EPOCH FROM backend_start) * 1000000 AS bigint)
FROM pg_stat_activity WHERE pid = pg_backend_pid()
"""
_END_NAMED_SESSION = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND CAST(EXTRACT(EPOCH FROM backend_start) * 1000000 AS bigint) = %(began)s
"""
_FIND_PROOF = """
SELECT 1 FROM holdfast_event
WHERE entity = %(entity)s AND version = %(version)s
  AND COALESCE(at = %(at)s, true) AND COALESCE(type = %(type)s, true)
"""


@dataclass(frozen=True, kw_only=True)
class SessionIdentity:
    """What tells a session of the server from all others, earlier and later ones."""

    pid: int
    began: int


def read_identity(session: PostgresqlSession) -> SessionIdentity:
    ((pid, began),) = session.execute(_READ_IDENTITY).rows()[1]
    session.end_reading()
    return SessionIdentity(pid=pid, began=began)


def was_committed_in(
    session: PostgresqlSession, lost: SessionIdentity, proofs: Sequence[CommitProof]
) -> bool | None:
    """Whether a transaction whose id nobody was told was committed in a session that was lost.

    None while that session goes on, which is ended, so that a later call gets an answer. A session
    ends after its transaction, so that the events of the transaction can be seen then.
    """
    found = session.execute(_END_NAMED_SESSION, {"pid": lost.pid, "began": lost.began}).rows()[1]
    session.end_reading()
    if found:
        return None
    told = any(_has_event(session, proof) for proof in proofs)
    session.end_reading()
    return told


def was_committed(
    session: PostgresqlSession, xid: str, proofs: Sequence[CommitProof] = ()
) -> bool | None:
    """Whether the transaction was committed; None while it is still in progress.

    The session of a transaction in progress is ended, so that the next call gets an answer.
    """
    status = _read_status(session, xid)
    if status == "in progress":
        session.execute(_END_SESSION, {"xid": xid}).rows()
        return None
    # A standby that took over may have given the same number to another transaction.
    return status == "committed" and all(_has_event(session, proof) for proof in proofs)


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
