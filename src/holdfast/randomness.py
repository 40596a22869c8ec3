"""Randomness: a port, so that a seed can stand in for the operating system."""

from __future__ import annotations

import random
from typing import Protocol


class Randomness(Protocol):
    def random(self) -> float:
        """Give a number in [0, 1)."""

    def token_bytes(self, length: int, /) -> bytes: ...


class SystemRandomness:
    def __init__(self) -> None:
        self._source = random.SystemRandom()

    def random(self) -> float:
        return self._source.random()

    def token_bytes(self, length: int, /) -> bytes:
        return self._source.randbytes(length)


class SeededRandomness:
    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)  # noqa: S311 - reproducible on purpose, never in production

    def random(self) -> float:
        return self._source.random()

    def token_bytes(self, length: int, /) -> bytes:
        return self._source.randbytes(length)
