"""What a function raised, where it came in a group, as from an `asyncio.TaskGroup`."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.errors import TaskFailed
from holdfast.worker.durable import InvalidCall, InvalidWait, SignalTimeout
from holdfast.worker.encoding import InvalidEffect
from holdfast.worker.places import SharedName
from holdfast.worker.tenure import AttemptEnded
from holdfast.worker.waits import Suspended

# What failed for good below it fails it for good, an effect is not done again, and no branch is
# given what another has done. What is said wrong, or was not heard in time, stays so.
FINAL = (TaskFailed, InvalidEffect, SharedName, InvalidCall, InvalidWait, SignalTimeout)
# Each decides what becomes of the task, whatever else was raised beside it.
_DECISIVE = (AttemptEnded, *FINAL)
# It may not report anything, or what it has done is not to be done again.
_UNDENIED = (AttemptEnded, InvalidEffect)


def foremost(error: BaseException, left: Suspended | None = None) -> BaseException:
    """What is to be reported: a failure before a wait, and a wait where there is nothing else.

    But for the wait that a function was `left` for and has caught: what it has raised instead may
    come of its not having waited.
    """
    leaves = list(_leaves(error))
    if left is not None and not any(isinstance(leaf, Suspended) for leaf in leaves):
        return next((leaf for leaf in leaves if isinstance(leaf, _UNDENIED)), left)
    if not isinstance(error, BaseExceptionGroup):
        return error
    decisive = [leaf for leaf in leaves if isinstance(leaf, _DECISIVE)]
    if decisive:
        return decisive[0]
    _, failures = error.split(Suspended)
    return failures or leaves[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from _leaves(each)
