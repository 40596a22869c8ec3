"""Which process of which machine something comes from, and whether that process is gone."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from holdfast.worker.steps.keeper import find_start

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
LINUX = _BOOT.exists()


@dataclass(frozen=True, kw_only=True)
class ProcessIdentity:
    """A process by its number and its start, and the machine, boot and namespace these are of."""

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
        """What `str` gave; None where there is none, or a newer release wrote it."""
        try:
            return None if text is None else cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    @property
    def is_here(self) -> bool:
        """Whether it is of this machine."""
        return self.host == socket.gethostname()

    @property
    def is_of_this_boot(self) -> bool:
        return self.boot == _read_boot_id()

    @property
    def is_gone(self) -> bool:
        """Whether that can be said for sure: of another machine, boot or container it cannot."""
        return self._is_comparable and find_start(self.process) != self.started

    @property
    def is_alive(self) -> bool:
        """Whether that can be said for sure."""
        return self._is_comparable and find_start(self.process) == self.started

    @property
    def _is_comparable(self) -> bool:
        own = ProcessIdentity.own()
        return (self.host, self.boot, self.processes) == (own.host, own.boot, own.processes)

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def _read_boot_id() -> str:
    return _BOOT.read_text().strip() if LINUX else ""
