"""Group commit: the queue before the one writer of a process, which writes in groups.

Imports go down: queue → deferred_entries → entries.

- `deferred_entries`  operations that wait because another transaction has locked their rows
- `entries`  operations in the queue, and the futures of their replies
- `queue`  the queue, and the thread that writes what is in it
"""
