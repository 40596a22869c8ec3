"""A worker that knows nothing but Redis: it hears offers, claims by id, and tells its results.

    pip install redis
    python bus_worker.py redis://localhost:6379/0 painter

Whatever language has a client for Redis can do the same; the page docs/how-to/buses.md says what
is on which stream. The engine beside it needs `Offers`, `claim_handler` and `result_handler`.
"""

from __future__ import annotations

import json
import socket
import sys
import uuid
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import redis

PARTITIONS = 4
# How long an answer is waited for, in milliseconds; the offer comes again when there is none.
PATIENCE = 30_000

# The stream, the number there, and the message.
Entry = tuple[str, str, dict[str, Any]]


class BusWorker:
    """One agent of a group; its name stays the same from one start to the next."""

    def __init__(self, url: str, agent: str, *, prefix: str = "holdfast", slot: int = 0) -> None:
        self.agent = agent
        self.name = f"{agent}-{socket.gethostname()}-{slot}"
        # Longer than anything is waited for there: an answer that never comes is no trouble.
        quiet = 2 * PATIENCE / 1000
        self._redis = redis.Redis.from_url(
            url, decode_responses=True, protocol=2, socket_timeout=quiet
        )
        self._prefix = f"{{{prefix}}}"
        self._replies = f"{self._prefix}:replies:{self.name}"
        self._offers = [f"{self._prefix}:agent.tasks:{each}" for each in range(PARTITIONS)]
        for stream in self._offers:
            try:
                self._redis.xgroup_create(stream, agent, "0", mkstream=True)
            except redis.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    def step(self, work: Callable[[dict[str, Any]], Any], *, wait: float = 5.0) -> int:
        """Take up what was left, or what is offered next; how many tasks were done."""
        done = 0
        for stream, entry, offer in [*self._read("0"), *self._read(">", wait)]:
            if offer.get("agent") == self.agent and self._do(offer, work):
                done += 1
            self._redis.xack(stream, self.agent, entry)
        return done

    def _do(self, offer: dict[str, Any], work: Callable[[dict[str, Any]], Any]) -> bool:
        # The same each time, so that who asks again for lack of an answer is given the same task.
        request = f"claim {self.name} {offer['message_id']}"
        told = {"reply_to": self.name, "agents": [self.agent], "request": request}
        claimed = self._ask("workflow.commands", offer, "task.claim", told)
        if claimed is None or claimed["type"] != "task.claimed":
            return False
        held = claimed["payload"]
        report = {"token": held["token"], "reply_to": self.name}
        try:
            kind, said = "attempt.completed", {"output": work(held)}
        except Exception as error:  # noqa: BLE001 - the engine decides whether to try again
            kind, said = "attempt.failed", {"error": str(error)}
        answer = self._ask("agent.results", offer, kind, report | said)
        return answer is not None and answer["payload"]["ok"]

    def _ask(
        self, channel: str, offer: dict[str, Any], kind: str, payload: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Send a message about the task that was offered, and wait for what follows it."""
        told = {name: offer[name] for name in ("trace_id", "run_id", "task_id") if name in offer}
        message = told | {
            "message_id": str(uuid.uuid4()),
            "causation_id": offer["message_id"],
            "correlation_id": offer.get("correlation_id", offer["message_id"]),
            "agent": self.agent,
            "type": kind,
            "created_at": datetime.now(UTC).isoformat(),
            "payload": payload,
        }
        last = [str(entry) for entry, _ in self._redis.xrevrange(self._replies, count=1) or ()]
        about = offer.get("run_id") or offer["task_id"]
        stream = f"{self._prefix}:{channel}:{zlib.crc32(about.encode()) % PARTITIONS}"
        self._redis.xadd(stream, {"envelope": json.dumps(message)})
        return self._hear(message["message_id"], last[0] if last else "0")

    def _hear(self, asked: str, after: str) -> dict[str, Any] | None:
        while found := _entries(self._redis.xread({self._replies: after}, block=PATIENCE)):
            for _, entry, reply in found:
                after = entry
                if reply["causation_id"] == asked:
                    return reply
        return None

    def _read(self, start: str, wait: float | None = None) -> list[Entry]:
        block = None if wait is None else round(wait * 1000)
        streams: dict[Any, Any] = dict.fromkeys(self._offers, start)
        found = self._redis.xreadgroup(self.agent, self.name, streams, 10, block=block)
        return _entries(found)


def _entries(answer: Iterable[Any] | None) -> list[Entry]:
    return [
        (stream, entry, json.loads(fields["envelope"]))
        for stream, entries in answer or ()
        for entry, fields in entries
    ]


def paint(held: dict[str, Any]) -> str:
    return f"painted: {held['title']}"


if __name__ == "__main__":
    if len(sys.argv) not in {3, 4}:
        sys.exit(f"usage: {sys.argv[0]} redis://HOST:PORT/0 AGENT [PREFIX]")
    worker = BusWorker(sys.argv[1], sys.argv[2], prefix=(sys.argv[3:] or ["holdfast"])[0])
    while True:
        worker.step(paint)
