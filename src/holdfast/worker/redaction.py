"""Keeps secrets out of all that is written down: in whole, in pieces, and in other spellings."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from holdfast.errors import InvalidInput
from holdfast.worker.encoded import Encoded, encodings, ends_with_lead

LEAST = 8
SHORT = 64
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BREAKS = b"\r\n"
_LOWER_HEX = re.compile(r"%[0-9A-F]{2}")
_Span = tuple[int, int, bytes]


class Redaction:
    """Replaces each known secret by `[secret NAME]`."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        # Those that other programs break into lines are looked for without regard to line ends.
        self._plain: dict[bytes, bytes] = {}
        self._wrapped: dict[bytes, tuple[Encoded, bytes]] = {}
        for name, value in secrets.items():
            mark = f"[secret {check_secret(name, value)}]".encode()
            for text in {value, *(line for line in value.splitlines() if len(line) >= LEAST)}:
                self._plain.update(dict.fromkeys(_spellings(text), mark))
                self._wrapped.update({each.core: (each, mark) for each in encodings(text)})
        self._beginnings = Beginnings(self._plain)
        self._wrapped_beginnings = Beginnings(self._wrapped)
        self._leads = frozenset[int]().union(*(each.leads for each, _ in self._wrapped.values()))

    def __bool__(self) -> bool:
        return bool(self._plain)

    def clean(self, data: bytes) -> bytes:
        """The same without any secret."""
        return _replace(data, self._spans(data)) if self else data

    def text(self, text: str) -> str:
        if not self:
            return text
        return self.clean(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:  # noqa: ANN401 - JSON is any value
        """The same JSON without any secret, in keys and numbers either."""
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
        """What can be written down of data that goes on, and the rest, which may begin a secret."""
        if not self:
            return data, b""
        encoded = self._encoded_spans(data)
        spans = _merged([*self._plain_spans(data), *encoded])
        held = self._begun(data)
        whole = len(data.rstrip(_BREAKS))
        # The letter that an encoded one shares with what follows may be still to come.
        held = min([held, *(start for start, end, _ in encoded if end == whole)])
        for start, end, _ in spans:
            if start < held < end:
                held = start
        return _replace(data[:held], [each for each in spans if each[1] <= held]), data[held:]

    def _spans(self, data: bytes) -> list[_Span]:
        return _merged([*self._plain_spans(data), *self._encoded_spans(data)])

    def _plain_spans(self, data: bytes) -> list[_Span]:
        return [
            (start, start + len(pattern), mark)
            for pattern, mark in self._plain.items()
            for start in _places(data, pattern)
        ]

    def _encoded_spans(self, data: bytes) -> list[_Span]:
        flat = data.translate(None, _BREAKS)
        found = [
            (*each.extended(flat, start), mark)
            for each, mark in self._wrapped.values()
            for start in _places(flat, each.core)
        ]
        if not found:
            return []
        where = [place for place, byte in enumerate(data) if byte not in _BREAKS]
        return [(where[start], where[end - 1] + 1, mark) for start, end, mark in found]

    def _begun(self, data: bytes) -> int:
        """Where the longest end of data begins that may be the beginning of a secret."""
        begun = len(data) - self._beginnings.longest_at_end(data)
        end = data[-3 * self._wrapped_beginnings.longest :]
        size = self._wrapped_beginnings.longest_at_end(end.translate(None, _BREAKS))
        flat = [place for place, byte in enumerate(end) if byte not in _BREAKS] if size else []
        if size and size < len(flat) and end[flat[-size - 1]] in self._leads:
            size += 1
        if size:
            begun = min(begun, len(data) - len(end) + flat[-size])
        elif ends_with_lead(end, self._leads, _BREAKS):
            begun = min(begun, len(data.rstrip(_BREAKS)) - 1)
        return begun


class Beginnings:
    """The beginnings of some patterns: short ones by heart, longer ones by how they begin."""

    def __init__(self, patterns: Collection[bytes]) -> None:
        self._short = {each[:n] for each in patterns for n in range(1, min(len(each), SHORT))}
        self._long = [each for each in patterns if len(each) > SHORT]
        self.longest = max(map(len, patterns), default=0)

    def longest_at_end(self, data: bytes) -> int:
        """How long the longest of them is with which data ends, short of a whole pattern."""
        tail = data[-self.longest :]
        found = [
            len(tail) - place
            for pattern in self._long
            for place in _places(tail, pattern[:SHORT])
            if pattern != tail[place:] and pattern.startswith(tail[place:])
        ]
        if found:
            return max(found)
        return next((n for n in range(min(SHORT, len(tail)), 0, -1) if tail[-n:] in self._short), 0)


class Stream:
    """Bytes that come in pieces: a secret that is cut in two is found all the same."""

    def __init__(self, present: Callable[[], Redaction]) -> None:
        # Asked for each time: what is a secret may become known while they come.
        self._present = present
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        clean, self._held = self._present().split(self._held + data)
        return clean

    def flush(self) -> bytes:
        """What was held back, at the end of all."""
        held, self._held = self._held, b""
        return self._present().clean(held)


def check_secret(name: str, value: str) -> str:
    """The name of a secret; refuses one that cannot be kept out of what is written down."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("secret", f"{name!r} is no name: letters, digits and _")
    if len(value) < LEAST:
        reason = f"has {len(value)} characters, and must have {LEAST} to be kept out of logs"
        raise InvalidInput(f"secret {name}", reason)
    return name


def _spellings(text: str) -> Iterator[bytes]:
    """As it is, and as JSON, Python, a shell, a URL and a hexadecimal dump would write it."""
    forms = {text, repr(text)[1:-1], shlex.quote(text).strip("'")}
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        forms |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1], once.replace("/", "\\/")}
    encoded = {quote(text, safe=""), quote(text), quote_plus(text)}
    forms |= encoded | {_LOWER_HEX.sub(lambda found: found[0].lower(), each) for each in encoded}
    data = text.encode("utf-8", "surrogatepass")
    forms |= {data.hex(), data.hex().upper()}
    return (form.encode("utf-8", "surrogatepass") for form in forms)


def _places(data: bytes, pattern: bytes) -> Iterator[int]:
    place = data.find(pattern)
    while place >= 0:
        yield place
        place = data.find(pattern, place + len(pattern))


def _merged(spans: list[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for start, end, mark in sorted(spans, key=lambda each: (each[0], -each[1])):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, mark))
    return merged


def _replace(data: bytes, spans: list[_Span]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end, mark in spans:
        pieces += [data[done:start], mark]
        done = end
    return b"".join([*pieces, data[done:]])
