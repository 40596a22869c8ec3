"""What is asked again and again costs the same however much there is that it does not tell of."""

from __future__ import annotations

from tests.contract.query_cost import cost_of
from tests.contract.raw_store import raw

RUNNING = """
INSERT INTO holdfast_task (id, status, attempt, worker, lease_expires_at, title, body_digest,
  max_attempts, max_lost, backoff, backoff_max, payload, changed_by, changed_at, created_at)
WITH RECURSIVE s (n) AS (SELECT ? + 0 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0)
SELECT 't_' || n, 'running', 1, 'w', 9000000000000000 + n, '', '', 3, 5, 0, 0, '', '', 1, 1 FROM s
"""
NEEDS = """
INSERT INTO holdfast_need (task_id, need_id, since)
WITH RECURSIVE s (n) AS (SELECT ? + 1 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0)
SELECT 't_' || n, 't_' || (n - 1), 1 FROM s
"""


def test_the_search_for_expired_leases_reads_no_lease_that_lasts(store_url: str) -> None:
    assert_same_beside_more(store_url, "expired_tasks", count=9)


def test_the_search_for_the_needs_of_one_task_reads_no_needs_of_others(
    sqlite_store_url: str,
) -> None:
    assert_same_beside_more(sqlite_store_url, "needs_behind", ids='["t_3"]')


def assert_same_beside_more(url: str, query: str, **asked: object) -> None:
    with raw(url) as run:
        for statement in (RUNNING, NEEDS):
            run(statement, 1, 10)
        beside_few = cost_of(url, query, **asked)
        for statement in (RUNNING, NEEDS):
            run(statement, 11, 2_000)
    assert cost_of(url, query, **asked) <= beside_few
