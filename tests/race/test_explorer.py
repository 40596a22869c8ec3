"""The explorer can fail: without its guard, a race is lost, and seen to be."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.store.database import SqlDirectories
from holdfast.store.sql_text.queries import DIRECTORY
from tests.race import scenarios
from tests.race.explorer import NotSerialisable, Scenario, staged

EXPIRED = "AND lease_expires_at <= (SELECT holdfast_now())"
HELD = "AND lease_expires_at > (SELECT holdfast_now())"


def without(guard: str, query: str, folder: Path) -> SqlDirectories:
    """Copy the SQL and take one guard out of one query."""
    return changed(query, guard, "", folder)


def changed(query: str, guard: str, other: str, folder: Path) -> SqlDirectories:
    """Copy the SQL and put something else in the place of one guard of one query."""
    shutil.copytree(DIRECTORY, folder)
    for path in folder.glob("*.sql"):
        parts = re.split(r"(?m)^(?=-- name: )", path.read_text())
        for place, part in enumerate(parts):
            if part.startswith(f"-- name: {query}\n"):
                assert part.count(guard) == 1, f"{query} has not one {guard!r}"
                parts[place] = part.replace(guard, other)
                path.write_text("".join(parts))
                return SqlDirectories(queries=folder)
    raise LookupError(query)


@pytest.mark.parametrize(
    ("query", "guard", "scenario"),
    [
        ("complete_tasks", "AND status = 'running'", scenarios.complete_against_cancel),
        ("complete_tasks", "AND attempt = r.fence", scenarios.complete_by_a_stale_attempt),
        ("lose_tasks", EXPIRED, scenarios.renewal_in_time_against_recovery),
        ("renew_leases", HELD, scenarios.renewal_too_late_against_recovery),
        ("claim_tasks", "AND run_holds = 0", scenarios.claim_against_pause_of_the_run),
    ],
)
def test_a_race_is_lost_without_its_guard(
    store_url: str, tmp_path: Path, query: str, guard: str, scenario: Scenario
) -> None:
    files = without(guard, query, tmp_path / "sql")
    with staged(store_url, files) as stage, pytest.raises((NotSerialisable, StoreError)):
        stage.explore(scenario)


@pytest.mark.parametrize(
    ("query", "guard", "scenario"),
    [
        ("lock_runs", "{lock}", scenarios.siblings_in_a_run),
        ("lock_tasks", "{lock}", scenarios.siblings_without_a_run),
        ("lock_tasks", "{lock}", scenarios.a_reset_against_a_claim_of_the_next_step),
        ("lock_tasks", "{lock}", scenarios.a_new_need_far_down_a_chain_that_is_reopened),
        ("lock_needed", "{share}", scenarios.a_new_need_that_completes),
        ("lock_needs", "{lock}", scenarios.two_needs_that_close_a_circle),
    ],
)
def test_a_race_of_writers_side_by_side_is_lost_without_its_lock(
    postgres_store_url: str, tmp_path: Path, query: str, guard: str, scenario: Scenario
) -> None:
    files = without(guard, query, tmp_path / "sql")
    with staged(postgres_store_url, files) as stage, pytest.raises(NotSerialisable):
        stage.explore(scenario)
