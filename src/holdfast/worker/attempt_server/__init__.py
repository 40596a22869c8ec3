"""The HTTP address at which the command of one attempt reaches its store through its worker.

Imports go down: `attempt_addresses`, `attempt_listener`, `attempt_requests`.

- `attempt_addresses`  one address and one token for each running command of a worker
- `attempt_listener`  a small HTTP server on loopback
- `attempt_requests`  the calls of one attempt: checked, redacted and forwarded
"""
