"""The worker: it claims tasks for which it has room, runs them and keeps their leases.

Imports go down: `worker`, then `runner` and the rest, `loop_watch`, `step_threads`,
`worker_options`.

- `worker`  the pool of one process
- `worker_options`  the name of a worker, the agents it serves, and how much it does at once
- `claims_ahead`  how many tasks are claimed before they can begin, so that commits are shared
- `worker_attempts`  the attempts of a worker, and how it hears that one has ended elsewhere
- `pull`  requests for ready work after hints, and claims of tasks that are to run now
- `runner`  step threads and an event loop, in which steps run
- `loop_watch`  warnings of a coroutine that keeps the loop from the others
- `step_threads`  threads for plain functions, kept between steps
- `lifecycle`  how a worker is started and stopped, as the program that has it sees it
- `lease_renewal`  the renewal of the leases of running attempts
- `presence`  the record that a worker lives, and the way it hears that it should go
- `version_holds`  hold `version`, set on tasks without a function and lifted again
- `disk`  the free disk space below which a worker claims nothing
- `shutdown`  signals, and giving back what runs
"""
