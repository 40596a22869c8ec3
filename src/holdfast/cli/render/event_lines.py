"""Events as lines: with all their data, or in short for a person who watches a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.cli.app.terminal import escape, paint
from holdfast.cli.render.formats import describe_error_line, format_state, one_line

if TYPE_CHECKING:
    from holdfast.service.service import Service

View = dict[str, Any]
UNSHOWN_EVENTS = {"task.created", "task.queued"}
# Holds in the data of an event are numbers, and its times are microseconds.
_HELD = {"holds": "held", "run_holds": "its run held"}
_TIMES = ("scheduled_for", "deadline")


class EventNames:
    """The names of the runs and tasks of events, each read once; a removed one has the name ''."""

    def __init__(self, service: Service, events: Sequence[View] = ()) -> None:
        self._find_names = service.queries.name_each
        self._known: dict[str, str] = (
            self._find_names(map(subject_of_event, events)) if events else {}
        )

    def __getitem__(self, identifier: str) -> str:
        if identifier not in self._known:
            self._known[identifier] = self._find_names([identifier]).get(identifier, "")
        return self._known[identifier]


def subject_of_event(event: View) -> str:
    """The id of the task or run that an event belongs to."""
    return str(event.get("task_id") or event.get("run_id", ""))


def describe_event(event: View, names: EventNames) -> str:
    """An event in one line, with all its data."""
    whose = subject_of_event(event)
    moved = event.get("from") != event.get("to")
    attempt = f"attempt {event['attempt']}" if event.get("attempt") else ""
    parts = [
        paint(event["at"].replace("T", " ")[:19], "dim"),
        whose,
        one_line(names[whose], 60),
        event["type"],
        f"→ {format_state(str(event.get('to')))}" if moved else "",
        attempt,
        paint(f"by {escape(event['actor'])}", "dim"),
        _describe_data(event),
    ]
    return "  ".join(part for part in parts if part)


def _describe_data(event: View) -> str:
    from holdfast.model.status import Hold
    from holdfast.service.queries.views import format_time

    data = event.get("data", {})
    if data.get("error") is not None:
        return describe_error_line(data["error"])
    held = {name: Hold(data.get(name) or 0) for name in _HELD}
    times = {name: format_time(data.get(name)) for name in _TIMES}
    plain = {name: value for name, value in data.items() if name not in {*_HELD, "digest"}}
    told = {name: value for name, value in (plain | times).items() if value}
    parts = [f"{_HELD[name]}: {holds}" for name, holds in held.items() if holds]
    return paint("  ".join([*parts, *([one_line(told)] if told else [])]), "dim")


def describe_watched_event(event: View, name: str, *, tried: bool) -> str | None:
    """An event in one line for a person who watches a run; None if it changes no state.

    The number of the attempt is shown only if an earlier attempt of the task failed or was lost
    (`tried`): a function that sleeps has a new attempt each time it wakes.
    """
    if event.get("from") == event.get("to") or event["type"] in UNSHOWN_EVENTS:
        return None
    said = event["type"].partition(".")[2]
    attempt = f"attempt {event['attempt']}" if tried and event.get("attempt") else ""
    data = event.get("data", {})
    verdict = data.get("verdict")
    feedback = verdict.get("feedback") if isinstance(verdict, dict) else None
    parts = [
        paint(event["at"][11:19], "dim"),
        escape(name),
        format_state(said),
        attempt,
        describe_error_line(data["error"]) if data.get("error") is not None else "",
        one_line(feedback) if feedback else "",
    ]
    return "  ".join(part for part in parts if part)
