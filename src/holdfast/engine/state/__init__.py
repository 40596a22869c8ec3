"""State: what may happen to tasks and runs, and what follows from each change.

Import order: task_control, advance → loops, needs → child_runs → creation → plans → reopen → slots.

- `advance`  the consequences of every change, worked out from the state alone
- `child_run_refusals`  called runs that have ended: they go on only through their callers
- `child_runs`  steps that call a workflow: the called run is started, awaited and ended
- `control_refusals`  the reasons why a task does not move as a person or program asked
- `creation`  new tasks and runs, each once for its key
- `deletion`  tasks are deleted, or it is said what keeps them in the store
- `direct_start`  the change of a task from blocked to running in one step
- `durable`  operations of running functions: effects, questions, waits, signals and child tasks
- `effects`  the part of the worker's protocol that records and reads effects
- `expected_version`  commands that are meant for one version of a run or task
- `idempotency_keys`  the task or run that has each key, and the arguments that it was made with
- `loops`  tasks whose needs are done: conditions, lists and calls are evaluated, items started
- `need_cycles`  needs by which tasks would wait for each other
- `needs`  needs between existing tasks: added and removed by hand
- `plans`  planning: tasks become plans whose children run as a chain or as a graph
- `reopen`  retry and re-open: tasks, runs and groups come back from their ends
- `report_outcomes`  the outcome of each report of an attempt, written under its fence
- `reports`  reports of attempts as operations, made and checked before they are submitted
- `run_control`  operations of people and programs on one run
- `slots`  concurrency keys: the counters of their slots, and the tasks and runs that wait for one
- `superseded_needs`  needs on superseded tasks move to the group that replaced them
- `task_control`  operations of people and programs on one task
- `usage_limits`  usage limits of agents, and budgets of runs and attempts
- `verdicts`  verdicts of verifiers, outputs checked against their schemas, and failures with a plan
"""
