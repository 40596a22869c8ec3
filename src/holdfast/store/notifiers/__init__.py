"""Notifiers: one for each way in which processes learn of one another's commits.

Imports: sqlite → file_watch → inotify; sqlite → poll_pace; postgresql, sqlite → memory.

- `file_watch`  the port to a watch on a file, and the watch that only lets time pass
- `inotify`  the watch on a file by Linux's inotify
- `memory`  hints inside one process
- `poll_pace`  the pauses between two looks at a SQLite file
- `postgresql`  hints by LISTEN and NOTIFY
- `sqlite`  hints between the processes that share a SQLite file
"""
