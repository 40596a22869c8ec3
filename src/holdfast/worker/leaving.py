"""How a worker leaves that cannot wait until its steps have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.clock import Clock
from holdfast.worker.execution import Execution

PATIENCE = 3.0
LOOK_EVERY = 0.05


def give_back(
    executions: Callable[[], Sequence[Execution]], clock: Clock, wait: Callable[[float], object]
) -> None:
    """Stop what can be stopped, and wait until it has been given back."""
    stopped = {each.key for each in executions() if each.abandon()}
    give_up = clock.monotonic() + PATIENCE
    while stopped & {each.key for each in executions()} and clock.monotonic() < give_up:
        wait(LOOK_EVERY)


def evict(executions: Sequence[Execution]) -> None:
    """Stop and give back what can be, and keep no lease of the rest."""
    for each in executions:
        if not each.abandon():
            each.end()
