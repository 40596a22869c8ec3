"""Commands: changes that front ends ask for, the shapes of their requests, and their refusals.

Import order: previews → commands → request_errors; http_problems → token_scope; bulk_changes,
rehearsal.

- `bulk_changes`  one command for all runs that fit some filters, set by set
- `commands`  the changes to runs, tasks, schedules, workers and leases
- `previews`  the changes that a command would make, for `--dry-run`
- `http_problems`  errors as front ends show them, with an HTTP status and a stable code
- `rehearsal`  runs of a workflow file carried out by stubs
- `request_bodies`  the shapes of what callers send
- `request_errors`  refused transitions, and mistakes in the shape of a request
- `task_fields`  the JSON fields of new tasks and edits
- `token_scope`  the agents whose tasks a token may work on
"""
