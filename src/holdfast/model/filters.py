"""Filters: which runs or tasks a list, a count or a change of many is about."""

from __future__ import annotations

from typing import TypedDict

from holdfast.model.labels import Labels
from holdfast.model.units import Moment


class SharedFilters(TypedDict, total=False):
    """What runs and tasks are both found by; every filter that is given has to fit.

    `since` and `until` are about when they were made: a moment, or a duration ago ("24h").
    `error` and `name` are texts to search for, in the error, and in the names that people give.
    """

    status: str | None
    workflow: str | None
    agent: str | None
    step: str | None
    key: str | None
    labels: Labels | None
    since: Moment | None
    until: Moment | None
    error: str | None
    name: str | None


class RunFilters(SharedFilters, total=False):
    """What runs are found by: `step` and `agent` are those of a task of the run.

    `held` is a reason for which the run is on hold, as `paused`.
    """

    held: str | None


class TaskFilters(SharedFilters, total=False):
    """What tasks are found by; a label may be that of their run."""

    run: str | None
    parent: str | None
