"""The definition of a workflow: its graph, its steps, their templates, and all checks before a run.

Imports: call_checks, run_input → graph → graph_checks, graph_text → variable_checks,
workspace_checks → flaw, landing, step_template, branch → prompt_feedback, step, template →
declarations, reference.

- `branch` the branch on which people see the commits of a run
- `call_checks` flaws in the inputs that steps give to the workflows they call
- `declarations` the parts of a workflow file that are no steps: work, HTTP calls, workspaces,
  inputs, budget
- `flaw` one thing that is wrong with a graph, with a hint
- `graph` the workflow: one immutable version of a named graph
- `graph_checks` flaws in the steps of a graph and in their needs
- `graph_text` the text of a graph, which its version is the hash of
- `landing` the hidden last step of an item with a line of its own
- `prompt_feedback` what was said about the work, at the end of a prompt that does not name it
- `line` lines of commits: heads, drafts, and what attempts open
- `reference` references to values, such as `steps.plan.stories`
- `run_input` the input of a run: defaults, checks, paths and the concurrency key
- `step` a step of a graph, and the order that the needs of steps give
- `step_template` the texts of a step, and the same texts with every variable replaced
- `template` texts with variables such as `{{ input.name }}`
- `variable_checks` flaws in the variables that texts of a graph name
- `workspace_checks` flaws of the workspace of a workflow, and of the steps that use it
"""
