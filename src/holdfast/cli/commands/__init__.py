"""The commands of the command line, one module for each group of commands.

Import order: protocol, server, tasks → control, workers → remote_worker; init → demo,
workflow_templates; schedules, workflows → run.

- `activity`  `activity` and `costs`
- `agents`  `agent`: how agents are run
- `artifacts`  `artifacts`: the files that a task has kept
- `bus`  `bus`: relays, groups, messages, and parked messages
- `control`  `cancel`, `retry`, `pause`, `resume`, approvals, answers, and signals
- `demo`  the demonstration behind `demo`
- `diff`  `diff`: what a run or a task has changed in its repository
- `events`  `events` and `logs`
- `imports`  `import`: the tasks and runs of an older task runner
- `init`  `init` and `demo`
- `protocol`  `work` and `guard`: the worker's protocol for scripts
- `remote_worker`  a worker for a server, and the client of a server
- `report`  `holdfast` without a command
- `run`  `run`, with its rehearsal
- `schedules`  `schedule` and `lease`
- `server`  `serve`, `up`, `token`, `open` and `mcp`
- `show`  `runs`, `tasks`, `show` and `why`
- `store`  `db`, `doctor` and `clean`
- `tasks`  `task` and `plan`
- `trust`  `trust`
- `workers`  `worker` and `workers`
- `workflow_templates`  the workflows that `init --template` writes
- `workflows`  `workflow`
"""
