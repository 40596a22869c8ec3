"""Workers that empty a queue as fast as they can, in threads here or in a process of their own."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from collections.abc import Iterator

from holdfast.engine.engine import Engine

BREATH = 0.02


class Inside:
    """How many tasks are between claim and completion, counted where the work is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    @contextmanager
    def count(self, tasks: int) -> Iterator[None]:
        with self._lock:
            self._now += tasks
            self.most = max(self.most, self._now)
        try:
            yield
        finally:
            with self._lock:
                self._now -= tasks


def drain(
    engine: Engine, worker: str, ids: Sequence[str], agents: Sequence[str], inside: Inside
) -> list[str]:
    """Claim and complete until all of some tasks have ended; tells which it got."""
    got: list[str] = []
    hint = threading.Event()
    leave = engine.on_hint(hint.set)
    try:
        while True:
            hint.clear()
            assignments = engine.work.claim(worker, agents=agents, count=5)
            with inside.count(len(assignments)):
                got += [each.task.id for each in assignments]
            for each in assignments:
                assert engine.work.complete(each.task.id, each.token, worker).ok
            if not assignments:
                if _ended(engine, ids):
                    return got
                hint.wait(BREATH)
    finally:
        leave()


def _ended(engine: Engine, ids: Iterable[str]) -> bool:
    wanted = list(ids)
    ended = engine.database.view(lambda tx: tx.read("ended_rows", ids=wanted))
    return len(ended) == len(wanted)


def main(url: str, worker: str, agents: str) -> None:
    ids = json.load(sys.stdin)
    engine = Engine(url).start()
    try:
        json.dump(drain(engine, worker, ids, agents.split(","), Inside()), sys.stdout)
    finally:
        engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
