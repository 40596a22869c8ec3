"""Groups of workers that come, speak, are told and leave, and of an attempt that stopped."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Operation
from holdfast.engine.surroundings.workers import (
    AnnounceWorker,
    ForgetWorker,
    NoteStop,
    RegisterWorker,
    TellWorker,
)
from tests.chaos.plans.registry import group_of
from tests.race.worlds import World

TTL = 30_000_000


def _begin(world: World, name: str) -> int:
    row = world.engine.workers.register(name, agents=["default"])
    assert row is not None
    return int(row["started_at"])


@group_of(RegisterWorker, AnnounceWorker, TellWorker, ForgetWorker, NoteStop)
def workers_come_and_go(world: World) -> Sequence[Operation]:
    speaks, leaves = _begin(world, "speaks"), _begin(world, "leaves")
    _begin(world, "told")
    world.task("stopped")
    world.start("stopped")
    return [
        RegisterWorker(
            name="comes", agents='["default"]', equipped="[]", tags="[]", concurrency=1, ttl=TTL
        ),
        AnnounceWorker(name="speaks", started_at=speaks, ttl=TTL),
        TellWorker(name="told", told="drain"),
        ForgetWorker(name="leaves", started_at=leaves),
        NoteStop(task_id=world.ids["stopped"], fence=1, ended=2, left=0),
    ]
