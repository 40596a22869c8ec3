"""Which signals are waited for: one that nothing waits for may be misspelt."""

from __future__ import annotations

from holdfast.model.effect import read_awaited
from holdfast.service.called import runs_below
from holdfast.service.views import View
from holdfast.store.database import Transaction

SHOWN = 100


def signals_awaited(tx: Transaction, target: str, name: str) -> list[View]:
    """What a run or task waits for now, and then what the runs wait for that it has called.

    Of very many only some are told, the one of that name among them.
    """
    below = runs_below(tx, [target]).get(target, []) if target.startswith("r_") else []
    found = [
        (each, signal)
        for each in (target, *below)
        for row in tx.read("signals_awaited", target=each, name=name, count=SHOWN)
        for signal in read_awaited(row["waits_for"]).signals
    ]
    return [{"target": each, "name": signal} for each, signal in dict.fromkeys(found)]
