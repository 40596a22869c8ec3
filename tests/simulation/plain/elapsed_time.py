"""The plain model of what time alone brings, and of named leases."""

from __future__ import annotations

from holdfast.model.status import Hold
from tests.simulation.plain.concurrency import admit
from tests.simulation.plain.world import OPEN, Answer, Lease, World


def sweep(world: World) -> None:
    for task in world.tasks.values():
        lifts = task.held_until is not None and task.held_until <= world.now
        if lifts and task.status in OPEN and Hold.LIMIT in task.holds:
            task.holds &= ~Hold.LIMIT
            task.held_until = None
    for key, capacity in world.capacity.items():
        admit(world, key, capacity)


def acquire(world: World, key: str, owner: str, ttl: int) -> int | None:
    """The fence of the new lease, or None when somebody holds it."""
    held = world.leases.get(key)
    if held is not None and held.expires_at > world.now:
        return None
    fence = 1 if held is None else held.fence + 1
    world.leases[key] = Lease(owner=owner, fence=fence, expires_at=world.now + ttl)
    return fence


def keep(world: World, key: str, fence: int, ttl: int | None) -> Answer:
    """Renew a named lease, or give it back when no time is asked for."""
    held = world.leases.get(key)
    if held is None or held.fence != fence or held.expires_at <= world.now:
        return ("stale_token", None)
    held.expires_at = 0 if ttl is None else world.now + ttl
    return ("ok", None)
