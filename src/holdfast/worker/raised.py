"""What a function raised, where it came in a group, as from an `asyncio.TaskGroup`."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.errors import TaskFailed
from holdfast.worker.encoding import InvalidEffect
from holdfast.worker.tenure import AttemptEnded
from holdfast.worker.waits import Suspended

# Each decides what becomes of the task, whatever else was raised beside it.
_DECISIVE = (AttemptEnded, TaskFailed, InvalidEffect)


def foremost(error: BaseException) -> BaseException:
    """What is to be reported: a failure before a wait, and a wait where there is nothing else."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    decisive = [leaf for leaf in _leaves(error) if isinstance(leaf, _DECISIVE)]
    if decisive:
        return decisive[0]
    _, failures = error.split(Suspended)
    return failures or next(_leaves(error))


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each
