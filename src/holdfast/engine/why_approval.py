"""What an approval asks, for who looks at it before it has all it needs."""

from __future__ import annotations

from contextlib import suppress

from holdfast.engine.facts import Facts
from holdfast.engine.graphs import Graphs
from holdfast.engine.scripts import gather
from holdfast.model.reference import Unresolved
from holdfast.store.database import Row, Transaction


def tell_asked(tx: Transaction, row: Row) -> str:
    """Its text with every value that is named in it once all are known, until then as written.

    The writer does the same when the approval has all it needs, which may be much later.
    """
    if row["blocked"] and row["conditional"]:
        run = Facts().of(tx, [row["run_id"]])[row["run_id"]]
        known = Graphs().scripted(tx, run.workflow, run.version)
        if row["step"] in known:
            with suppress(Unresolved):
                script = gather(tx, [(row, known[row["step"]], run)])[row["id"]]
                return script.try_out() or str(row["title"])
    return str(row["title"])
