"""Bad input about runs, claims, reports and leases is refused by name, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.run import NewRun
from holdfast.model.task import Renewal
from tests.contract.engine.input.bad_values import (
    BAD_COUNTS,
    BAD_KEYS,
    BAD_LEASES,
    BAD_MOMENTS,
    BAD_NAMES,
    BAD_RANKS,
    BAD_RUN_IDS,
    BAD_TEXT,
    NOT_JSON,
    NOT_LISTS,
    NOT_TEXT,
    TOO_LARGE,
    Refuse,
)
from tests.contract.task_states import CHAIN, MISSING_RUN, MISSING_TASK, NOT_GENUINE, create, take


def test_a_malformed_id_is_refused_by_every_operation_on_a_run(
    engine: Engine, refuse: Refuse
) -> None:
    runs = engine.runs
    calls: list[Callable[[Any], object]] = [
        runs.get,
        runs.tasks,
        runs.events,
        runs.advance,
        runs.cancel,
        runs.pause,
        runs.resume,
        runs.retry,
        lambda bad: runs.retry(bad, step="plan"),
        lambda bad: runs.hold(bad, "budget"),
        lambda bad: runs.unhold(bad, "budget"),
    ]
    for call in calls:
        for bad in (*BAD_RUN_IDS, *NOT_TEXT):
            refuse("run_id", call, bad)


def test_a_new_run_is_refused_for_its_bad_field(engine: Engine, refuse: Refuse) -> None:
    cases: dict[str, tuple[object, ...]] = {
        "input": (*NOT_JSON, TOO_LARGE),
        "key": (*BAD_KEYS, *NOT_TEXT[1:]),
        "priority": BAD_RANKS,
    }
    for field, values in cases.items():
        for bad in values:
            given: dict[str, Any] = {"workflow": CHAIN, field: bad}
            refuse(field, engine.runs.start, NewRun(**given))


def test_a_claim_is_refused_for_its_bad_field(engine: Engine, refuse: Refuse) -> None:
    cases: dict[str, tuple[object, ...]] = {
        "worker": (*BAD_NAMES, *NOT_TEXT),
        "agents": (*NOT_LISTS, [], ["ok", ""], *[[bad] for bad in NOT_TEXT]),
        "tags": (*NOT_LISTS, ["two words"], *[[bad] for bad in NOT_TEXT]),
        "count": BAD_COUNTS,
        "lease": BAD_LEASES,
    }
    for field, values in cases.items():
        for bad in values:
            given: dict[str, Any] = {"worker": "w", field: bad}
            refuse(field, engine.work.claim, **given)
            if field != "count":
                refuse(
                    field,
                    engine.work.claim_by_id,
                    MISSING_TASK,
                    **given,
                )


def test_a_report_is_refused_for_its_bad_field(engine: Engine, refuse: Refuse) -> None:
    work = engine.work
    bad: Any
    for bad in ("\x00", "\ud800", "x" * 10_001, *NOT_TEXT):
        refuse("token", work.complete, MISSING_TASK, bad)
        refuse("token", work.guard, MISSING_TASK, bad)
    for bad in (*NOT_JSON, TOO_LARGE):
        refuse("output", work.complete, MISSING_TASK, NOT_GENUINE, bad)
        refuse("error", work.fail, MISSING_TASK, NOT_GENUINE, bad)
        refuse(
            "usage",
            work.complete,
            MISSING_TASK,
            NOT_GENUINE,
            usage=bad,
        )
        renewal = Renewal(task_id=MISSING_TASK, token=NOT_GENUINE, progress=bad)
        refuse("progress", work.renew, [renewal])
    for bad in BAD_MOMENTS:
        refuse("until", work.release, MISSING_TASK, NOT_GENUINE, until=bad)
    for bad in BAD_LEASES:
        refuse("lease", work.renew, [], lease=bad)
    for bad in (None, "no", 1, []):
        refuse(
            "retryable",
            work.fail,
            MISSING_TASK,
            NOT_GENUINE,
            "x",
            retryable=bad,
        )


def test_a_renewal_among_others_is_refused_alone_for_its_bad_field(engine: Engine) -> None:
    held = [take(engine, create(engine)) for _ in range(2)]
    good, other = (Renewal(task_id=each.task_id, token=each.token) for each in held)
    bad = [replace(other, progress=NOT_JSON[0]), replace(other, usage={"usd": -1})]
    first, kept, second = engine.work.renew_each([bad[0], good, bad[1]])
    assert kept.result().ok
    errors = [first.exception(), second.exception()]
    assert [getattr(each, "field", each) for each in errors] == ["progress", "usage.usd"]


def test_a_step_to_retry_from_is_a_name(engine: Engine, refuse: Refuse) -> None:
    bad: Any
    for bad in (*BAD_NAMES, *NOT_TEXT[1:]):
        refuse("step", engine.runs.retry, MISSING_RUN, step=bad)


def test_a_named_lease_is_refused_for_its_bad_field(engine: Engine, refuse: Refuse) -> None:
    leases = engine.leases
    bad: Any
    for bad in (*BAD_KEYS, *NOT_TEXT):
        refuse("key", leases.acquire, bad, "ada", ttl=5)
        refuse("key", leases.renew, bad, NOT_GENUINE, ttl=5)
        refuse("key", leases.release, bad, NOT_GENUINE)
    for bad in (*BAD_NAMES, *NOT_TEXT):
        refuse("owner", leases.acquire, "key", bad, ttl=5)
    for bad in BAD_LEASES:
        refuse("ttl", leases.acquire, "key", "ada", ttl=bad)
        refuse("ttl", leases.renew, "key", NOT_GENUINE, ttl=bad)
    for bad in (*BAD_TEXT, *NOT_TEXT):
        refuse("token", leases.release, "key", bad)
