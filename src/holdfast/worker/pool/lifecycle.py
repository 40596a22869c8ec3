"""Lifecycle: how something is started and stopped, and a worker as its own program sees it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Self


class Lifecycle(ABC):
    """Something that is started and stopped by hand, or for the length of a `with` block."""

    @abstractmethod
    def start(self) -> Self: ...

    @abstractmethod
    def stop(self) -> None: ...

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        await asyncio.to_thread(self.__exit__, kind)


class Worker(Lifecycle):
    """Runs plain functions in threads and coroutine functions on a loop of its own.

    Made by `hf.worker(…)`. It logs to `holdfast.worker`: its start at INFO, steps that raised at
    WARNING.
    """

    @property
    @abstractmethod
    def stopping(self) -> bool:
        """Whether it claims nothing more."""

    @abstractmethod
    def start(self) -> Self:
        """Begin to claim and run tasks, and return at once."""

    @abstractmethod
    def stop(self, *, grace: float | str | timedelta | None = None) -> None:
        """Claim nothing more, let what runs finish, and end; a step that says so does not wait.

        With a `grace` what runs has so long to finish: what still runs then is stopped and given
        back, and plain functions are tried again when their lease has run out.
        """

    @abstractmethod
    def run(self) -> None:
        """Work until Ctrl-C, SIGTERM or SIGHUP, then let running steps finish and return.

        A second signal ends the process: commands and coroutines are stopped and given back, the
        leases of functions run out, and another worker tries them again.
        """

    @abstractmethod
    def give_back(self) -> None:
        """Claim nothing more, stop the commands and coroutines that run, and give them back."""

    @abstractmethod
    def drain(self) -> None:
        """Claim nothing more; who wants it to have ended calls `stop` besides."""
