"""A distance to PostgreSQL: a process through which each round trip takes longer, and is counted.

python -m benchmarks.distance HOST PORT SECONDS
"""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from psycopg.conninfo import conninfo_to_dict

CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Distance:
    """The URL of a store behind the process, which tells on request how often it was asked."""

    url: str
    process: subprocess.Popen[str]

    def round_trips(self) -> int:
        """Those of the first connection, which of a store is that of its writer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def distant(url: str, seconds: float) -> Iterator[Distance]:
    """A store over TCP, with so much added to each round trip."""
    there = conninfo_to_dict(url)
    command = [sys.executable, "-m", "benchmarks.distance", str(there["host"])]
    with subprocess.Popen(
        [*command, str(there["port"]), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        here = f"postgresql://{there['user']}@127.0.0.1:{port}/{there['dbname']}"
        try:
            yield Distance(url=f"{here}?sslmode=disable&gssencmode=disable", process=process)
        finally:
            process.terminate()


class Wire:
    """One connection: what comes from either side is sent on half the delay later."""

    def __init__(self, client: socket.socket, server: socket.socket, delay: float) -> None:
        self.round_trips = 0
        self._answered = True
        self._delay = delay / 2
        for source, target, counts in ((client, server, True), (server, client, False)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            receive = partial(self._receive, source, late, counts=counts)
            for work in (receive, partial(self._send_on, target, late)):
                threading.Thread(target=work, daemon=True).start()

    def _receive(
        self, source: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]], *, counts: bool
    ) -> None:
        data = b" "
        while data:
            try:
                data = source.recv(CHUNK)
            except OSError:
                data = b""
            if counts:
                self.round_trips += self._answered
            self._answered = not counts
            late.put((time.perf_counter() + self._delay, data))

    def _send_on(self, target: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        with suppress(OSError):
            while True:
                moment, data = late.get()
                time.sleep(max(0.0, moment - time.perf_counter()))
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)


def main(host: str, port: str, seconds: str) -> None:
    wires: list[Wire] = []
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)

    def tell() -> None:
        for _ in sys.stdin:
            print(wires[0].round_trips, flush=True)

    threading.Thread(target=tell, daemon=True).start()
    while True:
        client, _ = listener.accept()
        wires.append(Wire(client, socket.create_connection((host, int(port))), float(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
