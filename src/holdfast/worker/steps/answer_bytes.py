"""Answer bytes: HTTP bodies, unpacked up to a limit; alone because steps and clients use them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import httpx

# Accepts the headers of gzip and of zlib.
_EITHER = zlib.MAX_WBITS | 32
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
# The header `Accept-Encoding` of requests.
ACCEPTED = "gzip, deflate"


class AnswerBytes:
    """A body of at most one byte more than `most`: a few packed bytes can stand for gigabytes.

    An answer that is packed more than once, or wrongly, raises `httpx.DecodingError`.
    """

    def __init__(self, headers: Mapping[str, str], most: int) -> None:
        said = headers.get("content-encoding", "").lower().split(",")
        packed = [each.strip() for each in said if each.strip() in _PACKED]
        if len(packed) > 1:
            raise httpx.DecodingError("the answer is packed more than once")
        self._unpack = zlib.decompressobj(_EITHER) if packed else None
        self._most = most
        self.content = bytearray()

    def add(self, piece: bytes) -> bool:
        """Add the next piece as it was sent; gives whether the body is within `most` so far."""
        room = self._most + 1 - len(self.content)
        try:
            plain = piece if self._unpack is None else self._unpack.decompress(piece, room)
        except zlib.error as error:
            raise httpx.DecodingError(str(error)) from error
        self.content += plain[:room]
        return len(self.content) <= self._most
