"""Explanations: why a task or run does not go on, and the doctor.

Import order: why_run → why_task → why_status, why_workers → why_missing_value → explanation,
why_slot, doctor.

- `doctor`  checks of the live store: every invariant as a query that must return nothing
- `explanation`  the explanation of a task: the clauses of its claim, and who takes it
- `why_missing_value`  the retry that gives a task the value that its texts lacked
- `why_run`  the explanation of a run: its holds, and one line for each open task
- `why_slot`  full concurrency keys, and runs that wait for each other's keys in a circle
- `why_status`  the part of an explanation that a status or an open plan causes
- `why_task`  the explanation of a task: the clauses of its claim, one by one, in words
- `why_workers`  the live workers that serve a task, and what keeps them busy
"""
