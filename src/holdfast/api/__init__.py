"""The Python API: functions as tasks and steps, workflows, and handles on tasks and runs.

Imports: public → holdfast → open_stores → function_process → function_registry → hook → workflow →
workflow_body → run_inputs → plan, step → task, workflow_call → call_concurrency, start → archive,
handle, options, program_engine, signature → option_types.

- `archive` the hook that writes a JSON file for each run that ends
- `call_concurrency` the concurrency keys of task functions, made of the arguments of each call
- `function_registry` the functions of a program, and how a worker calls them
- `function_process` the program in which a function with a process of its own runs
- `handle` handles on tasks and runs, and their results
- `holdfast` the class `Holdfast`: one store, the functions of a program, and its workers
- `hook` functions that follow the ends of runs and tasks
- `open_stores` the engine and the workers that a `Holdfast` has open, in each process
- `option_types` the keywords of tasks, steps, workers and stores, for type checkers
- `options` options of tasks and steps, read from decorators
- `plan` handles on plans, whose tasks are their children
- `program_engine` how the functions of a program find its engine, and its schedules get there
- `public` the public names of the package `holdfast`
- `run_inputs` the inputs of a run, checked against the steps that take them
- `signature` parameters and results of a function, and their JSON
- `start` the base of tasks and workflows that can be scheduled and started
- `step` the declaration of one step of a workflow
- `task` task functions, made by `@hf.task`
- `workflow` workflows written in Python or read from a file
- `workflow_body` the steps of a workflow or a loop, as they are declared
- `workflow_call` steps that call another workflow
"""
