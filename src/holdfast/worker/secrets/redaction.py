"""Redaction: secrets are replaced in everything that is written down.

Secrets are found in many spellings, in base64, and when a stream cuts them in two. The log of the
HTTP client is kept quiet while Holdfast sends a request, because a secret may be in it.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.worker.secrets.spellings import SecretSpan, Spellings

PADDING = b"="
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LETTERS = [(letter, value) for value, letter in enumerate(_ALPHABET)]
_LETTERS += [(letter, 62 + value) for each in (b"+/", b"-_") for value, letter in enumerate(each)]
_ALL_LETTERS = frozenset(letter for letter, _ in _LETTERS)
# A line of encoded text is longer than most other lines of one word.
_ENCODED_LINE = 16
# Text in the URL-safe alphabet is translated to the standard one before it is searched.
ONE_ALPHABET = bytes.maketrans(b"-_", b"+/")
SHORT_PATTERN = 64
# So many letters of an encoded secret at the end of data are no accident.
CERTAIN_LETTERS = 4
SHORTEST_SECRET = 8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BREAKS = b"\r\n"
# Whether Holdfast itself sends the HTTP request that is being logged.
_is_own_request: ContextVar[bool] = ContextVar("holdfast_quiet_httpx", default=False)


@dataclass(frozen=True, kw_only=True)
class EncodedSecret:
    """The base64 form of a secret that begins at one of the three offsets in a group.

    The first and the last letter can hold bits of the secret and of its neighbours: `leads` and
    `trails` are all letters that can stand there.
    """

    core: bytes
    leads: frozenset[int]
    trails: frozenset[int]

    def extended(self, flat: bytes, start: int) -> tuple[int, int]:
        """The bounds of the encoded secret with its shared letters and its padding."""
        end = start + len(self.core)
        if start and flat[start - 1] in self.leads:
            start -= 1
        if flat[end : end + 1] and flat[end] in self.trails:
            end += 1
            while flat[end : end + 1] == PADDING:
                end += 1
        return start, end


def encode_at_each_offset(data: bytes) -> Iterator[EncodedSecret]:
    """Data in base64 for each of the three offsets at which it can begin."""
    for before in range(3):
        first, head = divmod(before * 8, 6)
        last, tail = divmod((before + len(data)) * 8, 6)
        padded = bytes(before) + data
        leads = (
            _letters_sharing_bits(_six_bits(padded, first), low=6 - head)
            if head
            else frozenset[int]()
        )
        trails = (
            _letters_sharing_bits(_six_bits(padded, last), high=tail) if tail else frozenset[int]()
        )
        core = base64.b64encode(padded)[first + bool(head) : last]
        yield EncodedSecret(core=core, leads=leads, trails=trails)


def _six_bits(data: bytes, number: int) -> int:
    """The six bits of one letter; the bits after the data are zero."""
    bits = int.from_bytes(data + bytes(1))
    return bits >> (8 * (len(data) + 1) - 6 * (number + 1)) & 63


@cache
def _letters_sharing_bits(value: int, *, low: int = 6, high: int = 6) -> frozenset[int]:
    """The letters that share the lowest or the highest bits of a value."""
    mask = ((1 << low) - 1) & (63 ^ ((1 << (6 - high)) - 1))
    return frozenset(letter for letter, each in _LETTERS if (each ^ value) & mask == 0)


def ends_with_lead(data: bytes, leads: Collection[int], breaks: bytes) -> bool:
    """Whether a secret that follows, also on the next line, may share the last letter."""
    text = data.rstrip(breaks)
    return bool(text) and text[-1] in leads and may_go_on(data, breaks)


def may_go_on(data: bytes, breaks: bytes) -> bool:
    """Whether the data that follows may continue the last line: it is unfinished, or is encoded.

    Without this check the last letters of most lines would be held back until the next line.
    """
    text = data.rstrip(breaks)
    line = text[-_ENCODED_LINE:]
    return len(text) == len(data) or (len(line) == _ENCODED_LINE and _ALL_LETTERS.issuperset(line))


class PatternPrefixes:
    """The prefixes of some patterns: short prefixes in a set, longer ones compared."""

    def __init__(self, patterns: Collection[bytes]) -> None:
        self._short = {
            each[:n] for each in patterns for n in range(1, min(len(each), SHORT_PATTERN))
        }
        self._long = [each for each in patterns if len(each) > SHORT_PATTERN]
        self._letters = bytes(set[int]().union(*patterns))
        self.longest = max(map(len, patterns), default=0)

    def longest_at_end(self, data: bytes) -> int:
        """The length of the longest prefix with which data ends, without whole patterns."""
        tail = data[-self.longest :]
        tail = tail[len(tail.rstrip(self._letters)) :]
        found = [
            len(tail) - offset
            for pattern in self._long
            for offset in find_offsets(tail, pattern[:SHORT_PATTERN])
            if pattern != tail[offset:] and pattern.startswith(tail[offset:])
        ]
        if found:
            return max(found)
        return next(
            (n for n in range(min(SHORT_PATTERN, len(tail)), 0, -1) if tail[-n:] in self._short), 0
        )


def find_offsets(data: bytes, pattern: bytes) -> Iterator[int]:
    offset = data.find(pattern)
    while offset >= 0:
        yield offset
        offset = data.find(pattern, offset + len(pattern))


class Redaction:
    """Replaces each known secret by `[secret NAME]`."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        # Encoded forms are searched without regard to line ends, because programs wrap base64.
        spelled: dict[bytes, bytes] = {}
        # Hexadecimal and UTF-16 forms have one spelling each.
        hexadecimal: dict[bytes, bytes] = {}
        utf_16: dict[bytes, bytes] = {}
        self._encoded: dict[bytes, tuple[EncodedSecret, bytes]] = {}
        for name, value in secrets.items():
            replacement = f"[secret {check_secret(name, value)}]".encode()
            for text in {
                value,
                *(line for line in value.splitlines() if len(line) >= SHORTEST_SECRET),
            }:
                spelled.update(dict.fromkeys(_as_bytes(text), replacement))
                hexadecimal.update(dict.fromkeys(_in_hexadecimal(text), replacement))
                utf_16.update(dict.fromkeys(_in_utf_16(text), replacement))
                for data in _encoded_words(text):
                    self._encoded.update(
                        {each.core: (each, replacement) for each in encode_at_each_offset(data)}
                    )
        self._spellings = Spellings(spelled)
        self._whole = {**hexadecimal, **utf_16}
        self._whole_prefixes = (PatternPrefixes(hexadecimal), PatternPrefixes(utf_16))
        self._encoded_prefixes = PatternPrefixes(self._encoded)
        self._leads = frozenset[int]().union(*(each.leads for each, _ in self._encoded.values()))

    def __bool__(self) -> bool:
        return bool(self._encoded)

    def clean(self, data: bytes) -> bytes:
        """The data without any secret."""
        return _replace(data, self._find_spans(data)) if self else data

    def text(self, text: str) -> str:
        if not self:
            return text
        return self.clean(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:  # noqa: ANN401 - JSON is any value
        """The same JSON without any secret, in keys and numbers too."""
        if not self or value is None or isinstance(value, bool):
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.value(key): self.value(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.value(inner) for inner in value]
            case int() | float():
                shown = self.text(str(value))
                return value if shown == str(value) else shown
            case _:
                return value

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """The clean part of data that goes on, and the rest, which may begin a secret."""
        if not self:
            return data, b""
        encoded = self._encoded_spans(data)
        spelled, begun = self._spellings.search(data)
        spans = _merged([*spelled, *self._whole_spans(data), *encoded])
        held = min(begun, self._find_begun(data))
        whole = len(data.rstrip(_BREAKS))
        # The letter that an encoded secret shares with the data after it may be still to come.
        held = min([held, *(start for start, end, _ in encoded if end == whole)])
        for start, end, _ in spans:
            if start < held < end:
                held = start
        return _replace(data[:held], [each for each in spans if each[1] <= held]), data[held:]

    def _find_spans(self, data: bytes) -> list[SecretSpan]:
        spelled, _ = self._spellings.search(data)
        return _merged([*spelled, *self._whole_spans(data), *self._encoded_spans(data)])

    def _whole_spans(self, data: bytes) -> list[SecretSpan]:
        return [
            (start, start + len(form), replacement)
            for form, replacement in self._whole.items()
            for start in find_offsets(data, form)
        ]

    def _encoded_spans(self, data: bytes) -> list[SecretSpan]:
        flat = data.translate(ONE_ALPHABET, _BREAKS)
        found = [
            (*each.extended(flat, start), replacement)
            for each, replacement in self._encoded.values()
            for start in find_offsets(flat, each.core)
        ]
        if not found:
            return []
        where = [offset for offset, byte in enumerate(data) if byte not in _BREAKS]
        return [
            (where[start], where[end - 1] + 1, replacement) for start, end, replacement in found
        ]

    def _find_begun(self, data: bytes) -> int:
        """The offset of the longest end of data that may begin an encoded secret."""
        begun = len(data) - max(each.longest_at_end(data) for each in self._whole_prefixes)
        end = data[-3 * self._encoded_prefixes.longest :]
        size = self._encoded_prefixes.longest_at_end(end.translate(ONE_ALPHABET, _BREAKS))
        flat = [offset for offset, byte in enumerate(end) if byte not in _BREAKS] if size else []
        if size and size < len(flat) and end[flat[-size - 1]] in self._leads:
            size += 1
        if size and (size >= CERTAIN_LETTERS or may_go_on(end, _BREAKS)):
            begun = min(begun, len(data) - len(end) + flat[-size])
        elif not size and ends_with_lead(end, self._leads, _BREAKS):
            begun = min(begun, len(data.rstrip(_BREAKS)) - 1)
        return begun


class RedactionStream:
    """Redaction of bytes that come in pieces; a secret that is cut in two is found too."""

    def __init__(self, current_redaction: Callable[[], Redaction]) -> None:
        # Called for each piece, because more secrets may become known meanwhile.
        self._current_redaction = current_redaction
        self._held_back = b""

    def feed(self, data: bytes) -> bytes:
        clean, self._held_back = self._current_redaction().split(self._held_back + data)
        return clean

    def flush(self) -> bytes:
        """The rest that was held back, at the end of the stream."""
        held, self._held_back = self._held_back, b""
        return self._current_redaction().clean(held)


def check_secret(name: str, value: str) -> str:
    """The name of a secret; refuses a secret that is too short to be redacted."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("secret", f"{name!r} is no name: letters, digits and _")
    if len(value) < SHORTEST_SECRET:
        reason = (
            f"has {len(value)} characters, and must have {SHORTEST_SECRET} to be kept out of logs"
        )
        raise InvalidInput(f"secret {name}", reason)
    return name


def _as_bytes(text: str) -> Iterator[bytes]:
    """The bytes of a text; with surrogates, also as the environment and as readers have them."""
    yield text.encode("utf-8", "surrogatepass")
    with suppress(UnicodeEncodeError):
        raw = text.encode("utf-8", "surrogateescape")
        yield from (raw, raw.decode("utf-8", "replace").encode())


def _in_hexadecimal(text: str) -> Iterator[bytes]:
    for data in map(bytes.hex, _as_bytes(text)):
        yield from (data.encode(), data.upper().encode())


def _encoded_words(text: str) -> Iterator[bytes]:
    """The forms of a text that may have been encoded: itself, as JSON, and in UTF-16."""
    forms = {text, *(json.dumps(text, ensure_ascii=each)[1:-1] for each in (True, False))}
    yield from {each for form in forms for each in _as_bytes(form)}
    yield from _in_utf_16(text)


def _in_utf_16(text: str) -> Iterator[bytes]:
    """A text in UTF-16 in both byte orders, or once if both are equal but for one byte."""
    little, big = (text.encode(f"utf-16-{each}", "surrogatepass") for each in ("le", "be"))
    yield from (little[:-1],) if little[:-1] == big[1:] else (little, big)


def _merged(spans: list[SecretSpan]) -> list[SecretSpan]:
    merged: list[SecretSpan] = []
    for start, end, replacement in sorted(spans, key=lambda each: (each[0], -each[1])):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, replacement))
    return merged


def _replace(data: bytes, spans: list[SecretSpan]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end, replacement in spans:
        pieces += [data[done:start], replacement]
        done = end
    return b"".join([*pieces, data[done:]])


class _QuietFilter(logging.Filter):
    def filter(self, _: logging.LogRecord) -> bool:
        return not _is_own_request.get()


# The loggers below httpx log the headers of answers too.
for _each in (
    "httpx",
    "httpcore.connection",
    "httpcore.http11",
    "httpcore.http2",
    "httpcore.proxy",
):
    logging.getLogger(_each).addFilter(_QuietFilter())


@contextmanager
def quiet_httpx() -> Iterator[None]:
    before = _is_own_request.set(True)
    try:
        yield
    finally:
        _is_own_request.reset(before)
