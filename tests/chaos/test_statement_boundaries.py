"""A process killed with -9 at every statement of every transaction leaves all of it or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model.effect import EffectRecord
from holdfast.model.result import TransitionResult
from holdfast.store.sql_text.queries import load
from tests.chaos.explorer import prepared
from tests.chaos.plans import (
    access,
    budgets,
    child_runs,
    durable,
    hooks,
    imports,
    lines,
    loops,
    new_work,
    presence,
    removal,
    schedules,
    task_plans,
    user_requests,
    verdicts,
    worker_reports,
    workflow_files,
)
from tests.chaos.plans.registry import PLANS, every_kind

PLANNED_BY = (
    access,
    budgets,
    child_runs,
    durable,
    workflow_files,
    hooks,
    imports,
    lines,
    loops,
    new_work,
    user_requests,
    task_plans,
    presence,
    removal,
    schedules,
    verdicts,
    worker_reports,
)


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_group_killed_at_any_statement_is_written_whole_or_not_at_all(
    store_url: str, name: str
) -> None:
    with prepared(store_url, PLANS[name].plan) as explorer:
        assert {type(operation) for operation in explorer.operations} == PLANS[name].kinds
        uncrashed = explorer.kill_at_every_statement()
    for reply in uncrashed.replies:
        assert not isinstance(reply, Exception), reply
        assert not isinstance(reply, EffectRecord) or reply.answer.ok, reply
        assert not isinstance(reply, TransitionResult) or reply.ok, reply
        assert reply != [], "a claim found nothing"


def test_every_transition_of_the_catalogue_is_killed_in_some_group(tmp_path: Path) -> None:
    passed: set[str] = set()
    for name, planned in PLANS.items():
        with prepared(f"sqlite:///{tmp_path}/{name}.db", planned.plan) as explorer:
            passed.update(explorer.write().statements)
    transitions = {query.name: query.text for query in load("sqlite").values() if query.changes}
    missed = [name for name, text in transitions.items() if text not in passed]
    assert missed == []


def test_every_kind_of_operation_is_killed_in_some_group() -> None:
    planned = frozenset(kind for each in PLANS.values() for kind in each.kinds)
    assert planned == every_kind()
