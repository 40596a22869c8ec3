"""What a server counts of a store: each event once, however its looks end."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.engine.surroundings.removal import DELETED
from holdfast.errors import StoreUnreachable
from holdfast.service.admin import metrics
from holdfast.service.admin.metrics import Meter
from tests.contract.task_states import create
from tests.race.racers import eventually


class Counting:
    """A meter that looks again where others on the server have a transaction under way."""

    def __init__(self, engine: Engine) -> None:
        self.meter = Meter(engine)

    def counts(self, **events: int) -> bool:
        wanted = {name.replace("_", "."): number for name, number in events.items()}
        return eventually(lambda: self.meter.read().events == wanted)


def test_a_look_that_is_broken_off_loses_no_counts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(engine)
    create(engine)

    def break_off(*_: object) -> None:
        raise StoreUnreachable

    with monkeypatch.context() as patched:
        patched.setattr(metrics, "_read_lags", break_off)
        with pytest.raises(StoreUnreachable):
            counting.meter.read()
    assert counting.counts(task_created=1)


def test_a_count_never_falls_nor_is_told_twice_when_the_newest_events_are_removed(
    engine: Engine,
) -> None:
    kept, gone = create(engine), create(engine)
    counting = Counting(engine)
    assert engine.tasks.delete(gone).ok
    assert counting.counts(task_deleted=1)
    assert engine.removals.remove(DELETED, engine.now() + 1_000_000).gone == (gone,)
    assert counting.counts(task_deleted=1)
    assert engine.tasks.cancel(kept).ok
    assert counting.counts(task_deleted=1, task_cancelled=1)
