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
# A process id may belong to another session by now. Behind a pooler even the session may serve
# another client: then the pooler has cleared it of our lock, after our transaction had ended.
_MARK_SESSION = """
SELECT pid, mark, pg_advisory_lock_shared(pid, mark) FROM (
  SELECT pid, CAST(
    CAST(EXTRACT(EPOCH FROM backend_start) * 1000000 AS bigint) % 2147483647 AS integer
  ) AS mark
  FROM pg_stat_activity WHERE pid = pg_backend_pid()
) AS session
"""
_END_MARKED_SESSION = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND pid = %(pid)s AND pid <> pg_backend_pid()
  AND classid = CAST(%(pid)s AS oid) AND objid = CAST(%(mark)s AS oid)
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
    # A number made of its beginning: the session keeps an advisory lock on both until it ends.
    mark: int


def mark_session(session: PostgresqlSession) -> SessionIdentity:
    """Mark a session by a lock that lasts as long as the session serves this client."""
    ((pid, mark, _),) = session.execute(_MARK_SESSION).rows()[1]
    session.end_reading()
    return SessionIdentity(pid=pid, mark=mark)


def was_committed_in(
    session: PostgresqlSession, lost: SessionIdentity, proofs: Sequence[CommitProof]
) -> bool | None:
    """Whether a transaction whose id nobody was told was committed in a session that was lost.

    None while that session serves the lost client, even if it is idle: it may not have read yet
    what the client sent. It is ended, so that a later call gets an answer. Its lock goes after its
    transaction, so that the events of the transaction can be seen then.
    """
    found = session.execute(_END_MARKED_SESSION, {"pid": lost.pid, "mark": lost.mark}).rows()[1]
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
