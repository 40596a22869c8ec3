"""Process identity: a process by number, start, boot and machine, and whether it is gone."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from holdfast.worker.steps.process_keeper import find_start

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
LINUX = _BOOT.exists()


@dataclass(frozen=True, kw_only=True)
class ProcessIdentity:
    """A process by its number and start, with the machine, boot and namespace of these."""

    host: str
    boot: str
    processes: str
    process: int
    started: str

    @classmethod
    def own(cls) -> Self:
        return cls(
            host=socket.gethostname(),
            boot=_read_boot_id(),
            processes=str(_NAMESPACE.readlink()) if LINUX else "",
            process=os.getpid(),
            started=find_start(os.getpid()),
        )

    @classmethod
    def read(cls, text: str | None) -> Self | None:
        """The process in a text that `str` gave; None for no text, or one of a newer release."""
        try:
            return None if text is None else cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    @property
    def is_here(self) -> bool:
        """Whether the process is on this machine."""
        return self.host == socket.gethostname()

    @property
    def is_of_this_boot(self) -> bool:
        return self.boot == _read_boot_id()

    @property
    def is_gone(self) -> bool:
        """Whether the process is surely gone; unknown for another machine, boot or container."""
        return self._is_comparable and find_start(self.process) != self.started

    @property
    def is_alive(self) -> bool:
        """Whether the process surely lives."""
        return self._is_comparable and find_start(self.process) == self.started

    @property
    def _is_comparable(self) -> bool:
        own = ProcessIdentity.own()
        return (self.host, self.boot, self.processes) == (own.host, own.boot, own.processes)

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def _read_boot_id() -> str:
    return _BOOT.read_text().strip() if LINUX else ""
