"""The model: statuses, tasks, runs, graphs and events as pure values, with no I/O.

Imports: schedule → hook, run → event → task → workflow, trace, effect, frozen_record → rest.

- `advice` what a user may do next, as data, and texts that hold it
- `budget` the limits of what a run may cost, and the usage that attempts report
- `cron_ticks` cron expressions, their ticks in a time zone, and the rule for missed ticks
- `effect` the record of a named side effect, and the wake condition of a suspended task
- `event` the record of one transition, and the state that follows from events
- `filters` which runs or tasks a list, a count or a change of many is about
- `frozen_record` the base of records that people read, and a fast way to make one
- `hook` hooks, and the ends of runs and tasks that hooks follow
- `json_schema` the part of JSON Schema that inputs and outputs are checked against
- `labels` the names and values by which people find runs and tasks again
- `moment` microseconds of the store, and the datetimes that people use
- `placeholder` what stands in advice for a value that only the user knows, and its refusal
- `result` results of operations, and the reasons for a refusal
- `retry` the retry policy of a task
- `run` runs, and the JSON record of a whole run
- `schedule` schedules, as a caller asks for one and as the store knows it
- `status` statuses, holds, and the tables of allowed transitions
- `task` tasks, assignments, attempts and leases
- `text` checks of text, JSON and ids that callers pass
- `token` tokens of attempts, and access tokens of a server
- `trace` W3C trace and span ids
- `units` durations, moments and sizes as people write them
- `verdict` verdicts of verifiers, and feedback
- `worker` workers as the store knows them
- `workflow` the definition of a workflow: its graph, its steps and their templates
"""
