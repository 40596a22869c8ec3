"""Which process this is, told by the forks on the way to it: to ask the system takes longer."""

from __future__ import annotations

import itertools
import os

_forks = itertools.count(1)
_generation = 0


def _note_fork() -> None:
    global _generation  # noqa: PLW0603 - of the process, as a fork is
    _generation = next(_forks)


os.register_at_fork(after_in_child=_note_fork)


def generation() -> int:
    """A number that no process has in common with those it was forked from."""
    return _generation
