"""Orphans: processes that remain when a worker is killed together with the keepers of its commands.

While a command runs, a record names its worker. A later worker that finds the recorded one gone
ends the remaining processes: they are known by their session, by their ancestors, or by the attempt
in their environment. They must have started after the record was made, so that no other process is
ever taken for one of them.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.worker.files.state_paths import StatePath
from holdfast.worker.steps.command import GRACE
from holdfast.worker.steps.process_identity import LINUX, ProcessIdentity
from holdfast.worker.steps.process_keeper import (
    GIVE_UP_SECONDS,
    SIGNAL_EVERY,
    find_descendants,
    list_processes,
    send_signal,
)

_TICKS = os.sysconf("SC_CLK_TCK")

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class CommandRecord:
    """A running command: its attempt, its worker, and its own process once there is one."""

    task: str
    attempt: int
    worker: int
    worker_started: str
    host: str
    boot: str
    # The namespace of process numbers.
    processes: str
    since: str
    command: int = 0
    command_started: str = ""

    @property
    def environment_entries(self) -> set[bytes]:
        """The entries in the environment of every process of the attempt."""
        return {f"HOLDFAST_TASK={self.task}".encode(), f"HOLDFAST_ATTEMPT={self.attempt}".encode()}

    @property
    def worker_process(self) -> ProcessIdentity:
        """The process of the worker."""
        return ProcessIdentity(
            host=self.host,
            boot=self.boot,
            processes=self.processes,
            process=self.worker,
            started=self.worker_started,
        )

    def path(self, directory: StatePath) -> StatePath:
        return directory / f"{self.task}.{self.attempt}.json"

    def write(self, directory: StatePath) -> None:
        self.path(directory).write(json.dumps(asdict(self)).encode())

    def remove(self, directory: StatePath) -> None:
        self.path(directory).remove()


def make_record(task: str, attempt: int) -> CommandRecord:
    """The record of a command that this process is about to start."""
    own = ProcessIdentity.own()
    return CommandRecord(
        task=task,
        attempt=attempt,
        worker=own.process,
        worker_started=own.started,
        host=own.host,
        boot=own.boot,
        processes=own.processes,
        since=str(int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)) if LINUX else "",
    )


def end_orphans(directory: StatePath, *, grace: float = GRACE) -> list[CommandRecord]:
    """End the processes that vanished workers have left; gives the records of their commands."""
    gone: list[CommandRecord] = []
    for name in directory.list_names():
        if not name.endswith(".json"):
            continue
        record = _read_record(directory / name)
        # The file name must match the record, so that a forged record leads to no other file.
        if record is None or name != f"{record.task}.{record.attempt}.json":
            log.warning("%s cannot be read, and is left alone", directory / name)
            continue
        if _may_be_alive(record):
            continue
        gone.append(record)
        ended = end_processes_of(record, grace=grace)
        if ended:
            said = "ended %d processes that a worker left of attempt %d of %s"
            log.warning(said, ended, record.attempt, record.task)
        record.remove(directory)
    return gone


def _read_record(path: StatePath) -> CommandRecord | None:
    try:
        return CommandRecord(**json.loads(path.read()))
    except (OSError, ValueError, TypeError):
        return None


def end_processes_of(record: CommandRecord, *, grace: float = GRACE) -> int:
    """End the remaining processes of one attempt; gives their number."""
    if not record.worker_process.is_of_this_boot:
        return 0
    struck: set[tuple[int, str]] = set()
    kill_at = time.monotonic() + grace
    while found := _find_processes_of(record):
        now = time.monotonic()
        for pid, started in found:
            if now >= kill_at:
                send_signal(pid, started, signal.SIGKILL)
            elif (pid, started) not in struck:
                send_signal(pid, started, signal.SIGTERM)
        struck.update(found)
        if now >= kill_at + GIVE_UP_SECONDS:
            log.error("%d processes of %s cannot be ended: %s", len(found), record.task, found)
            break
        time.sleep(SIGNAL_EVERY)
    return len(struck)


def _may_be_alive(record: CommandRecord) -> bool:
    """Whether the worker lives, or may live on another machine or in another container."""
    origin = record.worker_process
    return not origin.is_gone and (origin.is_of_this_boot or not origin.is_here)


def _find_processes_of(record: CommandRecord) -> list[tuple[int, str]]:
    processes = list_processes()
    # If another process has the number of the command now, the session of that number is its own.
    leader = processes.get(record.command)
    own = record.command and (leader is None or leader[2] == record.command_started)
    roots = {
        pid
        for pid, (_, session, started) in processes.items()
        if _is_command_itself(record, pid, started)
        or (own and session == record.command and _started_since(record, started))
        or (
            _started_since(record, started) and record.environment_entries <= _read_environment(pid)
        )
    }
    found = {*roots, *find_descendants(processes, roots)}
    tops = {pid for pid in found if processes[pid][0] not in found}
    ordered = (*tops, *find_descendants(processes, tops))
    return [(pid, processes[pid][2]) for pid in ordered if pid != os.getpid()]


def _is_command_itself(record: CommandRecord, pid: int, started: str) -> bool:
    return pid == record.command and started == record.command_started


def _started_since(record: CommandRecord, started: str) -> bool:
    return bool(record.since) and int(started) >= int(record.since)


def _read_environment(pid: int) -> set[bytes]:
    with suppress(OSError):
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    return set()
