"""How a worker leaves: what it waits for, and how where it cannot wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.clock import Clock
from holdfast.worker.execution import Execution

PATIENCE = 3.0
LOOK_EVERY = 0.05
SHOWN = 10


def tell_waiting(executions: Sequence[Execution]) -> str:
    """What a worker that was interrupted still waits for."""
    running = sorted(map(str, executions))
    if not running:
        return "nothing is running"
    more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
    return (
        f"waiting for {', '.join(running[:SHOWN])}{more}; a second Ctrl-C or SIGTERM stops "
        "now: commands are given back, and what else was running is tried again when its "
        "lease has run out"
    )


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
