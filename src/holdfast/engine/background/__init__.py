"""Background: the loops that time and hints drive.

Import order: recovery → run_outcomes.

- `run_outcomes`  futures of the ends of runs and tasks
- `recovery`  expired leases, deadlines, schedules, limits and keys
"""
