"""Administration of a store: access, audit, backups, moves, cleanup, health, metrics and the bus.

Import order: tokens → browser_links; backup, store_move → exclusive_access;
store_repair → health; the others alone.

- `audit`  the audit log of calls that change something
- `backup`  copies of an SQLite store, and a store replaced by one of them
- `browser_links`  links that let one browser in, and the session that follows
- `bus`  consumer groups, lag, messages and parked messages, and the duties on the buses
- `cleanup`  old runs, tasks and logs, and the files of removed tasks
- `exclusive_access`  refusals while a server, a worker or a lease still uses a store
- `health`  the doctor: invariants, warnings and versions
- `metrics`  counts of events, waits for a claim and the lag of the bus
- `store_move`  a copy of the whole store into another database
- `store_repair`  the safe repairs of `doctor --fix`
- `tokens`  tokens for the server of a store
- `trust`  homes, settings and stores that a user accepts
"""
