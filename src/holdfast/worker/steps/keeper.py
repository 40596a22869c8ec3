"""Keeps one command and whatever it starts: a program of its own, which a worker runs by path.

It stands between worker and command because only a process's own parent can be sure whom it ends.
On Linux every descendant that is orphaned, in a session of its own or not, becomes its child; it
ends them when the command has ended, when it is told to, when the lease that it knows of has run
out, and when its worker is gone, however that went. It imports nothing of Holdfast: it starts in a
few milliseconds, and runs without site packages.

It is told `until SECONDS` and `stop`, and tells `pid PID START`, `error NUMBER PATH`, `exit CODE`,
`signalled`, `ended COUNT`, `left COUNT`, a line each.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import sys
import time

SUBREAPER = 36
DEATH_SIGNAL = 1
LOOK_EVERY = 1.0
STRIKE_EVERY = 0.02
GIVE_UP = 5.0
NOTHING_TO_LOOK_FOR = 3600.0

Process = tuple[int, int, str]
"""Its parent, its session (elsewhere than on Linux its group), and when it started."""


def main() -> None:
    control, grace, locale, directory, *arguments = sys.argv[1:]
    if sys.platform == "linux":
        _control(SUBREAPER, 1)
        _control(DEATH_SIGNAL, signal.SIGTERM)
    # Python gives a program in the plain locale another one, and would pass it on.
    if not locale:
        os.environ.pop("LC_CTYPE", None)
    Keeper(int(control), float(grace)).run(arguments, directory or None)


class Keeper:
    def __init__(self, control: int, grace: float) -> None:
        os.set_inheritable(control, False)  # noqa: FBT003 - the standard library's own
        self._told = control
        self._grace = grace
        self._heard = b""
        self._asked = False
        self._signalled = False
        self._until: float | None = None
        self._kill_at: float | None = None
        self._gone = False
        self._command = 0
        self._struck: set[tuple[int, str]] = set()
        self._awake, ring = os.pipe()
        os.set_blocking(ring, False)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask)

    def run(self, arguments: list[str], directory: str | None) -> None:
        self._command, failed = start(arguments, directory)
        # Whoever reads what the command writes waits until nobody can write any more.
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        if failed:
            self._tell(failed)
        else:
            self._tell(f"pid {self._command} {start_of(self._command)}")
        poll = select.poll()
        poll.register(self._told, select.POLLIN)
        poll.register(self._awake, select.POLLIN)
        while not self._gone:
            for number, _ in poll.poll(self._pause() * 1000):
                if number == self._awake:
                    os.read(self._awake, 4096)
                elif not self._hear():
                    poll.unregister(self._told)
            self._reap()
            if not self._gone:
                self._end_what_is_over()
        if self._signalled:
            self._tell("signalled")
        self._tell(f"ended {len(self._struck)}")

    def _ask(self, *_: object) -> None:
        self._asked = self._signalled = True

    def _pause(self) -> float:
        if self._kill_at is not None:
            return STRIKE_EVERY
        if self._until is None:
            return NOTHING_TO_LOOK_FOR
        # What waits does so on a clock that stands still during suspend: look at the other.
        return max(0.0, min(LOOK_EVERY, self._until - clock()))

    def _hear(self) -> bool:
        """Take in what the worker says; false when it is gone."""
        try:
            said = os.read(self._told, 4096)
        except ConnectionError:
            said = b""
        if not said:
            self._asked = True
            return False
        *lines, self._heard = (self._heard + said).split(b"\n")
        for line in lines:
            word, _, value = line.partition(b" ")
            if word == b"until":
                self._until = float(value)
            else:
                self._asked = True
        return True

    def _tell(self, line: str) -> None:
        try:
            os.write(self._told, line.encode("utf-8", "surrogateescape") + b"\n")
        except OSError:
            self._asked = True

    def _reap(self) -> None:
        while not self._gone:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._gone = sys.platform == "linux" or not self._targets()
                return
            if pid == 0:
                return
            if pid == self._command:
                self._tell(f"exit {os.waitstatus_to_exitcode(status)}")
                self._command = 0

    def _end_what_is_over(self) -> None:
        now = clock()
        late = self._until is not None and now >= self._until
        if self._kill_at is None:
            if self._asked or late or not self._command:
                self._kill_at = now + self._grace
                self._strike(signal.SIGTERM)
        elif now >= self._kill_at:
            self._strike(signal.SIGKILL)
            if now >= self._kill_at + GIVE_UP:
                self._tell(f"left {len(self._targets())}")
                self._gone = True

    def _strike(self, number: int) -> None:
        for pid, started in self._targets():
            self._struck.add((pid, started))
            send(pid, started, number)

    def _targets(self) -> list[tuple[int, str]]:
        processes = snapshot()
        found = descendants(processes, {os.getpid()})
        if sys.platform != "linux":
            # Without a reaper, one whose parent has died is known only by having been seen before.
            found += [pid for pid, started in self._struck if _is(processes, pid, started)]
        return [(pid, processes[pid][2]) for pid in found]


def start(arguments: list[str], directory: str | None) -> tuple[int, str]:
    """Run a command in a session of its own; gives its process id, and why it could not be run."""
    ours, theirs = os.pipe()
    keeper = os.getpid()
    command = os.fork()
    if command == 0:
        _become(arguments, directory, keeper, theirs)
    os.close(theirs)
    with open(ours, "rb") as failed:  # noqa: PTH123 - pathlib takes long to import
        return command, failed.read().decode("utf-8", "surrogateescape")


def _become(arguments: list[str], directory: str | None, keeper: int, failed: int) -> None:
    try:
        os.setsid()
        if sys.platform == "linux":
            _control(DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):
            signal.signal(number, signal.SIG_DFL)
        if directory is not None:
            os.chdir(directory)
        os.execvp(arguments[0], arguments)  # noqa: S606 - an argument list, and no shell
    except OSError as error:
        text = f"error {error.errno} {error.filename or arguments[0]}"
        os.write(failed, text.encode("utf-8", "surrogateescape"))
    finally:
        os._exit(127)


def clock() -> float:
    """Seconds that go on while the machine is suspended."""
    return time.clock_gettime(
        time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    )


def snapshot() -> dict[int, Process]:
    """Every process there is."""
    if sys.platform != "linux":
        return _listed()
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib takes long to import
        if name.isdigit() and (read := _read(name)) is not None:
            found[int(name)] = read
    return found


def _read(pid: int | str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # A program whose first thread has ended looks dead, but for the others it has.
    if fields[0] == b"Z" and int(fields[17]) <= 1:
        return None
    return int(fields[1]), int(fields[3]), fields[19].decode()


def _listed() -> dict[int, Process]:
    import subprocess  # noqa: PLC0415 - it takes as long to import as all the rest

    listing = ["/bin/ps", "-axo", "pid=,ppid=,pgid=,lstart="]
    shown = subprocess.run(listing, capture_output=True, text=True, check=False)  # noqa: S603
    rows = [line.split(None, 3) for line in shown.stdout.splitlines()]
    return {int(pid): (int(parent), int(group), started) for pid, parent, group, started in rows}


def descendants(processes: dict[int, Process], of: set[int]) -> list[int]:
    """All below them, each after its parent."""
    # A shell that is told of its child's end before its own goes on with the next line.
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in processes.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, None] = {}
    waiting = list(of)
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _is(processes: dict[int, Process], pid: int, started: str) -> bool:
    return pid in processes and processes[pid][2] == started


def start_of(pid: int) -> str:
    """When a process started; nothing when there is none of that number."""
    read = _read(pid) if sys.platform == "linux" else _listed().get(pid)
    return "" if read is None else read[2]


def send(pid: int, started: str, number: int) -> None:
    """Send a signal to a process, and never to a stranger that got its number since."""
    try:
        handle = _open(pid)
        try:
            if start_of(pid) != started:
                return
            if handle is None:
                os.kill(pid, number)
            elif sys.platform == "linux":
                signal.pidfd_send_signal(handle, number)
        finally:
            if handle is not None:
                os.close(handle)
    except OSError:
        # It is gone, or not ours to end: whoever looks again will see.
        return


def _open(pid: int) -> int | None:
    """A handle on a process, which stays that one's when its number is given away again."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        # A system from before there were any.
        if error.errno in {errno.ENOSYS, errno.EPERM}:
            return None
        raise


def _control(what: int, value: int) -> None:
    ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


if __name__ == "__main__":
    main()
