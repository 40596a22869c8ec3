"""Queries: reads for front ends, as JSON.

Import order: summaries → standstills; summaries, history → queries → run_history → child_runs →
views → shapes.

- `activity`  what was done, waited for and paid by hour and by day, counted from the events
- `addresses`  the run or task that an id, a beginning of one, `@last` or `RUN:step` means
- `artifacts`  what is recorded of the files that a task has kept
- `child_runs`  runs that steps call: their callers, usage and holds
- `command_lines`  advice written as commands
- `explanations`  the reasons why a task or run does not go on, with commands that would help
- `history`  pages of all events of the store, and of the effects of a task
- `past_runs`  a run as it stood right after one event, folded from its events
- `plain_tasks`  views of tasks with no run, hold or wait, made straight from rows
- `queries`  pages and single runs, tasks and events
- `run_history`  pages of the events of a run that skip none
- `run_tree`  the tasks of a run as a tree, and the names of tasks
- `shapes`  descriptions of answers, from which views and schemas are made
- `standstills`  work that goes on only when somebody does something
- `summaries`  the report since a moment, and counts of open tasks and runs
- `views`  runs, tasks, events, attempts and schedules as JSON, and sums of usage
"""
