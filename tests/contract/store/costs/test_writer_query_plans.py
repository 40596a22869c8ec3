"""What is asked all the time looks up what it names, also when it was planned in an empty store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.store.postgresql.connection import Connection, ServerAddress
from holdfast.store.postgresql.statement import number_parameters
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.queries import Query
from tests.contract.query_cost import rows_of
from tests.contract.store.costs.test_query_plans import HOT
from tests.contract.store.small_store import FILES, opened

GROWING = {f"holdfast_{name}" for name in ("effect", "event", "need", "run", "signal", "task")}
# Asked by people or now and then, and about all that is running, held or newest.
WALKING = {"latest_events", "lone_tasks_failed_since", "next_wake"}
WALKING |= {"outputs_of_runs", "runs_ended_since", "slot_holders", "tasks_for_people"}
WALKING |= {"steps_out_of_queue"}
WALKING |= {"usages_of_runs", "usages_of_tasks", "being_verified", "leased_tasks", "newest_number"}
WALKING |= {
    "count_conflicts",
    "number_since",
    "open_tasks_by_agent",
    "ready_tasks",
    "limited_tasks",
    "called_waits",
}
# Asked by people too, about all that runs in workers, is ready or limited, or was skipped.
WALKING |= {"attempts_of_workers", "ready_work", "limited_work", "steps_skipped_after_failure"}
# From key to key, and about all that waits for one, is in line for an agent or has not ended.
WALKING |= {"keys_with_room", "parked_keys", "count_running_runs"}
# From agent to agent, for a worker that serves every agent.
WALKING |= {"ready_agents"}
# Which of its failures is a run's first is asked once.
OFTEN = HOT.keys() - {"settle_runs"}
# With all that is done: what is asked often asks for a status, and has a better one.
WHOLE = {"holdfast_task_parent", "holdfast_task_run"}
# Asked by each process every few milliseconds while there is work, whoever looks or does not.
UNASKED = [
    "next_wake",
    "expired_tasks",
    "functions_wanted",
    "awaited_rows",
    "rows_there",
    "attempts_over",
    "due_schedules",
    "overdue_runs",
]
A_FEW_PAGES = 20
SAMPLES: dict[str, Any] = {"text": "x", "integer": 1, "boolean": True, "real": 0.5}


# One long loop: most of its items are open, each with a step; and as many tasks that wait.
CROWD = """
INSERT INTO holdfast_workflow VALUES ('many', '1', '', 1);
INSERT INTO holdfast_run (id, workflow, workflow_version, body_digest, status, input, changed_by,
  changed_at, created_at) VALUES ('r_1', 'many', '1', '', 'running', '', '', 1, 1);
INSERT INTO holdfast_task (id, kind, run_id, parent_id, step, item, status, waits_for, due,
  finished_at, title, body_digest, max_attempts, max_lost, backoff, backoff_max, payload,
  changed_by, changed_at, created_at)
SELECT made.*, '', '', 3, 5, 0, 0, '', '', 1, 1 FROM (
  SELECT 't_loop', 'group', 'r_1', NULL, 'build', NULL::int, 'queued', NULL, true, NULL::int
  UNION ALL
  SELECT 't_item' || n, 'group', 'r_1', 't_loop', 'build', n,
    CASE WHEN n < 500 THEN 'done' ELSE 'queued' END, NULL, true, CASE WHEN n < 500 THEN 1 END
  FROM generate_series(1, 3000) AS n
  UNION ALL
  SELECT 't_step' || n, 'work', 'r_1', 't_item' || n, 'implement', n,
    CASE WHEN n < 500 THEN 'done' ELSE 'queued' END, NULL, true, CASE WHEN n < 500 THEN 1 END
  FROM generate_series(1, 3000) AS n
  UNION ALL
  SELECT 't_wait' || n, 'work', NULL, NULL, NULL, NULL, 'queued', 'children', false, NULL
  FROM generate_series(1, 3000) AS n) AS made
"""


@pytest.fixture
def writer(postgres_store_url: str) -> Iterator[Connection]:
    with ServerAddress(postgres_store_url).connect_writer(lock_timeout=1) as connection:
        yield connection


@pytest.fixture
def view(postgres_store_url: str) -> Iterator[Connection]:
    with ServerAddress(postgres_store_url).connect_view() as connection:
        yield connection


def plan_of(
    connection: Connection, query: Query, given: Mapping[str, str] = {}, *, followed: bool = False
) -> dict[str, Any]:
    """The plan that a connection keeps for a query; one that is followed tells what it touched."""
    statement = number_parameters(query.text)
    known = "SELECT 1 FROM pg_prepared_statements WHERE name = %s"
    if not connection.execute(known, (query.name,)).fetchall():
        connection.execute(f"PREPARE {query.name} AS ".encode() + statement.text, prepare=False)
    told = ", ".join(given.get(name) or _literal(query, name) for name in statement.names)
    asked = f"{query.name}({told})" if told else query.name
    how = "ANALYZE, BUFFERS, TIMING off, FORMAT json" if followed else "FORMAT json"
    answer = connection.execute(f"EXPLAIN ({how}) EXECUTE {asked}".encode(), prepare=False)
    plan: dict[str, Any] = answer.fetchall()[0]["QUERY PLAN"][0]["Plan"]
    return plan


def _literal(query: Query, name: str) -> str:
    if name == "rows":
        return f"'{json.dumps([[SAMPLES[column.type] for column in query.columns]])}'"
    if name == "count":
        return "9"
    return "'[]'" if name in query.lists or name == "tags" else "NULL"


def walks(query: str, plan: dict[str, Any]) -> Iterator[str]:
    """The tables and indexes that a plan reads from one end to the other."""
    if plan.get("Relation Name") in GROWING and "Scan" in plan["Node Type"]:
        index = plan.get("Index Name", "all")
        past = query in OFTEN and index in WHOLE and "status" in plan.get("Filter", "")
        # Of what was asked, or of another row: what is the same for all finds all of a status.
        named = re.search(r"[$.]|SubPlan", plan.get("Index Cond", ""))
        if past or named is None:
            yield f"{index} of {plan['Relation Name']}"
    for each in plan.get("Plans", ()):
        yield from walks(query, each)


@pytest.mark.parametrize("crowd", ["", CROWD], ids=["empty", "crowded"])
def test_statements_of_the_writer_use_indexes_before_there_are_statistics(
    writer: Connection, crowd: str
) -> None:
    writer.execute(crowd.encode(), prepare=False)
    asked = {
        name: query
        for name, query in queries.load("postgresql").items()
        if not name.startswith("check_") and not name.endswith("savepoint") and name not in WALKING
    }
    found = {name: list(walks(name, plan_of(writer, query))) for name, query in asked.items()}
    assert {name: walked for name, walked in found.items() if walked} == {}


def test_statements_of_a_process_alone_cost_the_same_beside_a_long_loop(view: Connection) -> None:
    known = queries.load("postgresql")
    # What is asked often has such a plan in the end, and keeps it.
    view.execute("SET plan_cache_mode = force_generic_plan")
    first = {name: rows_of(plan_of(view, known[name], followed=True)) for name in UNASKED}
    view.execute(CROWD.encode(), prepare=False)
    later = {name: plan_of(view, known[name], followed=True) for name in UNASKED}
    assert {name: rows_of(plan) for name, plan in later.items()} == first
    assert max(plan["Shared Hit Blocks"] for plan in later.values()) < A_FEW_PAGES


def test_a_store_is_looked_at_through_such_a_connection(postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    asked = "-- name: scans\n-- purpose: whether tables are read whole\nSELECT current_setting"
    (tmp_path / "sql" / "scans.sql").write_text(f"{asked}('enable_seqscan') AS scans\n")
    with opened(postgres_url, files=replace(FILES, queries=tmp_path / "sql")) as database:
        assert database.view(lambda tx: tx.read("scans")) == [{"scans": "off"}]
