"""Where the server of a store listens, told to whoever types a command beside the same store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.worker.files.state_directory import find_state_directory
from holdfast.worker.files.state_paths import read_private, write_private
from holdfast.worker.steps.process_identity import ProcessIdentity

ADDRESS_FILE = "server"
# Who listens everywhere is asked here.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - it is where to ask, not to listen


@contextmanager
def announce_server(url: str, address: str) -> Iterator[None]:
    """Say where this process serves a store, until the block ends; of several the last is told."""
    path = find_state_directory(url).root / ADDRESS_FILE
    for everywhere, here in _LOOPBACK.items():
        address = address.replace(f"://{everywhere}:", f"://{here}:")
    text = json.dumps({"url": address, "origin": str(ProcessIdentity.own())})
    # It is served all the same where nothing can be written.
    with suppress(OSError):
        write_private(path, text, path.parent)
    try:
        yield
    finally:
        with suppress(OSError):
            if read_private(path, path.parent).decode() == text:
                path.unlink()


def find_server(url: str) -> str | None:
    """Where a store is served, by a process of this machine that lives."""
    home = find_state_directory(url).root
    try:
        told = json.loads(read_private(home / ADDRESS_FILE, home))
        origin = ProcessIdentity.read(told["origin"])
        address = str(told["url"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    # A token is to be sent there: never to a stranger who got the port since.
    return address if origin is not None and origin.is_alive else None
