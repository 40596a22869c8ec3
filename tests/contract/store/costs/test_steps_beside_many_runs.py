"""A step of one run costs the same however many others are alive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.store.postgresql.connection import Connection, ServerAddress
from holdfast.store.sql_text import queries
from tests.contract.query_cost import rows_of
from tests.contract.store.costs.test_writer_query_plans import plan_of

WORKFLOW = "INSERT INTO holdfast_workflow VALUES ('many', '1', '', 1)"
# Of each run one step is running, one needs it, and one is ready.
ALIVE = [
    """
    INSERT INTO holdfast_run (id, workflow, workflow_version, body_digest, status, input,
      changed_by, changed_at, created_at)
    SELECT 'r_' || n, 'many', '1', '', 'running', '', '', 1, 1 FROM generate_series(%s, %s) AS n
    """,
    """
    INSERT INTO holdfast_task (id, run_id, step, status, blocked, attempt, worker,
      lease_expires_at, title, body_digest, max_attempts, max_lost, backoff, backoff_max, payload,
      changed_by, changed_at, created_at)
    SELECT 't_' || kind.step || n, 'r_' || n, kind.step, kind.status, kind.step = 'b',
      CASE kind.step WHEN 'a' THEN 1 ELSE 0 END, CASE kind.step WHEN 'a' THEN 'w' END,
      CASE kind.step WHEN 'a' THEN 9000000000000000 END, '', '', 3, 5, 0, 0, '', '', 1, 1
    FROM generate_series(%s, %s) AS n,
      (VALUES ('a', 'running'), ('b', 'queued'), ('c', 'queued')) AS kind (step, status)
    """,
    """
    INSERT INTO holdfast_need (task_id, need_id, since)
    SELECT 't_b' || n, 't_a' || n, 1 FROM generate_series(%s, %s) AS n
    """,
]
RUN, TASK = {"ids": "'[\"r_1\"]'"}, {"ids": "'[\"t_a1\"]'"}
CLAIM = {"agent": "'default'", "line": "'[]'", "peeked": "false", "worker": "'w'", "lease": "9"}
CLAIM |= {"bare": "false"}
STEP: dict[str, dict[str, str]] = {
    "lock_runs": {"runs": "'[\"r_1\"]'", "tasks": "'[\"t_a1\"]'"},
    "complete_tasks": {"rows": """'[["t_a1", 1, "1", "", null, true, true]]'"""},
    "unblock_dependents": TASK,
    "wake_parents": TASK,
    "settle_groups": TASK,
    "plans_around": TASK,
    "loops_with_room": TASK,
    "needed_outputs": {"ids": "'[\"t_b1\"]'"},
    "settle_runs": RUN,
    "mark_failing": RUN,
    "copy_run_holds": RUN,
    "run_facts": RUN,
    "claim_tasks": {**CLAIM, "count": "1"},
}


@pytest.fixture
def writer(postgres_store_url: str) -> Iterator[Connection]:
    with ServerAddress(postgres_store_url).connect_writer(lock_timeout=1) as connection:
        connection.execute(WORKFLOW.encode())
        yield connection


def cost(writer: Connection) -> dict[str, int]:
    """How many rows each statement of a step goes through; none of them is kept."""
    known, found = queries.load("postgresql"), {}
    for name, asked in STEP.items():
        writer.execute("BEGIN")
        found[name] = rows_of(plan_of(writer, known[name], asked, followed=True))
        writer.execute("ROLLBACK")
    return found


def test_a_step_goes_through_the_same_rows_beside_a_thousand_runs(writer: Connection) -> None:
    for statement in ALIVE:
        writer.execute(statement.encode(), (1, 10))
    beside_few = cost(writer)
    for statement in ALIVE:
        writer.execute(statement.encode(), (11, 1000))
    assert cost(writer) == beside_few
    assert beside_few["complete_tasks"] > 0
    assert beside_few["claim_tasks"] > 0
