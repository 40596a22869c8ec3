"""The worker elsewhere: the same executors, with a store that is reached through a server.

Imports go down: `allowlist`, `remote_store`, `poller`, `sender`, `client`, then the rest.

- `allowlist`  the commands and URLs that a server may have a worker run and call
- `lent_presets`  the presets that it lends, and up to which access
- `allowed_urls`  which URLs lie below an allowed one
- `remote_store`  the store port, spoken to a server
- `poller`  long polls that ask a server for work
- `end_watch`  long polls that tell at once which attempts are over
- `log_stream`  the log of a step, sent to the server while the step runs
- `sender`  operations sent to a server, and the attempts that a worker holds
- `client`  HTTP requests to a server, and errors made from its answers
- `line_format`  the JSON form of lines of commits, checked field by field
- `assignment_format`  the JSON form of an assignment, checked field by field
"""
