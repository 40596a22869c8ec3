"""A poisoned message, from the event it tells to the run that waits for what is done about it."""

from __future__ import annotations

from typing import Any

from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.handler import Handler
from holdfast.bus.parked_messages import Parked
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.bus.worlds import World
from tests.contract.task_states import StartedRun, start

SIGNED = Workflow.define(
    "signed",
    (
        Step(id="plan"),
        Step(id="sign", approval="Sign?", needs=("plan",)),
        Step(id="ship", needs=("sign",)),
    ),
)
RETRY = RetryPolicy(max_attempts=2, backoff=1.0, backoff_max=1.0)


class Notary:
    """Signs for a run when its plan is done, in the transaction of the message that says so."""

    def __init__(self, world: World) -> None:
        self.world, self.engine = world, world.engine
        self.runs = [start(world.engine, SIGNED) for _ in range(2)]
        self.cannot_read: set[str] = {self.runs[0].id}
        handler = Handler(
            name="sign", handle=self.sign, types=frozenset({"task.done"}), steers=True
        )
        subscription = Subscription(channel=Channel.EVENTS, group="notary", from_now=True)
        options = ConsumerOptions(name="notary-1", retry=RETRY)
        self.consumer = Consumer(world.engine, world.bus, subscription, [handler], options)

    def sign(self, envelope: Envelope, connection: Any) -> None:  # noqa: ANN401 - either's
        if envelope.run_id in self.cannot_read:
            raise ZeroDivisionError
        found = [run for run in self.runs if run.id == envelope.run_id and envelope.step == "plan"]
        for run in found:
            self.engine.join(connection).tasks.approve(run.steps["sign"])

    @property
    def signed(self) -> list[str]:
        return [run.statuses["sign"] for run in self.runs]


def test_a_poisoned_message_is_parked_and_after_the_fix_its_run_goes_on(sql: World) -> None:
    notary, parked = Notary(sql), Parked(sql.engine)
    for run in notary.runs:
        run.finish("plan")
    for _ in range(3):
        notary.consumer.drain()
        sql.clock.advance(1)
    assert notary.signed == ["queued", "done"]
    poisoned, well = notary.runs
    assert _finish(well) == "completed"
    notary.consumer.drain()
    (kept,) = parked.list()
    assert (kept.handler, kept.tries, kept.about) == ("notary/sign", 2, poisoned.id)
    notary.cannot_read.clear()
    assert parked.replay(kept.handler, kept.message_id).ok
    notary.consumer.drain()
    notary.consumer.close()
    assert notary.signed == ["done", "done"]
    assert _finish(poisoned) == "completed"
    assert parked.list(parked=False) == []


def _finish(run: StartedRun) -> str:
    run.finish("ship")
    return run.status
