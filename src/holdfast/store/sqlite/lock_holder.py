"""Lock holder: the process that keeps others from writing a SQLite file, as Linux tells it.

Neither the file nor its index is opened for that: closing it again would drop this process's own
locks on it. `/proc/locks` names the device and the inode of each locked file, and the process that
has it locked. Some file systems (btrfs, overlay) tell another device there than `stat` does: then a
process is named only if it has the file open.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

# The byte of the index that a connection locks while it writes, in WAL mode.
WRITE_BYTE = 120
LONGEST_COMMAND = 80
_LOCKS = Path("/proc/locks")
# 12: POSIX  ADVISORY  WRITE 4711 fd:01:271936 120 120
_LOCK = re.compile(
    r"\d+: (?:POSIX|OFDLCK) +ADVISORY +WRITE (-?\d+) (\w+):(\w+):(\d+) (\d+) (\d+|EOF)"
)


@dataclass(frozen=True, kw_only=True)
class LockHolder:
    pid: int
    # The name of its program and its arguments, shortened; empty where the system does not tell.
    command: str
    # Whether it was stopped by a signal, and whether it was stopped by a debugger.
    stopped: bool = False
    traced: bool = False

    def __str__(self) -> str:
        named = f"process {self.pid}" + (f" ({self.command})" if self.command else "")
        if self.traced:
            return f"{named}, which a debugger has stopped,"
        return f"{named}, which is stopped," if self.stopped else named

    @property
    def remedy(self) -> str:
        """What to type so that the process gives the lock back."""
        if self.traced:
            return f"let it go on in the debugger, or end it with `kill -KILL {self.pid}`"
        if self.stopped:
            return f"`kill -CONT {self.pid}` lets it go on"
        return f"wait for it, or end it with `kill {self.pid}`"


def find_lock_holder(file: Path, index: Path) -> LockHolder | None:
    """The process that has a file locked for writing, or all of it; None where none is seen."""
    try:
        locks = _LOCKS.read_text(encoding="ascii", errors="replace")
        looked_for = file.stat(), index.stat()
    except OSError:
        return None
    for found in _LOCK.finditer(locks):
        pid, major, minor, inode, first, last = found.groups()
        writes = int(first) <= WRITE_BYTE and (last == "EOF" or int(last) >= WRITE_BYTE)
        # In WAL mode the file itself is locked for writing only by whoever wants it alone.
        for status in looked_for if writes else looked_for[:1]:
            if int(inode) == status.st_ino and (
                (int(major, 16), int(minor, 16))
                == (os.major(status.st_dev), os.minor(status.st_dev))
                or _has_open(int(pid), status)
            ):
                return _describe_process(int(pid))
    return None


def _has_open(pid: int, status: os.stat_result) -> bool:
    """Whether a process has a file open, as far as the system shows it to this one."""
    try:
        opened = list((Path("/proc") / str(pid) / "fd").iterdir())
    except OSError:
        return False
    return any(_is_same(each, status) for each in opened)


def _is_same(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), status)
    except OSError:
        return False


def _describe_process(pid: int) -> LockHolder | None:
    """What the system tells of a process; None for one that it does not show to this one."""
    if pid <= 0:
        return None
    state = command = ""
    try:
        folder = Path("/proc") / str(pid)
        # Behind the name of the program, which may hold anything.
        state = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        command = _shorten(" ".join(word for word in words if word))
    except (OSError, IndexError):
        pass
    return LockHolder(pid=pid, command=command, stopped=state == "T", traced=state == "t")


def _shorten(command: str) -> str:
    shown = "".join(each if each.isprintable() else "?" for each in command)
    return shown if len(shown) <= LONGEST_COMMAND else shown[: LONGEST_COMMAND - 1] + "…"
