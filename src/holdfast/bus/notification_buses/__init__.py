"""Notification buses: one for each way between processes.

Imports: `memory`, `postgresql` and `redis` import nothing of one another.

- `memory`  notifications inside one process
- `postgresql`  notifications over the PostgreSQL that holds the store
- `redis`  notifications over Redis
"""
