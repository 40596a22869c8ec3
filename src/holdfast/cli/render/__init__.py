"""Runs, tasks, events and previews as text for a person.

Import order: live_view → attention, event_lines, preview, report, side_effects, slots,
tree → patch, step_status, tree_layout → formats.

- `attention`  the needs of a run that only a person can satisfy
- `bulk_progress`  a command for all runs that fit, previewed, or carried out and counted
- `event_lines`  events as lines
- `formats`  times, costs, states and errors in a few characters
- `live_view`  a run watched until it ends
- `patch`  what has changed in a repository, by file and line by line
- `preview`  the changes that a command would make
- `report`  recent runs, their cost, and what needs a person
- `side_effects`  the changes that a command made to other runs and tasks than it named
- `slots`  the slots of a worker, and what runs in them
- `step_status`  the status of one step, and the command that lets the step go on
- `tree`  runs and tasks drawn as trees
- `tree_layout`  the rows of a tree as lines in columns, and how much of it is drawn
"""
