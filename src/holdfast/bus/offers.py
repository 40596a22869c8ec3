"""Offers of ready tasks on `agent.tasks`: without a token, for workers to claim a task by id."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from holdfast.bus.envelope import Envelope
from holdfast.bus.event_log import event_id
from holdfast.bus.execution_bus import Channel, ExecutionBus
from holdfast.bus.handler import Handler, Park
from holdfast.bus.periodic_loop import LeaderLease, PeriodicLoop
from holdfast.clock import MICROSECONDS
from holdfast.engine.engine import EngineOwner, engine_of
from holdfast.model.task import Assignment
from holdfast.model.text import clean_name
from holdfast.model.trace import derive_span_id, derive_trace_id
from holdfast.store.database import Row

logger = logging.getLogger(__name__)

OFFERED = "task.offered"
# Few, because the first leases of a group run while the last tasks are claimed.
CLAIMED_AT_ONCE = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferOptions:
    """The tasks that are offered, and how often.

    - `agents`: the agents whose tasks are offered
    - `count`: the most tasks that are on offer at once: the first that would be claimed
    - `again`: the seconds after which a task that nobody has claimed is offered again
    - `ttl`: the seconds of silence after which another process goes on
    """

    agents: Sequence[str]
    count: int = 100
    again: float = 30.0
    ttl: float = 3.0


class Offers(PeriodicLoop):
    """The loop of offers; each process starts one, and the one that holds the lease offers."""

    rest_after_step = 0.05

    def __init__(self, store: EngineOwner, bus: ExecutionBus, options: OfferOptions) -> None:
        engine = engine_of(store)
        self._bus = bus
        self._agents = [clean_name("agents", each) for each in options.agents]
        self._count = options.count
        self._again = round(options.again * MICROSECONDS)
        key = f"bus/offers/{'+'.join(sorted(self._agents))}"[:200]
        self._leader_lease = LeaderLease(
            engine, key, ttl=options.ttl, on_begin=self._forget_offered
        )
        super().__init__(engine, "offers", self._leader_lease)
        self._offered: set[str] = set()

    def step(self, wait: float = 0.0) -> int:  # noqa: ARG002 - it does not wait by itself
        """Offer the ready tasks that were not offered lately; the result is their number."""
        if not self._leader_lease.is_leader():
            return 0
        found = self._engine.database.view(
            lambda tx: (
                tx.read("ready_tasks", agents=self._agents, count=self._count),
                tx.read("now")[0]["now"],
            )
        )
        ready, now = found
        repetition = now // self._again
        tasks_by_offer = {_offer_id(row, repetition): row for row in ready}
        new = [
            _make_offer(row, each, now)
            for each, row in tasks_by_offer.items()
            if each not in self._offered
        ]
        if new:
            self._bus.publish_command(Channel.TASKS, *new)
        self._offered = set(tasks_by_offer)
        return len(new)

    def _forget_offered(self) -> None:
        """Forget what was offered: a new leader offers all ready tasks."""
        self._offered = set()


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """A worker that claims the tasks it is offered, and is given each after its claim's commit.

    A task that was claimed and not delivered, because the process ended, is claimed again when its
    lease has run out.
    """

    store: EngineOwner
    worker: str
    agents: Sequence[str]
    deliver: Callable[[Assignment], object]
    tags: Sequence[str] = field(default=())

    def handler(self) -> Handler:
        return Handler(
            name="claims",
            handle_all=self._claim,
            types=frozenset({OFFERED}),
            steers=True,
            apart=lambda envelope: envelope.task_id,
            most=CLAIMED_AT_ONCE,
        )

    def _claim(self, envelopes: Sequence[Envelope], connection: object) -> object:
        with engine_of(self.store).join_group(connection) as joined:
            asked = [
                joined.work.claim_by_id.submit(
                    _require_task_id(each), self.worker, agents=self.agents, tags=self.tags
                )
                for each in envelopes
                if each.agent in self.agents
            ]
        return partial(self._deliver, [each for answer in asked for each in answer.result()])

    def _deliver(self, claimed: Sequence[Assignment]) -> None:
        for each in claimed:
            try:
                self.deliver(each)
            except Exception:
                logger.exception("%s is claimed, and was not delivered", each.task_id)


def _require_task_id(envelope: Envelope) -> str:
    if envelope.task_id is None:
        raise Park("task_id: is missing, and an offer is of one")
    return envelope.task_id


def _offer_id(row: Row, repetition: int) -> str:
    return f"offer:{row['id']}.{row['version']}.{repetition}"


def _make_offer(row: Row, message_id: str, now: int) -> Envelope:
    root = row["run_id"] or row["id"]
    return Envelope(
        message_id=message_id,
        trace_id=row["trace_id"] or derive_trace_id(root),
        span_id=derive_span_id(message_id),
        causation_id=event_id(row["id"], row["version"]),
        correlation_id=row["correlation_id"] or root,
        run_id=row["run_id"],
        task_id=row["id"],
        step=row["step"],
        agent=row["agent"],
        type=OFFERED,
        created_at=now,
        payload={
            "title": row["title"],
            "tags": json.loads(row["tags"]),
            "priority": row["priority"],
        },
    )
