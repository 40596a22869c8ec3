"""The worker's protocol for front ends: claims, renewals, reports, and workers that are remote.

Import order: attempt_calls, long_polls, the two about remote workers → protocol → artifacts,
attempt_files; changes → artifacts.

- `artifacts`  files that attempts keep for others
- `attempt_calls`  calls of the protocol by a command whose worker opens the store
- `attempt_files`  logs of attempts
- `changes`  what attempts and runs have changed in a repository
- `end_watches`  calls of workers elsewhere that wait for the end of an attempt
- `long_polls`  requests of workers that wait for work
- `protocol`  claims, renewals and reports of attempts, as JSON
- `remote_presence`  remote workers, live while they call the server
- `remote_protocol`  the protocol carried out by a server instead of the store itself
"""
