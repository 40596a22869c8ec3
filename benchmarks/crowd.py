"""Much that goes on in a store beside what is measured: live runs, calls, a long loop, waiters."""

from __future__ import annotations

from tests.contract.raw_store import raw

LIVE, ITEMS = 100, 2_000

WORKFLOW = "INSERT INTO holdfast_workflow VALUES ('crowd', '1', '', 1)"
FULL = "INSERT INTO holdfast_slot (key, capacity, highest, used) VALUES ('crowd', 1, 1, 1)"
LOOP_RUN = """
INSERT INTO holdfast_run (id, workflow, workflow_version, body_digest, status, input, changed_by,
  changed_at, created_at)
VALUES ('r_loop', 'crowd', '1', '', 'running', '', '', 1, 1)
"""
LOOP = """
INSERT INTO holdfast_task (id, kind, run_id, step, total, made, status, agent, title, body_digest,
  max_attempts, max_lost, backoff, backoff_max, payload, changed_by, changed_at, created_at)
VALUES ('t_loop', 'group', 'r_loop', 'build', 1000000, ? + 0, 'queued', 'crowd', '', '', 3, 5, 0, 0,
  '', '', 1, 1)
"""
# Each of them has called another; a third kind waits for a place under a key.
RUNS = """
INSERT INTO holdfast_run (id, parent_id, parent_epoch, root_id, depth, holds, concurrency_key,
  workflow, workflow_version, body_digest, status, input, changed_by, changed_at, created_at)
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0),
kind (name, depth, holds) AS (VALUES ('live', 0, 0), ('called', 1, 0), ('waiting', 0, 32))
SELECT 'r_' || name || n, CASE WHEN depth = 1 THEN 't_call' || n END,
  CASE WHEN depth = 1 THEN 1 END, CASE WHEN depth = 1 THEN 'r_live' || n END, depth, holds,
  CASE WHEN holds = 32 THEN 'crowd' END, 'crowd', '1', '', 'running', '', '', 1, 1
FROM s CROSS JOIN kind
"""
TASKS = """
INSERT INTO holdfast_task (id, kind, run_id, step, status, blocked, due, parked, scheduled_for,
  waits_for, calls, concurrency_key, attempt, worker, lease_expires_at, run_holds, agent, title,
  body_digest, max_attempts, max_lost, backoff, backoff_max, payload, changed_by, changed_at,
  created_at)
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0),
kind (name, run) AS (VALUES ('running', 'live'), ('blocked', 'live'), ('ready', 'live'),
  ('parked', 'live'), ('later', 'live'), ('call', 'live'), ('inner', 'called'), ('held', 'waiting'),
  ('parent', 'live'))
SELECT 't_' || name || n, CASE name WHEN 'call' THEN 'group' ELSE 'work' END, 'r_' || run || n,
  name, CASE name WHEN 'running' THEN 'running' ELSE 'queued' END, name = 'blocked',
  name NOT IN ('later', 'parent'), name = 'parked',
  CASE name WHEN 'later' THEN 9000000000000000 END,
  CASE name WHEN 'call' THEN 'r_called' || n WHEN 'parent' THEN 'children' END,
  CASE name WHEN 'call' THEN 'crowd' END, CASE name WHEN 'parked' THEN 'crowd' END,
  CASE name WHEN 'running' THEN 1 ELSE 0 END, CASE name WHEN 'running' THEN 'w' END,
  CASE name WHEN 'running' THEN 9000000000000000 END, CASE name WHEN 'held' THEN 32 ELSE 0 END,
  'crowd', '', '', 3, 5, 0, 0, '', '', 1, 1
FROM s CROSS JOIN kind
"""
NEEDS = """
INSERT INTO holdfast_need (task_id, need_id, since)
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0)
SELECT 't_blocked' || n, 't_running' || n, 1 FROM s
"""
SIGNALS = """
INSERT INTO holdfast_signal (id, target, name, payload, sent_by, sent_at)
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0)
SELECT 'crowd' || n, 'r_live' || n, 'go', '', '', 1 FROM s
"""
# Of ten items nine have ended, one is under way or waits, and each is a group with one step.
ITEM = """
INSERT INTO holdfast_task (id, kind, run_id, parent_id, step, item, position, status, finished_at,
  agent, title, body_digest, max_attempts, max_lost, backoff, backoff_max, payload, changed_by,
  changed_at, created_at)
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0),
kind (name, kind) AS (VALUES ('item', 'group'), ('step', 'work'))
SELECT 't_' || name || n, kind, 'r_loop',
  CASE name WHEN 'item' THEN 't_loop' ELSE 't_item' || n END, name, n, n,
  CASE WHEN n % 10 > 0 THEN 'done' WHEN n % 20 > 0 THEN 'queued' ELSE 'idle' END,
  CASE WHEN n % 10 > 0 THEN 1 END, 'crowd', '', '', 3, 5, 0, 0, '', '', 1, 1
FROM s CROSS JOIN kind ORDER BY name
"""
EVENTS = """
INSERT INTO holdfast_event (entity, run_id, version, type, to_status, attempt, generation, actor,
  at)
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0)
SELECT 't_step' || n, 'r_loop', 1, 'task.created', 'queued', 0, 1, 'user', 1 FROM s
"""


def fill(url: str, times: int) -> None:
    """Put so many times a hundred live runs and two thousand items of one loop into a store."""
    with raw(url) as run:
        for statement in (WORKFLOW, FULL, LOOP_RUN):
            run(statement)
        run(LOOP, ITEMS * times)
        for statement in (RUNS, TASKS, NEEDS, SIGNALS):
            run(statement, LIVE * times)
        for statement in (ITEM, EVENTS):
            run(statement, ITEMS * times)
