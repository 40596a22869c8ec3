"""The parts that commands share: the chosen store, options, errors, the terminal and Typer.

Import order: run_selection, usage_errors → advice, command_registry, options, temporary_workers →
log_output, program, session → terminal.

- `advice`  errors as a person and a program read them, exit codes, and the command to type next
- `command_registry`  commands and groups, and the modules that have them
- `log_output`  log records on the error stream, as text or as JSON
- `options`  arguments and options that several commands share, and the parsing of their values
- `placeholders`  words of the help that are typed as they stand, and their refusal
- `program`  Python programs that are named as `module:name`
- `run_selection`  the options by which one command is for all runs that fit them
- `session`  the store, server, bus and actor of one command, and the service on that store
- `temporary_workers`  workers beside a run that is watched
- `terminal`  lines, tables, colours and JSON that are safe on a terminal
- `usage_errors`  errors of a command line that Typer cannot read
"""
