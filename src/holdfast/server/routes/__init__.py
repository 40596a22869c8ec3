"""Routes: the calls over HTTP, one file for each noun.

Import order: admin → schedules; the other route files import none of their own room.

- `admin`  workers, agents, statistics, tokens and parked messages
- `artifacts`  the files that a task has kept
- `browsers`  the entry of a browser by a link, its session, and its end
- `bulk`  one command for all runs that fit some filters, and how far it has come
- `changes`  what runs and tasks have changed in a repository
- `claims`  the worker's protocol: claims, renewals and reports
- `events`  the history of the store, a run or a task, and the stream of new events
- `health`  liveness, readiness, metrics and the OpenAPI document
- `mcp`  the MCP tools of a token's role
- `runs`  starting, reading and steering runs
- `schedules`  schedules are listed, added, paused, resumed and removed
- `tasks`  creating, reading, editing and steering tasks, and their plans
- `workflows`  defining and reading workflows
"""
