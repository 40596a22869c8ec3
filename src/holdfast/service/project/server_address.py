"""The server address of a store, apart from `project`, which must not load process identities.

A server writes it to a file beside the store, where commands on the same machine read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.worker.files.state_directory import find_state_directory
from holdfast.worker.files.state_paths import read_private, write_private
from holdfast.worker.steps.process_identity import ProcessIdentity

ADDRESS_FILE = "server"
# A server that listens on every interface is called on the loopback interface.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - it is where to ask, not to listen


@contextmanager
def announce_server(url: str, address: str) -> Iterator[None]:
    """Write the address of this server until the block ends; the last of several counts."""
    path = find_state_directory(url).root / ADDRESS_FILE
    for everywhere, here in _LOOPBACK.items():
        address = address.replace(f"://{everywhere}:", f"://{here}:")
    text = json.dumps({"url": address, "origin": str(ProcessIdentity.own())})
    # The server works all the same where the file cannot be written.
    with suppress(OSError):
        write_private(path, text, path.parent)
    try:
        yield
    finally:
        with suppress(OSError):
            if read_private(path, path.parent).decode() == text:
                path.unlink()


def find_server(url: str) -> str | None:
    """The address of the server of a store, if its process lives on this machine."""
    home = find_state_directory(url).root
    try:
        told = json.loads(read_private(home / ADDRESS_FILE, home))
        origin = ProcessIdentity.read(told["origin"])
        address = str(told["url"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    # The caller will send a token there, which another process on the same port must not get.
    return address if origin is not None and origin.is_alive else None
