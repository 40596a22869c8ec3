"""The command `holdfast`: a thin front end of the service, with one module for each command group.

Import order: commands → main, render → app.

- `app`  the parts that commands share: the store, options, errors, the terminal, Typer
- `commands`  the commands that a person types
- `main`  the program: it reads the arguments, runs the command and gives the exit code
- `render`  runs, tasks, events and previews as text
"""
