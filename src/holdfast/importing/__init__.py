"""Takes over what programs of an older shape left in their SQLite files."""

from holdfast.importing.report import ImportReport, Moved, Remark
from holdfast.importing.runs import import_runs
from holdfast.importing.tasks import import_tasks

__all__ = ["ImportReport", "Moved", "Remark", "import_runs", "import_tasks"]
