"""Named statements: read from files, written out for one dialect, with the events of their changes.

Imports go down: queries → transitions → macros.

- `macros`  the macros of SQL files, and the form of rows in each dialect
- `queries`  the statements by name, and the binding of their parameters
- `transitions`  the events of changed rows, woven into the statements that change them
"""
