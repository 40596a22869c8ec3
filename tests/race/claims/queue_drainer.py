"""Workers that empty a queue as fast as they can, in threads here or in a process of their own."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence

from holdfast.engine.engine import Engine

BREATH = 0.1


class Inside:
    """How many tasks are between claim and completion, counted where the work is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def enter(self, tasks: int) -> None:
        with self._lock:
            self._now += tasks
            self.most = max(self.most, self._now)

    def leave(self) -> None:
        with self._lock:
            self._now -= 1


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
            got += [each.task.id for each in assignments]
            inside.enter(len(assignments))
            for each in assignments:
                inside.leave()
                assert engine.work.complete(each.task.id, each.token, worker).ok
            if not assignments and not hint.wait(BREATH) and _ended(engine, ids):
                return got
    finally:
        leave()


def _ended(engine: Engine, ids: Sequence[str]) -> bool:
    rows = engine.database.view(lambda tx: tx.read("awaited_rows", ids=ids))
    return len([row for row in rows if row["ended"]]) == len(ids)


def main(url: str, worker: str, agents: str) -> None:
    ids = json.load(sys.stdin)
    engine = Engine(url).start()
    try:
        json.dump(drain(engine, worker, ids, agents.split(","), Inside()), sys.stdout)
    finally:
        engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
