"""What a careful programmer would write by hand for one workload: the same rows, nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.clock import SystemClock
from holdfast.ids import Ids
from holdfast.model.text import digest
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.randomness import SystemRandomness

STEPS = ("fetch", "clean", "train", "check", "ship")
PIPELINE = Workflow.define(
    "pipeline",
    tuple(
        Step(id=step, needs=(before,) if before else ())
        for step, before in zip(STEPS, (None, *STEPS), strict=False)
    ),
)
RESULT = {"ok": True}
OUTPUT = '{"ok":true}'
WORKER = "bench"
LEASE = 30_000_000

CREATED = '{"blocked":false,"run_holds":0,"priority":0,"position":0,"scheduled_for":null}'
CREATED_BLOCKED = CREATED.replace("false", "true", 1)
DIGEST = digest(OUTPUT)
DONE = f'{{"digest":"{DIGEST}"}}'
UNBLOCKED = '{"blocked":false}'
STARTED = '{"holds":0,"priority":0}'


class ByHand(Protocol):
    """Durable batches: each call of `step` is one transaction, as the engine's groups are."""

    def create_tasks(self, count: int) -> None: ...

    def load_tasks(self, ids: Sequence[str]) -> None:
        """Create tasks as fast as the database takes them, in one transaction."""

    def create_pipelines(self, count: int) -> None: ...

    def begin_pipeline(self) -> list[Held]:
        """Create one pipeline and claim its first task, in one transaction."""

    def step(self, done: list[Held], count: int) -> list[Held]:
        """Complete what is held, let what follows go on, and claim up to `count` more."""

    def fill(self, count: int) -> None:
        """Put finished tasks into the tables, with their events."""

    def commit_once(self) -> None:
        """The smallest transition: one row, its event, one commit."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Held:
    """A claimed task, as much of it as the next write needs."""

    id: str
    run_id: str | None
    version: int
    attempt: int


@dataclass(frozen=True, slots=True)
class PipelineRow:
    run_id: str
    task_ids: tuple[str, ...]


class Rows:
    """New ids, in the form and the order of the engine's own."""

    def __init__(self) -> None:
        self._ids = Ids(SystemClock(), SystemRandomness())

    def tasks(self, count: int) -> list[str]:
        return [self._ids.task() for _ in range(count)]

    def pipelines(self, count: int) -> Iterator[PipelineRow]:
        for _ in range(count):
            yield PipelineRow(self._ids.run(), tuple(self._ids.task() for _ in STEPS))


def drain(store: ByHand, batch: int) -> None:
    _drain(store, store.step([], batch), batch)


def run_alone(store: ByHand) -> None:
    """One pipeline with nothing beside it, in as few commits as there can be."""
    _drain(store, store.begin_pipeline(), 1)


def _drain(store: ByHand, held: list[Held], batch: int) -> None:
    while held:
        held = store.step(held, batch)


def in_batches(count: int, batch: int) -> Iterator[int]:
    for begin in range(0, count, batch):
        yield min(batch, count - begin)


def now() -> int:
    return time.time_ns() // 1000
