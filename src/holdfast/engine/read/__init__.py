"""Read: rows of the store as records, pages, addresses and texts, for readers and for the writer.

Import order: addresses, worker_loads → task_state → step_texts, task_records → records;
schedule_records, spending → records; key_addresses → addresses, pages → filters.

- `addresses`  addresses of tasks in a run, followed, or described where they lead to no task
- `filters`  filters of lists, read into the parameters of queries
- `key_addresses`  keys in place of the ids of the runs and tasks that have them, and of their steps
- `missing_functions`  functions that tasks on hold `version` wait for
- `pages`  the queries for pages of runs and tasks, and the checks of their parameters
- `records`  rows of runs and events as records of the model, and values
- `report_refusals`  reports of attempts that changed nothing, and the reasons
- `schedule_records`  rows of schedules as records of the model
- `spending`  what runs have used of their budgets
- `step_texts`  texts of steps in workflow files, rendered from what is known of the run
- `task_records`  rows of tasks as records of the model
- `task_state`  the state of tasks that their own rows do not show, and the names of tasks
- `worker_loads`  the live workers, and what runs in the slots of each
"""
