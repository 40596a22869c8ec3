"""The port for hints that something was committed; a lost one only costs time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Notifier(Protocol):
    @property
    def name(self) -> str:
        """What this process signs its hints with, so that it need not listen to itself."""

    def notify(self, *, served: bool = False) -> None:
        """Tell the subscribers of this process, after a commit of this process.

        `served` says that what became ready was offered to the process's own workers already.
        """

    def subscribe(
        self, callback: Callable[[], None], *, served: bool = True, own: bool = True
    ) -> Callable[[], None]:
        """Call back on hints, from any thread, until what is returned is called.

        Who is a worker itself need not hear of what was `served`, nor of the process's `own`
        commits who is told of those.
        """

    def start(self) -> None: ...

    def close(self) -> None: ...
