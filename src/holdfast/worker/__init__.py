"""Workers: tasks are claimed under leases, and executed here or beside a remote server.

Imports go down: `pool` | `remote`, `steps`, `workspaces`, `attempt_server`, `attempt`, `secrets`,
then the rest.

- `remote`  the worker elsewhere, which reaches its store through a server
- `pool`  the worker itself: claims, threads, heartbeat, presence, shutdown
- `steps`  steps of workflow files: commands and HTTP calls
- `workspaces`  the git worktrees in which attempts work, and merges of their commits
- `attempt_server`  the HTTP address at which the command of one attempt reaches its store
- `attempt`  one attempt of a task: its context, its durable operations, its report
- `secrets`  secrets of steps, and their redaction from everything that is written down
- `git`  plain operations on repositories, which run no program of theirs
- `files`  what a worker keeps in files: logs, artifacts, records of processes
- `store_port`  the port through which a worker reaches its store
- `problem`  RFC 9457 replies to refused calls
"""
