"""The port for hints that something was committed; a lost hint costs only time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Notifier(Protocol):
    @property
    def name(self) -> str:
        """The name by which this process recognizes its own hints."""

    def notify(self, *, served: bool = False) -> None:
        """Send a hint to the subscribers of this process, after a commit of this process.

        `served` says that the workers of this process were given the ready tasks already.
        """

    def subscribe(
        self, callback: Callable[[], None], *, served: bool = True, own: bool = True
    ) -> Callable[[], None]:
        """Call `callback` on hints, from any thread, until the returned function is called.

        A worker asks for no hints about tasks that were `served`. A subscriber that learns of the
        process's `own` commits in another way asks for no hints about those.
        """

    def start(self) -> None: ...

    def close(self) -> None: ...
