"""One attempt of a task, from its assignment to its report.

Imports go down: `execution`, `context` and `retry_rules`, `durable_flows` and
`unawaited_calls`, `durable`, the rest.

- `execution`  an attempt from its assignment to its report, and the entry of that report
- `attempt_lease`  how long an attempt may act, and sending again while the store is away
- `attempt_span`  the spans of an attempt and of its task
- `context`  the context of an attempt, for its step and its worker
- `durable`  the durable operations: effects, sleeps, waits, questions, children, artifacts, leases
- `durable_flows`  the two ways to run a durable operation: in a thread and in a coroutine
- `effect_names`  the names under which effects, sleeps and waits are remembered
- `function_options`  what a function says of its own attempts: retries, and the longest silence
- `json_values`  results of effects and payloads of signals, as JSON and as types
- `retry_rules`  what an error that a function raises says about another attempt
- `step_context`  the context of a step, as a function and as a coroutine sees it
- `step_output`  what a step prints and logs, into the log of its attempt
- `unawaited_calls`  operations that a coroutine function has called and that nobody awaits
- `waits`  the waits for which a function is left, joined into one
"""
