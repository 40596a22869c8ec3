"""What approvals ask and steps are called, for who looks before they have all they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.engine.facts import Facts
from holdfast.engine.graphs import Graphs
from holdfast.engine.scripts import Script, gather
from holdfast.model.status import Kind
from holdfast.model.task import Task
from holdfast.model.workflow.reference import Unresolved
from holdfast.store.database import Row, Transaction


def tell_asked(tx: Transaction, rows: Sequence[Row]) -> dict[str, str]:
    """Their texts with every value that is named in them once all are known, until then as written.

    The writer does the same when an approval has all it needs, which may be much later; what it
    wrote down then says nothing any more once that begins again.
    """
    waiting = [row for row in rows if row["blocked"] and row["conditional"]]
    runs = Facts().of(tx, [row["run_id"] for row in waiting]) if waiting else {}
    graphs = Graphs()
    known = {each: graphs.scripted(tx, run.workflow, run.version) for each, run in runs.items()}
    scripts = gather(
        tx,
        [
            (row, known[row["run_id"]][row["step"]], runs[row["run_id"]])
            for row in waiting
            if row["step"] in known[row["run_id"]]
        ],
    )
    titles = {row["id"]: str(row["title"]) for row in rows}
    return titles | {each: _tell(script) or titles[each] for each, script in scripts.items()}


def _tell(script: Script) -> str | None:
    try:
        return script.try_out()
    except Unresolved:
        step = script.scripted.step
        return step.title or step.approval


def mark_asked(tx: Transaction, tasks: list[Task]) -> list[Task]:
    """The same tasks; none that waits anew is called by what outputs made that are gone."""
    again = [task.id for task in tasks if _may_be_stale(task)]
    told = tell_asked(tx, tx.read("tasks_by_id", ids=again)) if again else {}
    return [replace(task, title=told.get(task.id, task.title)) for task in tasks] if told else tasks


def _may_be_stale(task: Task) -> bool:
    # The title of a loop is that of its items.
    loop = task.kind is Kind.GROUP and task.calls is None
    return task.blocked and task.generation > 1 and task.step is not None and not loop
