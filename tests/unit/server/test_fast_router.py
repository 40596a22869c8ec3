"""The body of a call that is taken past the framework."""

from __future__ import annotations

import asyncio
from time import process_time

from starlette.types import Message

from holdfast.server.fast_router import read_body

PIECES = 12_000
PIECE = b"x" * 1_000


def test_a_body_in_very_many_pieces_takes_no_longer_for_that() -> None:
    left = [PIECE] * PIECES

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    begun = process_time()
    assert asyncio.run(read_body(receive)) == PIECE * PIECES
    assert process_time() - begun < 1
