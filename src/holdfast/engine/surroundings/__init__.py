"""Surroundings: what stands around the work; each noun has its operations, handler and facade.

Import order: browser_sessions → access; the others do not import each other.

- `access`  access tokens of the server: granted, revoked, looked up
- `browser_sessions`  browsers that a one-time link has let in with what a token may do
- `hooks`  tasks that follow the ends of runs and tasks
- `imports`  trees of tasks and runs of an older store, taken over whole
- `leases`  named leases: locks that end by themselves, each with a token and a fence
- `removal`  runs and tasks that ended long ago: found page by page, and removed whole
- `schedules`  cron schedules, and the ticks that start their tasks and runs
- `workers`  live workers, what they are told, and the stops of their attempts
- `workflows`  versions of workflow definitions
"""
