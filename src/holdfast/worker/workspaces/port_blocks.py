"""Port blocks: ten free ports for each open workspace of a user on this machine."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import StoreUnwritable

PORTS = 10
# Below the ports that systems give to clients.
FIRST, LAST = 20_000, 32_000


@contextmanager
def hold_ports(folder: Path) -> Iterator[int]:
    """The first of a block of free ports, which no other workspace gets until the block ends."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock, first = _find_block(folder)
    except OSError as error:
        raise StoreUnwritable(folder, error.strerror) from error
    try:
        yield first
    finally:
        os.close(lock)


def _find_block(folder: Path) -> tuple[int, int]:
    for first in range(FIRST, LAST, PORTS):
        lock = os.open(folder / f"{first}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        if all(_is_free(port) for port in range(first, first + PORTS)):
            return lock, first
        os.close(lock)
    raise StoreUnwritable(folder, "no block of free ports is left")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
