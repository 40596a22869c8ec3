"""Usage limits of agents: who met one is held, and who else waits for that agent finds it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.group import Group
from holdfast.engine.limit_operations import LiftLimit
from holdfast.model.result import TransitionResult


def hold_limited_tasks(group: Group) -> None:
    """Hold the tasks that met a limit, before anybody claims.

    Nobody else's row is written: a claim asks for the limit itself, and so does who looks.
    """
    for _, until, task_id in group.limits:
        group.change_tasks("limit_task", task_id=task_id, until=until)


def but_for(group: Group, agents: Sequence[str]) -> tuple[str, ...]:
    """Those of some agents that have reached no limit in this very group.

    Their limits are written down only after every counter is held.
    """
    reached = {agent for agent, _, _ in group.limits}
    return tuple(agent for agent in agents if agent not in reached)


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
