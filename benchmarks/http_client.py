"""The cheapest client there is: requests over kept connections, on one loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit


class Connection:
    """One connection; a request at a time."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._head = (
            f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\n"
        )

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(
            self._host, self._port, limit=2**24
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)

    async def answer(self) -> tuple[int, bytes]:
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        return int(head[9:12]), await self._reader.readexactly(length)

    async def post(self, path: str, body: object) -> Any:  # noqa: ANN401 - JSON is any value
        self.send("POST", f"/api/v1{path}", json.dumps(body).encode())
        status, text = await self.answer()
        assert status < 300, text  # noqa: PLR2004 - a success
        return json.loads(text)

    async def get(self, path: str) -> str:
        self.send("GET", path)
        return (await self.answer())[1].decode()

    async def stream(self, path: str) -> int:
        """Read what comes until the server ends it; how many events that were."""
        self.send("GET", path)
        events = 0
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while chunk := await self._reader.read(2**16):
                events += chunk.count(b"event: event\n")
        return events


async def opened(url: str, token: str, count: int) -> Sequence[Connection]:
    made = [Connection(url, token) for _ in range(count)]
    for begun in range(0, count, 100):
        await asyncio.gather(*(each.__aenter__() for each in made[begun : begun + 100]))
    return made


async def closed(connections: Sequence[Connection]) -> None:
    await asyncio.gather(*(each.__aexit__() for each in connections))
