"""Execution buses: one for each place that can keep messages.

Imports: `redis` and `sql` import nothing of one another.

- `redis`  the execution bus on Redis Streams
- `sql`  the execution bus in the store
"""
