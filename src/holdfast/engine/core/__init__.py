"""Core: operations, the unit of work, caches, and the context that all parts share.

Import order: batch, context → unit_of_work, operation, sync_async → the other modules.

- `batch`  the operations of a group, carried out kind by kind
- `context`  the way to the writer, the way to read, and the ports that all parts share
- `effect_limits`  limits on effects and artifacts of an attempt and its run
- `event_loop_wakeups`  coroutines that wait for replies of one group wake their event loop once
- `operation`  every change that can be submitted to the writer, as a record
- `run_cache`  facts of runs that never change
- `shared_reads`  reads that one thread makes for all that ask at the same time
- `sync_async`  operations that are called to wait, or awaited
- `task_rows`  new tasks as the store inserts them
- `thread_wakeups`  threads whose replies have come, of which each wakes the next
- `unit_of_work`  one group under way, and the lists of what follows from it
- `workflow_cache`  graphs of workflow versions, which never change
"""
