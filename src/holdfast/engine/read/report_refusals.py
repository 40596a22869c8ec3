"""Refusals of reports: a report changed nothing because it came again, late, or after a cancel."""

from __future__ import annotations

from holdfast.engine.core.operation import FORGED_FENCE, Complete, Fail, Release, Report
from holdfast.model.event import read_event_data, read_outcome
from holdfast.model.result import GIVEN_BACK, Refusal, TransitionResult
from holdfast.model.text import digest
from holdfast.store.database import Row


def answer_report(report: Report, record: Row) -> TransitionResult:
    status = record["status"]
    if status is None:
        return refuse(Refusal.NOT_FOUND, None)
    outcome, known = _read_ending(record)
    if outcome == "cancelled":
        return refuse(Refusal.ALREADY_TERMINAL, status, "the attempt was cancelled")
    if outcome in {"completed", "failed", "rejected"}:
        if _reported_outcome(report) == ("completed" if outcome == "rejected" else outcome, known):
            return TransitionResult(ok=True, repeated=True, status=status)
        invalid = isinstance(report, Complete) and known == digest_invalid_output(report)
        if invalid or outcome != "failed" or record["attempt"] == report.fence:
            error = read_event_data(record["data"])["error"] if invalid else ""
            reason = Refusal.INVALID_OUTPUT if invalid else Refusal.RESULT_CONFLICT
            return refuse(reason, status, error or f"the attempt has already {outcome}")
    if outcome == "released" and isinstance(report, Release):
        return TransitionResult(ok=True, repeated=True, status=status)
    return refuse(Refusal.STALE_TOKEN, status, _describe_late_report(report, record))


def digest_invalid_output(report: Complete) -> str:
    """Digest an invalid output, so that it is known again after it has failed its attempt."""
    return digest("invalid_output", report.output)


def answer_renewal(report: Report, record: Row) -> TransitionResult:
    status = record["status"]
    if status is None:
        return refuse(Refusal.NOT_FOUND, None)
    outcome, _ = _read_ending(record)
    if outcome is None and record["attempt"] == report.fence and status == "running":
        return refuse(Refusal.LEASE_EXPIRED, status, "the lease ran out before this renewal")
    if outcome == "cancelled":
        return refuse(Refusal.CANCELLED, status, "stop: the attempt was cancelled")
    if outcome in {"completed", "failed", "rejected"}:
        return refuse(Refusal.ALREADY_TERMINAL, status, f"the attempt has already {outcome}")
    return refuse(Refusal.STALE_TOKEN, status, _describe_late_report(report, record))


def answer_write(report: Report, record: Row) -> TransitionResult:
    """Whether a write of this attempt may still be kept; refused as its other reports are."""
    if _is_live(report.fence, record):
        return TransitionResult(ok=True, status=record["status"])
    return answer_renewal(report, record)


def answer_guard(report: Report, record: Row) -> TransitionResult:
    """Whether a side effect of this attempt may still happen."""
    status, fence = record["status"], report.fence
    if status is None:
        return refuse(Refusal.NOT_FOUND, None)
    if _is_live(fence, record):
        return TransitionResult(ok=True, status=status)
    if fence == FORGED_FENCE:
        return refuse(Refusal.STALE_TOKEN, status, _describe_late_report(report, record))
    reason, detail = _describe_lost_attempt(report, record)
    return refuse(reason, status, detail)


def _describe_lost_attempt(report: Report, record: Row) -> tuple[Refusal, str]:
    """Say what became of the task of an attempt that may not act any more; a cancel comes first."""
    status, attempt = record["status"], record["attempt"]
    outcome, _ = _read_ending(record)
    if "cancelled" in {status, outcome}:
        stopped = "task" if status == "cancelled" else "attempt"
        return Refusal.CANCELLED, f"stop: the {stopped} was cancelled"
    if outcome in {"completed", "failed", "rejected"}:
        return Refusal.ALREADY_TERMINAL, f"the attempt has already {outcome}"
    if attempt == report.fence:
        return Refusal.LEASE_EXPIRED, f"attempt {attempt} has lost its lease, or has given it back"
    reasons = {"done": Refusal.ALREADY_PASSED, "failed": Refusal.ALREADY_TERMINAL}
    now = f"the task is now {status}, at attempt {attempt}"
    return reasons.get(status, Refusal.ALREADY_CLAIMED), now


def refuse(
    reason: Refusal, status: str | None, detail: str = "", *, repeated: bool = False
) -> TransitionResult:
    if reason is Refusal.NOT_FOUND and not detail:
        detail = "there is no such run or task in this store"
    return TransitionResult(
        ok=False, reason=reason, status=status, detail=detail, repeated=repeated
    )


def _is_live(fence: int, record: Row) -> bool:
    held = record["status"] == "running" and record["attempt"] == fence
    return bool(held and record["lease_expires_at"] > record["now"])


def _read_ending(record: Row) -> tuple[str | None, str | None]:
    data = read_event_data(record["data"])
    return read_outcome(record["type"], data), data.get("digest")


def _reported_outcome(report: Report) -> tuple[str, str] | None:
    if isinstance(report, Complete):
        return ("completed", report.digest)
    if isinstance(report, Fail):
        return ("failed", report.digest)
    return None


def _describe_late_report(report: Report, record: Row) -> str:
    if report.fence == FORGED_FENCE:
        return "this is no token of this task; send the one that came with it when it was claimed"
    outcome, _ = _read_ending(record)
    if outcome == "released":
        return GIVEN_BACK
    reason = ": its lease ran out" if outcome == "lost" else ""
    now = _describe_task_now(report.fence, record)
    return f"attempt {report.fence} has ended{reason}; the task {now}"


def _describe_task_now(fence: int, record: Row) -> str:
    """Describe where the task of an attempt that has ended is now."""
    if record["attempt"] > fence:
        return f"is now at attempt {record['attempt']}"
    return "is queued again" if record["status"] == "queued" else f"is now {record['status']}"
