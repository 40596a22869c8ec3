"""Keeper: the parent process of one command, a program of its own that a worker runs by path.

The keeper stands between worker and command, because only the parent of a process can be sure which
process it ends. On Linux every orphaned descendant of the command becomes a child of the keeper, in
whatever session it is. The keeper ends all of them when the command has ended, when it is told to,
when the lease has run out, and when its worker is gone. It imports nothing of Holdfast, starts in a
few milliseconds, and runs without site packages.

The keeper reads the lines `until SECONDS` and `stop`, and writes the lines `pid PID START`,
`error NUMBER PATH`, `exit CODE`, `signalled`, `ended COUNT` and `left COUNT`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import sys
import time

SET_SUBREAPER = 36
SET_DEATH_SIGNAL = 1
LOOK_EVERY = 1.0
SIGNAL_EVERY = 0.02
GIVE_UP_SECONDS = 5.0
IDLE_SECONDS = 3600.0

Process = tuple[int, int, str]
"""The parent of a process, its session (elsewhere than on Linux its group), and its start."""


def main() -> None:
    control, grace, locale, directory, *arguments = sys.argv[1:]
    if sys.platform == "linux":
        _set_process_option(SET_SUBREAPER, 1)
        _set_process_option(SET_DEATH_SIGNAL, signal.SIGTERM)
    # Python sets LC_CTYPE in a program that runs in the C locale, and the command would inherit it.
    if not locale:
        os.environ.pop("LC_CTYPE", None)
    Keeper(int(control), float(grace)).run(arguments, directory or None)


class Keeper:
    def __init__(self, control: int, grace: float) -> None:
        os.set_inheritable(control, False)  # noqa: FBT003 - the standard library's own
        self._channel = control
        self._grace = grace
        self._received = b""
        self._told_to_end = False
        self._signalled = False
        self._until: float | None = None
        self._kill_at: float | None = None
        self._finished = False
        self._command = 0
        self._signalled_processes: set[tuple[int, str]] = set()
        self._wakeup, ring = os.pipe()
        os.set_blocking(ring, False)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def run(self, arguments: list[str], directory: str | None) -> None:
        self._command, failed = start_command(arguments, directory)
        # Readers of the command's output wait until no process has it open, the keeper included.
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        if failed:
            self._send_line(failed)
        else:
            self._send_line(f"pid {self._command} {find_start(self._command)}")
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        while not self._finished:
            for number, _ in poll.poll(self._pause() * 1000):
                if number == self._wakeup:
                    os.read(self._wakeup, 4096)
                elif not self._read_channel():
                    poll.unregister(self._channel)
            self._reap_children()
            if not self._finished:
                self._end_what_is_over()
        if self._signalled:
            self._send_line("signalled")
        self._send_line(f"ended {len(self._signalled_processes)}")

    def _on_signal(self, *_: object) -> None:
        self._told_to_end = self._signalled = True

    def _pause(self) -> float:
        if self._kill_at is not None:
            return SIGNAL_EVERY
        if self._until is None:
            return IDLE_SECONDS
        # `poll` waits on a clock that stops during suspend; leases use one that does not.
        return max(0.0, min(LOOK_EVERY, self._until - read_clock()))

    def _read_channel(self) -> bool:
        """Read the lines of the worker; false when the worker is gone."""
        try:
            said = os.read(self._channel, 4096)
        except ConnectionError:
            said = b""
        if not said:
            self._told_to_end = True
            return False
        *lines, self._received = (self._received + said).split(b"\n")
        for line in lines:
            word, _, value = line.partition(b" ")
            if word == b"until":
                self._until = float(value)
            else:
                self._told_to_end = True
        return True

    def _send_line(self, line: str) -> None:
        try:
            os.write(self._channel, line.encode("utf-8", "surrogateescape") + b"\n")
        except OSError:
            self._told_to_end = True

    def _reap_children(self) -> None:
        while not self._finished:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._finished = sys.platform == "linux" or not self._list_targets()
                return
            if pid == 0:
                return
            if pid == self._command:
                self._send_line(f"exit {os.waitstatus_to_exitcode(status)}")
                self._command = 0

    def _end_what_is_over(self) -> None:
        now = read_clock()
        late = self._until is not None and now >= self._until
        if self._kill_at is None:
            if self._told_to_end or late or not self._command:
                self._kill_at = now + self._grace
                self._signal_all(signal.SIGTERM)
        elif now >= self._kill_at:
            self._signal_all(signal.SIGKILL)
            if now >= self._kill_at + GIVE_UP_SECONDS:
                self._send_line(f"left {len(self._list_targets())}")
                self._finished = True

    def _signal_all(self, number: int) -> None:
        for pid, started in self._list_targets():
            self._signalled_processes.add((pid, started))
            send_signal(pid, started, number)

    def _list_targets(self) -> list[tuple[int, str]]:
        processes = list_processes()
        found = find_descendants(processes, {os.getpid()})
        if sys.platform != "linux":
            # Without a subreaper, an orphaned process is known only because it was seen before.
            found += [
                pid
                for pid, started in self._signalled_processes
                if _is_same_process(processes, pid, started)
            ]
        return [(pid, processes[pid][2]) for pid in found]


def start_command(arguments: list[str], directory: str | None) -> tuple[int, str]:
    """Run a command in a session of its own; gives its process id, and the error if any."""
    ours, theirs = os.pipe()
    keeper = os.getpid()
    command = os.fork()
    if command == 0:
        _execute_command(arguments, directory, keeper, theirs)
    os.close(theirs)
    with open(ours, "rb") as failed:  # noqa: PTH123 - pathlib takes long to import
        return command, failed.read().decode("utf-8", "surrogateescape")


def _execute_command(arguments: list[str], directory: str | None, keeper: int, failed: int) -> None:
    try:
        os.setsid()
        if sys.platform == "linux":
            _set_process_option(SET_DEATH_SIGNAL, signal.SIGKILL)
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


def read_clock() -> float:
    """Seconds on a clock that counts suspend."""
    return time.clock_gettime(
        time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    )


def list_processes() -> dict[int, Process]:
    """All processes of the machine by number."""
    if sys.platform != "linux":
        return _list_with_ps()
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib takes long to import
        if name.isdigit() and (read := _read_process(name)) is not None:
            found[int(name)] = read
    return found


def _read_process(pid: int | str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # A program whose first thread has ended looks like a zombie while other threads run.
    if fields[0] == b"Z" and int(fields[17]) <= 1:
        return None
    return int(fields[1]), int(fields[3]), fields[19].decode()


def _list_with_ps() -> dict[int, Process]:
    import subprocess  # noqa: PLC0415 - it takes as long to import as all the rest

    listing = ["/bin/ps", "-axo", "pid=,ppid=,pgid=,lstart="]
    shown = subprocess.run(listing, capture_output=True, text=True, check=False)  # noqa: S603
    rows = [line.split(None, 3) for line in shown.stdout.splitlines()]
    return {int(pid): (int(parent), int(group), started) for pid, parent, group, started in rows}


def find_descendants(processes: dict[int, Process], of: set[int]) -> list[int]:
    """All descendants of some processes, each after its parent."""
    # Parents first: a shell whose child is ended before itself goes on with its next line.
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


def _is_same_process(processes: dict[int, Process], pid: int, started: str) -> bool:
    return pid in processes and processes[pid][2] == started


def find_start(pid: int) -> str:
    """The start of a process; empty if there is no process of that number."""
    read = _read_process(pid) if sys.platform == "linux" else _list_with_ps().get(pid)
    return "" if read is None else read[2]


def send_signal(pid: int, started: str, number: int) -> None:
    """Send a signal to a process, and never to another one that got its number since."""
    try:
        handle = _open_handle(pid)
        try:
            if find_start(pid) != started:
                return
            if handle is None:
                os.kill(pid, number)
            elif sys.platform == "linux":
                signal.pidfd_send_signal(handle, number)
        finally:
            if handle is not None:
                os.close(handle)
    except OSError:
        # The process is gone, or belongs to another user; callers look at the processes again.
        return


def _open_handle(pid: int) -> int | None:
    """A handle on a process, which never means another process that gets its number."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        # A system without such handles.
        if error.errno in {errno.ENOSYS, errno.EPERM}:
            return None
        raise


def _set_process_option(what: int, value: int) -> None:
    ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


if __name__ == "__main__":
    main()
