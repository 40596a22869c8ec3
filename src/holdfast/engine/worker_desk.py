"""Workers as the store knows them: say that one lives, look at them, have one go."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future

from holdfast.engine import validation
from holdfast.engine.desk import Desk
from holdfast.engine.edge import operation, reading
from holdfast.engine.listing import Page
from holdfast.engine.reports import Reports
from holdfast.engine.worker_operations import (
    AnnounceWorker,
    ForgetWorker,
    NoteStop,
    RegisterWorker,
    TellWorker,
)
from holdfast.model.result import TransitionResult
from holdfast.model.retry import positive_microseconds
from holdfast.model.text import clean_name, clean_text
from holdfast.model.worker import DRAIN, EVICT, LiveWorker
from holdfast.store.database import Row

MOST = 2**31 - 1


class Workers:
    """Which workers live, and what they are told."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._reports = Reports(desk)

    @operation
    def register(
        self,
        name: str,
        *,
        agents: Sequence[str],
        tags: Sequence[str] = (),
        concurrency: int = 1,
        process: str | None = None,
    ) -> Future[Row | None]:
        """Say that a worker has started; None when another one of that name lives.

        The `process` is for others on its machine, who can tell by it that it is dead.
        """
        return self._desk.submit(
            RegisterWorker(
                name=clean_name("name", name),
                agents=json.dumps(validation.agents(agents)),
                tags=validation.tags(tags),
                concurrency=validation.number("concurrency", concurrency, least=1, most=MOST),
                ttl=self._ttl,
                process=_text("process", process),
            )
        )

    @operation
    def announce(
        self, name: str, started_at: int, pausing: str | None = None
    ) -> Future[Row | None]:
        """Say that a worker still lives, and hear what it is told; None when it is not known.

        While it claims nothing, `pausing` says why.
        """
        chosen, why = clean_name("name", name), _text("pausing", pausing)
        return self._desk.submit(
            AnnounceWorker(name=chosen, started_at=started_at, ttl=self._ttl, pausing=why)
        )

    @operation
    def forget(self, name: str, started_at: int) -> Future[TransitionResult]:
        """Say that a worker has left."""
        chosen = clean_name("name", name)
        return self._desk.submit(ForgetWorker(name=chosen, started_at=started_at))

    @operation
    def drain(self, name: str) -> Future[TransitionResult]:
        """Have a worker claim nothing more, finish what it runs, and leave."""
        return self._desk.submit(TellWorker(name=clean_name("name", name), told=DRAIN))

    @operation
    def evict(self, name: str) -> Future[TransitionResult]:
        """Have a worker give back at once what it can stop, keep no lease, and leave."""
        return self._desk.submit(TellWorker(name=clean_name("name", name), told=EVICT))

    @operation
    def note_stop(
        self, task_id: str, token: str, *, ended: int, left: int = 0
    ) -> Future[TransitionResult]:
        """Say that nothing of an attempt runs any more, whatever became of the attempt."""
        return self._desk.submit(
            NoteStop(
                **self._reports.fenced(task_id, token),
                ended=validation.number("ended", ended, least=0, most=MOST),
                left=validation.number("left", left, least=0, most=MOST),
            )
        )

    @reading
    def list(self) -> Page[LiveWorker]:
        """Every worker that said it lives, and has not been silent for longer than a lease."""
        return [_read(row) for row in self._desk.view(lambda tx: tx.read("list_workers"))]

    @property
    def _ttl(self) -> int:
        return positive_microseconds("lease", self._desk.settings.lease)


def _text(field: str, value: str | None) -> str | None:
    return None if value is None else clean_text(field, value)


def _read(row: Row) -> LiveWorker:
    return LiveWorker(
        name=row["name"],
        agents=tuple(json.loads(row["agents"])),
        tags=tuple(json.loads(row["tags"])),
        concurrency=row["concurrency"],
        told=row["told"],
        process=row["process"],
        pausing=row["pausing"],
        started_at=row["started_at"],
        seen_at=row["seen_at"],
        expires_at=row["expires_at"],
    )
