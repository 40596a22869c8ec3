"""Imports from the SQLite files of older programs: their tasks, and their runs.

Imports: older_file → runs, tasks → phased_tasks → task_forest → import_writer, loops → report,
rows.

- `import_writer` the imported rows passed to the engine, and the report of the result
- `loops` the steps of an older run in order, with a step for each story of a loop
- `older_file`  the tables of older programs that a file has, and their import
- `phased_tasks`  tasks with a column each for lifecycle, planning and the blocking task
- `report` reports of imports: rows that were made, left out, or need a look
- `rows` values of an older file, checked one by one
- `runs` imports of the tables of runs, steps and stories
- `task_forest` the tasks of a file as trees, with what each needs and how far it came
- `tasks` imports of a table of tasks
"""

from holdfast.importing.older_file import import_file
from holdfast.importing.report import ImportReport, Moved, Remark
from holdfast.importing.runs import import_runs
from holdfast.importing.tasks import import_tasks

__all__ = ["ImportReport", "Moved", "Remark", "import_file", "import_runs", "import_tasks"]
