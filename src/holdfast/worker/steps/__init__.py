"""The steps of workflow files: commands, and HTTP calls.

Imports go down: `executors`, `command_step` | `http_step`, `workspace_steps`, `step_resources`,
then the rest.

- `executors`  the choice between a command, an HTTP call and a function
- `agent_session`  the runs of a preset's program in one attempt, and its stream
- `agent_commands`  the commands of a worker's own agents, for tasks that name no program
- `workspace_steps`  the way of commands and merges into git workspaces
- `step_resources`  what command steps and HTTP steps share, and their questions
- `permission`  what a step may run, call and read, with its texts filled in
- `isolated_step`  a function that runs in a process of its own
- `piped_store`  the store and the context of a function in a process of its own
- `attempt_pipe`  the calls by which such a function reaches its worker
- `attempt_watch`  the lease and the record of the attempt of a running process
- `command_step`  a step that is a command
- `command`  a command before, while and after it runs
- `command_answer`  the answer of a command: asked for, read and checked
- `command_environment`  the environment variables and the files of a command
- `process`  one run of a command under its keeper
- `process_keeper`  the parent process of a command, which ends everything the command has started
- `orphans`  processes that a killed worker has left, found by records and ended
- `process_identity`  a process by its number, start, boot and machine
- `transcript`  the output of a command on its way into the log
- `http_step`  a step that is an HTTP call
- `answer_bytes`  the body of an HTTP answer, unpacked up to a limit
"""
