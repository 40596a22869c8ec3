"""Usage limits of agents: who is in line is held, and who comes later finds the limit."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.group import Group
from holdfast.engine.limit_operations import LiftLimit
from holdfast.model.result import TransitionResult

LIMITED_AT_ONCE = 1_000


def hold(group: Group) -> None:
    """Hold who is in line for an agent at its limit, before anybody claims them.

    Their runs are not locked: the rest of the group waits for nobody who may wait for them.
    """
    for _, until, task_id in group.limits:
        group.change_tasks("limit_agent", task_id=task_id, until=until, count=LIMITED_AT_ONCE)


def keep(group: Group) -> None:
    """Write the limits down for who comes later, and forget those that have lifted.

    After every counter, and in the order of the agents: another process may write down the same.
    """
    if group.lifted:
        group.tx.run("forget_limits")
    for agent, until, task_id in sorted(group.limits):
        group.tx.run("note_limit", agent=agent, until=until, task_id=task_id)


def lift(group: Group, lifts: Sequence[LiftLimit]) -> list[TransitionResult]:
    """Have agents be at no limit any more; repeated where one is at none."""
    agents = sorted({each.agent for each in lifts})
    ended = {agent for agent in agents if group.tx.write("end_limit", agent=agent)}
    if ended:
        group.wake()
    return [TransitionResult(ok=True, repeated=each.agent not in ended) for each in lifts]


def look(group: Group) -> None:
    """Who waits for an agent whose limit has lifted is ready, though nothing of it was changed."""
    if group.tx.read("lifted_limits"):
        group.lifted = True
        group.wake()
