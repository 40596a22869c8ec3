"""The attempts of a task, read off its events: who had it, when, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from holdfast.model.event import Event, read_outcome
from holdfast.model.task import Attempt


def read_attempts(events: Iterable[Event]) -> list[Attempt]:
    attempts: dict[int, Attempt] = {}
    for event in events:
        if event.task_id is None:
            continue
        if event.type == "task.running":
            attempts[event.attempt] = Attempt(
                task_id=event.task_id,
                number=event.attempt,
                owner=event.actor,
                claimed_at=event.at,
            )
        elif event.source == "running" and event.target != "running":
            attempts[event.attempt] = replace(
                attempts[event.attempt],
                ended_at=event.at,
                outcome=read_outcome(event.type, event.data),
                digest=event.data.get("digest"),
                error=event.data.get("error"),
                usage=event.data.get("usage"),
            )
    return list(attempts.values())


def with_stops(
    attempts: Iterable[Attempt], stops: Mapping[int, tuple[int, int, int]]
) -> list[Attempt]:
    """Attempts with what was stopped with them: when, how many processes, how many not."""
    return [
        _stopped(each, *stops[each.number]) if each.number in stops else each for each in attempts
    ]


def _stopped(attempt: Attempt, at: int, processes: int, left: int) -> Attempt:
    return replace(attempt, stopped_at=at, stopped=processes, left=left)
