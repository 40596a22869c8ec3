"""What a worker is given, as JSON: the task, its attempt, and the token of that."""

from __future__ import annotations

from holdfast.model.task import Assignment
from holdfast.service.plain import is_plain, view_plain
from holdfast.service.views import View, tell_time, view_task


def view_assignment(assignment: Assignment) -> View:
    """The task holds in its payload all that the step works on."""
    row = assignment.fields()
    task = view_plain(row) if is_plain(row) else view_task(assignment.task)
    for name, value in (("payload", assignment.given), ("workflow", assignment.workflow)):
        if value is not None:
            task[name] = value
    return {
        "task": task,
        "attempt": assignment.attempt,
        "token": assignment.token,
        "lease_expires_at": tell_time(assignment.expires_at),
    }
