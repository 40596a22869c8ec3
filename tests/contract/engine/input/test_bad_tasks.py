"""Bad input about tasks gets a typed error that names its field, and leaves no row behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask, Renewal
from tests.contract.engine.input.bad_values import (
    BAD_IDS,
    BAD_MOMENTS,
    BAD_NAMES,
    BAD_RANKS,
    FIELDS,
    NOT_LISTS,
    NOT_TEXT,
    Refuse,
)
from tests.contract.task_states import CHAIN, MISSING_RUN, MISSING_TASK, NOT_GENUINE


def test_a_malformed_id_is_refused_by_every_operation_on_a_task(
    engine: Engine, refuse: Refuse
) -> None:
    tasks, work = engine.tasks, engine.work
    calls: list[Callable[[Any], object]] = [
        tasks.get,
        tasks.blocked_by,
        tasks.events,
        tasks.attempts,
        tasks.enqueue,
        tasks.run_now,
        tasks.cancel,
        tasks.reset,
        tasks.retry,
        tasks.reopen,
        tasks.delete,
        tasks.hold,
        tasks.unhold,
        tasks.unblock,
        engine.why,
        lambda bad: tasks.block(bad, [MISSING_TASK]),
        lambda bad: tasks.edit(bad, {"title": "x"}),
        lambda bad: work.claim_by_id(bad, "worker"),
        lambda bad: work.complete(bad, NOT_GENUINE),
        lambda bad: work.fail(bad, NOT_GENUINE, "x"),
        lambda bad: work.release(bad, NOT_GENUINE),
        lambda bad: work.guard(bad, NOT_GENUINE),
        lambda bad: work.renew([Renewal(task_id=bad, token=NOT_GENUINE)]),
    ]
    for call in calls:
        for bad in (*BAD_IDS, *NOT_TEXT):
            refuse("task_id", call, bad)


@pytest.mark.parametrize("field", FIELDS)
def test_a_new_task_is_refused_for_its_bad_field(
    engine: Engine, refuse: Refuse, field: str
) -> None:
    for bad in FIELDS[field]:
        given: dict[str, Any] = {"title": "bad", field: bad}
        task = NewTask(**given)
        refuse(field, engine.tasks.create, task)
        batch = [NewTask(title="good"), task]
        refuse(field, engine.tasks.create_many, batch)


def test_objects_that_are_no_tasks_or_runs_are_refused(engine: Engine, refuse: Refuse) -> None:
    bad: Any
    for bad in (None, 5, "task", {"title": "task"}, NewRun(workflow=CHAIN)):
        refuse("task", engine.tasks.create, bad)
        refuse("task", engine.tasks.create_many, [bad])
        if not isinstance(bad, NewRun):
            refuse("run", engine.runs.start, bad)
        refuse("workflow", engine.runs.start, NewRun(workflow=bad))
        refuse("renewals", engine.work.renew, [bad])
    for bad in NOT_LISTS:
        refuse("tasks", engine.tasks.create_many, bad)
        refuse("renewals", engine.work.renew, bad)
    many = [NewTask(title="x")] * 10_001
    refuse("tasks", engine.tasks.create_many, many)


def test_an_actor_is_a_name(engine: Engine, refuse: Refuse) -> None:
    for bad in (*BAD_NAMES, *NOT_TEXT, "worker:busy"):
        actor: Any = bad
        refuse("actor", engine.tasks.create, NewTask(title="x"), actor=actor)
        refuse("actor", engine.runs.start, NewRun(workflow=CHAIN), actor=actor)
        refuse("actor", engine.tasks.cancel, MISSING_TASK, actor=actor)
        refuse("actor", engine.runs.cancel, MISSING_RUN, actor=actor)


def test_a_hold_and_its_time_are_checked(engine: Engine, refuse: Refuse) -> None:
    bad: Any
    for bad in ("", "PAUSED", "sleeping", *NOT_TEXT):
        refuse("hold", engine.tasks.hold, MISSING_TASK, bad)
        refuse("hold", engine.tasks.unhold, MISSING_TASK, bad)
        refuse("hold", engine.runs.hold, MISSING_RUN, bad)
    for bad in ("slot", "failing"):
        refuse("hold", engine.runs.hold, MISSING_RUN, bad)
        refuse("hold", engine.runs.unhold, MISSING_RUN, bad)
    for bad in BAD_MOMENTS:
        refuse("until", engine.tasks.hold, MISSING_TASK, "limit", until=bad)
    refuse("until", engine.tasks.hold, MISSING_TASK, "paused", until=5)


def test_needs_to_add_or_remove_are_ids(engine: Engine, refuse: Refuse) -> None:
    bad: Any
    for bad in (*NOT_LISTS, *[[each] for each in (*BAD_IDS, *NOT_TEXT)]):
        refuse("needs", engine.tasks.block, MISSING_TASK, bad)
        if bad is not None:
            refuse("needs", engine.tasks.unblock, MISSING_TASK, bad)


def test_an_edit_is_refused_for_its_bad_field(engine: Engine, refuse: Refuse) -> None:
    cases: dict[str, tuple[object, ...]] = {
        "title": FIELDS["title"],
        "agent": FIELDS["agent"],
        "payload": FIELDS["payload"],
        "priority": BAD_RANKS,
        "position": BAD_RANKS,
        "tags": FIELDS["tags"],
        "max_attempts": (0, -1, 1_000_001, 2**31, 1.0, "3", True, None),
        "max_lost": (0, -1, 1_000_001, 2**31, 1.0, "3", True, None),
        "timeout": (*FIELDS["timeout"], None),
        "scheduled_for": BAD_MOMENTS,
        "status": ("done",),
        "nonsense": (1,),
    }
    for field, values in cases.items():
        for bad in values:
            changes = {field: bad}
            refuse(field, engine.tasks.edit, MISSING_TASK, changes)
    wrong: Any
    for wrong in (None, 5, "title", [("title", "x")], {1: "x"}, {None: 1}):
        refuse("changes", engine.tasks.edit, MISSING_TASK, wrong)
    for wrong in (0, -1, 1.0, "1", True):
        refuse(
            "expected_version",
            engine.tasks.edit,
            MISSING_TASK,
            {"title": "x"},
            expected_version=wrong,
        )


def test_the_agents_and_tags_given_to_why_are_checked(engine: Engine, refuse: Refuse) -> None:
    bad: Any
    for bad in (*NOT_LISTS[1:], [], [5], ["two words"]):
        refuse("agents", engine.why, MISSING_TASK, agents=bad)
        if bad != []:
            refuse("tags", engine.why, MISSING_TASK, tags=bad)


def test_a_batch_too_big_for_one_commit_is_refused(engine: Engine, refuse: Refuse) -> None:
    many = [NewTask(title="x", payload="x" * 1_000_000)] * 70
    refuse("tasks", engine.tasks.create_many, many)
