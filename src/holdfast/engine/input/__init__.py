"""Input: what callers pass, checked and put into the columns of the store.

Import order: task_template → validation, trace_start → blueprint, host_tags.

- `blueprint`  steps of a workflow become tasks of a run, or of one item of a loop
- `host_tags`  tasks in a folder of one machine go to the workers of that machine
- `task_template`  tasks that are created again and again, with their shared fields checked once
- `trace_start`  the trace in which a run or task is started, and the span of its start
- `validation`  every check of what callers pass
"""
