"""Base64 of a secret: the letters of its own, and those it shares with what stands beside it."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache

PADDING = b"="
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LETTERS = [(letter, value) for value, letter in enumerate(_ALPHABET)]
_LETTERS += [(letter, 62 + value) for each in (b"+/", b"-_") for value, letter in enumerate(each)]
_KNOWN = frozenset(letter for letter, _ in _LETTERS)
# Lines of encoded text are longer than most others that are one word.
_LINE = 16
# Of the two alphabets, the standard one is looked for.
ONE_ALPHABET = bytes.maketrans(b"-_", b"+/")
SHORT = 64
# So many letters of a secret that is encoded are no chance.
SURE = 4


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A secret where it begins at one of the three places in what was encoded.

    The first and the last letter may hold some bits of the secret and some of what stands beside
    it: `leads` and `trails` are all letters that can stand there.
    """

    core: bytes
    leads: frozenset[int]
    trails: frozenset[int]

    def extended(self, flat: bytes, start: int) -> tuple[int, int]:
        """Where it begins and ends with the letters that it shares, and with its padding."""
        end = start + len(self.core)
        if start and flat[start - 1] in self.leads:
            start -= 1
        if flat[end : end + 1] and flat[end] in self.trails:
            end += 1
            while flat[end : end + 1] == PADDING:
                end += 1
        return start, end


def encodings(data: bytes) -> Iterator[Encoded]:
    """Data in the standard alphabet, wherever in what was encoded it may begin."""
    for before in range(3):
        first, head = divmod(before * 8, 6)
        last, tail = divmod((before + len(data)) * 8, 6)
        padded = bytes(before) + data
        leads = _sharing(_value(padded, first), low=6 - head) if head else frozenset[int]()
        trails = _sharing(_value(padded, last), high=tail) if tail else frozenset[int]()
        core = base64.b64encode(padded)[first + bool(head) : last]
        yield Encoded(core=core, leads=leads, trails=trails)


def _value(data: bytes, place: int) -> int:
    """The six bits of one letter, where what comes after the data is zero."""
    bits = int.from_bytes(data + bytes(1))
    return bits >> (8 * (len(data) + 1) - 6 * (place + 1)) & 63


@cache
def _sharing(value: int, *, low: int = 6, high: int = 6) -> frozenset[int]:
    """The letters that have some bits of a value, its lowest or its highest."""
    mask = ((1 << low) - 1) & (63 ^ ((1 << (6 - high)) - 1))
    return frozenset(letter for letter, each in _LETTERS if (each ^ value) & mask == 0)


def ends_with_lead(data: bytes, leads: Collection[int], breaks: bytes) -> bool:
    """Whether the last letter may be shared with a secret that follows, on the next line too."""
    text = data.rstrip(breaks)
    return bool(text) and text[-1] in leads and may_go_on(data, breaks)


def may_go_on(data: bytes, breaks: bytes) -> bool:
    """Whether what follows may belong to its last line: that is not over, or is encoded text.

    Else the last letters of most lines would wait for the next line, as a secret may begin so.
    """
    text = data.rstrip(breaks)
    line = text[-_LINE:]
    return len(text) == len(data) or (len(line) == _LINE and _KNOWN.issuperset(line))


class Beginnings:
    """The beginnings of some patterns: short ones by heart, longer ones by how they begin."""

    def __init__(self, patterns: Collection[bytes]) -> None:
        self._short = {each[:n] for each in patterns for n in range(1, min(len(each), SHORT))}
        self._long = [each for each in patterns if len(each) > SHORT]
        self._letters = bytes(set[int]().union(*patterns))
        self.longest = max(map(len, patterns), default=0)

    def longest_at_end(self, data: bytes) -> int:
        """How long the longest of them is with which data ends, short of a whole pattern."""
        tail = data[-self.longest :]
        tail = tail[len(tail.rstrip(self._letters)) :]
        found = [
            len(tail) - place
            for pattern in self._long
            for place in places(tail, pattern[:SHORT])
            if pattern != tail[place:] and pattern.startswith(tail[place:])
        ]
        if found:
            return max(found)
        return next((n for n in range(min(SHORT, len(tail)), 0, -1) if tail[-n:] in self._short), 0)


def places(data: bytes, pattern: bytes) -> Iterator[int]:
    place = data.find(pattern)
    while place >= 0:
        yield place
        place = data.find(pattern, place + len(pattern))
