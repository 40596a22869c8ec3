"""An answer leaves with one call, and never later than its connection needs it."""

from __future__ import annotations

import asyncio

from holdfast.server.buffered_transport import MAX_BUFFERED, BufferedTransport


class Wire(asyncio.Transport):
    """Keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.closed = True


def test_writes_of_one_turn_are_sent_together_in_their_order() -> None:
    async def work() -> None:
        wire = Wire()
        gathered = BufferedTransport(wire)
        gathered.write(b"head ")
        gathered.write(b"body")
        assert wire.sent == []
        await asyncio.sleep(0)
        assert wire.sent == [b"head body"]
        gathered.write(b"next")
        await asyncio.sleep(0)
        assert wire.sent == [b"head body", b"next"]

    asyncio.run(work())


def test_a_connection_is_closed_after_what_was_written() -> None:
    async def work() -> None:
        wire = Wire()
        gathered = BufferedTransport(wire)
        gathered.write(b"last words")
        gathered.close()
        assert (wire.sent, wire.closed) == ([b"last words"], True)
        await asyncio.sleep(0)
        assert wire.sent == [b"last words"]

    asyncio.run(work())


def test_much_is_not_held_back() -> None:
    async def work() -> None:
        wire = Wire()
        BufferedTransport(wire).write(b"." * (MAX_BUFFERED + 1))
        assert len(wire.sent) == 1

    asyncio.run(work())
