"""The engine: the one writer of state, and what follows from each change.

Import order: engine → background, writer → work → tasks, claims, explain, surroundings →
runs, state → lines → input → read → core.

- `background`  the loops that time and hints drive
- `claims`  the choice of tasks for workers, and standing claims
- `core`  operations, the unit of work, caches, and the context that all parts share
- `engine`  the engine put together: store, writer, loops, facades and commit listeners
- `explain`  the answers to why a task or run does not go on, and the doctor
- `input`  what callers pass, checked and put into the columns of the store
- `lines`  lines of commits: opened by attempts, moved by their reports
- `read`  rows into records, pages, addresses and texts
- `runs`  the facade of runs
- `state`  what may happen to tasks and runs, and what follows from each change
- `surroundings`  schedules, hooks, workers, leases, tokens, removal, imports, workflow versions
- `tasks`  the facade of tasks
- `work`  the facade of workers: claims, renewals and reports
- `writer`  one transaction: its phases and locks, transactions of callers, and dry runs
"""
