"""Spellings: words are found in the escapes of JSON, HTML, URLs, shells, SQL and CSV.

An encoder decides letter by letter how to write a word, so no list holds all its forms. A text is
therefore read letter by letter too: each offset has one or more readings, and a word is found where
consecutive readings give it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from html.entities import html5

SecretSpan = tuple[int, int, bytes]
_Reading = tuple[bytes, int]

_QUOTES = frozenset(b"'\"")
# A spelling other than the letter itself begins with one of these.
_BEGINS = frozenset(b"\\&%'\"+\r")
# The letters that follow a quote: shells leave and enter quotes, SQL and CSV double them.
_Quoted = Mapping[bytes, tuple[tuple[bytes, ...], ...]]
_SHELLS: _Quoted = {b"'": ((b"\\", b"'", b"'"), (b'"', b"'", b'"', b"'"))}
_QUOTED: _Quoted = {b"'": ((b"'",), *_SHELLS[b"'"]), b'"': ((b'"',),)}
_ANY_BEGIN = rb"\\&%'\"+\r"
# So many encoders may have been applied one after the other.
_LAYERS = 4
_LONGEST = 200
_NAMED = dict(zip(b"abefnrtvE0", b"\a\b\x1b\f\n\r\t\v\x1b\0", strict=True))

_BACKSLASH = rb"\\|%(?:25){0,3}5[cC]|&(?:#92|#[xX]5[cC]|bsol);"
_BACKSLASHES = re.compile(rb"(?:" + _BACKSLASH + rb"){1,16}")
_ONE_BACKSLASH = re.compile(_BACKSLASH)
_AFTER_BACKSLASH = re.compile(
    rb"(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}(?:"
    + _BACKSLASH
    + rb"){1,16}u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|u(?P<four>[0-9a-fA-F]{4})|u\{0{0,9}(?P<braced>[0-9a-fA-F]{1,6})\}"
    rb"|U(?P<eight>[0-9a-fA-F]{8})|x(?P<two>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    rb"|(?P<named>[abefnrtvE0])"
)
_ENTITIES = [
    re.compile(
        rb"(?:&|(?:" + _BACKSLASH + rb"){1,16}u0026|%(?:25){0,3}26)"
        rb"(?:(?:amp|AMP|#38|#[xX]26)(?:;|%3[bB])){" + str(layer).encode() + rb"}"
        rb"(?:(?:#|%23)(?:0{0,9}(?P<decimal>[0-9]{1,7})|[xX]0{0,9}(?P<hex>[0-9a-fA-F]{1,6}))"
        rb"|(?P<name>[A-Za-z][A-Za-z0-9]{1,31}))(?P<end>;|%3[bB])?"
    )
    for layer in range(_LAYERS)
]
_PERCENTS = [
    re.compile(rb"%(?:25){" + str(layer).encode() + rb"}(?:([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))")
    for layer in range(_LAYERS)
]
_QUOTE_IN_SHELL = re.compile(rb"'(?:\\{1,16}''|\\{0,16}\"'\\{0,16}\"')")
_QUOTES_IN_SHELL = re.compile(rb"'\"('{2,16})\"'")
_CONTROL_IN_SHELL = re.compile(rb"'\$'((?:\\(?:[abefnrtvE]|[0-3][0-7]{2})){1,16})''")
_ONE_CONTROL = re.compile(rb"\\([abefnrtvE]|[0-3][0-7]{2})")
# Letters of a word that are searched as they are. Encoders leave them alone, or spell them as
# `_ANCHOR_SPELLED` says.
_ANCHOR = re.compile(rb"[0-9A-Za-z]{4,8}")
_ANCHOR_HEX = rb"(?:3[0-9]|[46][1-9a-fA-F]|5[0-9aA]|7[0-9aA])"
_ANCHOR_SPELLED = (
    re.compile(
        rb"\\(?:u00" + _ANCHOR_HEX + rb"|U000000" + _ANCHOR_HEX + rb"|x" + _ANCHOR_HEX + rb"|u\{"
        rb"|0[67][0-7]|1[0-7]{2}|u0026[aAbf#%])"
    ),
    re.compile(
        rb"%(?:25)*(?:" + _ANCHOR_HEX + rb"|u00" + _ANCHOR_HEX + rb"|5[cC][uUx01]"
        rb"|26(?:[aAbf#]|%23))"
    ),
    re.compile(rb"&(?:#|%23|amp;|AMP;|bsol;|fjlig;)"),
)
_UNFINISHED = re.compile(rb"(?:\r|[\\&%'\"][\\&%'\"$#;{}0-9A-Za-z]*)\Z")


class Spellings:
    """Finds words in every spelling, and the offset at which an unfinished word begins."""

    def __init__(self, words: Mapping[bytes, bytes]) -> None:
        self._all = _Words(words)
        self._anchored: list[tuple[bytes, _Words]] = []
        without: dict[bytes, bytes] = {}
        self._near = _LONGEST
        for word, replacement in words.items():
            if anchor := _ANCHOR.search(word):
                self._anchored.append((anchor[0], _Words({word: replacement})))
                self._near = max(self._near, _LONGEST * (anchor.end() + 1))
            else:
                without[word] = replacement
        self._unanchored = _Words(without)

    def search(self, data: bytes) -> tuple[list[SecretSpan], int]:
        """Every span with its replacement, and the offset of the first word that is cut off."""
        if len(data) <= self._near or any(each.search(data) for each in _ANCHOR_SPELLED):
            return self._all.search(data)
        # The quick way: no anchor is escaped here, so a text without the anchor lacks the word too.
        found = [self._all.search(data, len(data) - self._near), self._unanchored.search(data)]
        found += [each.search(data) for anchor, each in self._anchored if anchor in data]
        return [span for spans, _ in found for span in spans], min(begun for _, begun in found)


class _Words:
    """Some words, and the pattern of the offsets at which they may begin."""

    def __init__(self, words: Mapping[bytes, bytes]) -> None:
        self._words = words
        self._by_first: dict[int, list[tuple[bytes, bytes]]] = {}
        for word, replacement in words.items():
            self._by_first.setdefault(word[0], []).append((word, replacement))

    @cached_property
    def _start(self) -> re.Pattern[bytes]:
        return re.compile(_starts(self._words))

    def search(self, data: bytes, offset: int = 0) -> tuple[list[SecretSpan], int]:
        spans: list[SecretSpan] = []
        begun = len(data)
        if not self._words:
            return spans, begun
        text = _Text(data)
        for found in self._start.finditer(data, offset):
            start = found.start()
            for word, replacement in self._candidates(text, start):
                end = text.end_of(word, start)
                if end:
                    spans.append((start, end, replacement))
            if text.cut_off:
                begun = min(begun, start)
                text.cut_off = False
        return spans, begun

    def _candidates(self, text: _Text, start: int) -> list[tuple[bytes, bytes]]:
        byte = text.data[start]
        if byte not in _BEGINS:
            return self._by_first.get(byte, [])
        firsts = {reading[0] for reading, _ in text.readings(start)}
        text.cut_off = text.is_unfinished(start)
        return [each for first in firsts for each in self._by_first.get(first, ())]


class _Text:
    """A text while it is read; no offset is read twice for the same rest of a word."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.cut_off = False
        self._readings: dict[int, list[_Reading]] = {}
        self._seen: set[tuple[bytes, int, int]] = set()

    def end_of(self, word: bytes, start: int) -> int:
        """The end of a word that begins here, or 0; `cut_off` says whether the text ends first."""
        data, size, length = self.data, len(self.data), len(word)
        ends: set[int] = set()
        todo = [(start, 0)]
        while todo:
            offset, done = todo.pop()
            while done < length and offset < size and data[offset] == word[done]:
                if data[offset] in _BEGINS:
                    break
                offset += 1
                done += 1
            if done == length:
                ends.add(offset)
            elif offset == size:
                self.cut_off = True
            elif data[offset] in _BEGINS and (word, offset, done) not in self._seen:
                self._seen.add((word, offset, done))
                todo += [
                    (end, done + len(reading))
                    for reading, end in self.readings(offset)
                    if word.startswith(reading, done)
                ]
                self.cut_off = self.cut_off or self.is_unfinished(offset)
        end = max(ends, default=0)
        # A quote right after the word belongs to the text around it, and not to a doubled quote.
        while end - 1 in ends and data[end - 1] in _QUOTES:
            end -= 1
        return end

    def readings(self, offset: int) -> list[_Reading]:
        if offset not in self._readings:
            read = list(_readings(self.data, offset))
            # A plain quote is only doubled by shells here; SQL and CSV double it in `_readings`.
            plain = self.data[offset] in _QUOTES
            more = self._quotes(read[:1], _SHELLS) if plain else self._quotes(read, _QUOTED)
            self._readings[offset] = [*read, *more]
        return self._readings[offset]

    def _quotes(self, read: list[_Reading], known: _Quoted) -> Iterator[_Reading]:
        """Quotes that SQL, CSV or a shell wrote as several letters, which were escaped again."""
        for quote, offset in read:
            for rest in known.get(quote, ()):
                ends = {offset}
                for letter in rest:
                    each = [found for end in ends for found in _readings(self.data, end)]
                    ends = {end for reading, end in each if reading == letter}
                yield from ((quote, end) for end in ends)

    def is_unfinished(self, offset: int) -> bool:
        near = len(self.data) - offset <= _LONGEST
        return near and _UNFINISHED.match(self.data, offset) is not None


def _readings(data: bytes, offset: int) -> Iterator[_Reading]:
    """The readings at an offset, each with its end."""
    letter = data[offset : offset + 1]
    yield letter, offset + 1
    match letter:
        case b"+":
            yield b" ", offset + 1
        case b"\r" if data.startswith(b"\n", offset + 1):
            yield b"\n", offset + 2
        case b'"' if data.startswith(b'"', offset + 1):
            yield b'"', offset + 2
        case b"'":
            yield from _in_shell(data, offset)
        case b"&":
            yield from _entities(data, offset)
            yield from _escapes(data, offset)
        case b"%":
            yield from _percents(data, offset)
            yield from _entities(data, offset)
            yield from _escapes(data, offset)
        case b"\\":
            yield from _escapes(data, offset)
            yield from _entities(data, offset)


def _in_shell(data: bytes, offset: int) -> Iterator[_Reading]:
    if data.startswith(b"'", offset + 1):
        yield b"'", offset + 2
    if quote := _QUOTE_IN_SHELL.match(data, offset):
        yield b"'", quote.end()
    if quotes := _QUOTES_IN_SHELL.match(data, offset):
        yield quotes[1], quotes.end()
    if found := _CONTROL_IN_SHELL.match(data, offset):
        names = _ONE_CONTROL.findall(found[1])
        yield bytes(_NAMED[n[0]] if len(n) == 1 else int(n, 8) for n in names), found.end()


def _percents(data: bytes, offset: int) -> Iterator[_Reading]:
    for pattern in _PERCENTS:
        if found := pattern.match(data, offset):
            yield bytes.fromhex(found[1].decode()) if found[1] else _letter(found[2]), found.end()


def _entities(data: bytes, offset: int) -> Iterator[_Reading]:
    for pattern in _ENTITIES:
        found = pattern.match(data, offset)
        if found is None:
            continue
        if found["decimal"]:
            yield _letter(found["decimal"], 10), found.end()
        elif found["hex"]:
            yield _letter(found["hex"]), found.end()
        elif found["end"] and (text := html5.get(f"{found['name'].decode()};")):
            yield text.encode(), found.end()


def _escapes(data: bytes, offset: int) -> Iterator[_Reading]:
    run = _BACKSLASHES.match(data, offset)
    if run is None:
        return
    for count, one in enumerate(_ONE_BACKSLASH.finditer(data, offset, run.end()), 1):
        if count in {1, 2, 4, 8}:
            yield b"\\", one.end()
    after = run.end()
    if found := _AFTER_BACKSLASH.match(data, after):
        for reading in _escaped(found):
            yield reading, found.end()
    elif after < len(data) and not _ONE_BACKSLASH.match(data, after):
        for reading, end in _readings(data, after):
            if not reading.isalnum():
                yield reading, end


def _escaped(found: re.Match[bytes]) -> Iterator[bytes]:
    kind = found.lastgroup or ""
    digits = found[kind]
    match kind:
        case "pair":
            high, low = int(digits[1:5], 16), int(digits[-4:], 16)
            yield chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)).encode()
        case "named":
            yield bytes([_NAMED[digits[0]]])
        case "octal":
            yield bytes([int(digits, 8)])
        case "two":
            yield bytes.fromhex(digits.decode())
            yield _letter(digits)
        case _:
            yield _letter(digits)


def _letter(digits: bytes, base: int = 16) -> bytes:
    code = int(digits, base)
    return chr(code if code <= sys.maxunicode else 0).encode("utf-8", "surrogatepass")


def _starts(words: Mapping[bytes, bytes]) -> bytes:
    """A pattern of the offsets at which a word may begin: it looks at three letters, takes one."""
    tree: dict[int, dict[int, set[int]]] = {}
    for word in words:
        tree.setdefault(word[0], {}).setdefault(word[1], set()).add(word[2])
    plain = [
        _one_of({first}) + rb"(?=" + _go_on(tree[first]) + rb")"
        for first in sorted(tree.keys() - _BEGINS)
    ]
    return rb"|".join([*plain, *_spelled_starts(tree.keys())])


def _go_on(seconds: Mapping[int, set[int]]) -> bytes:
    follow = [
        _one_of({second}) + rb"(?:" + _one_of(thirds, _ANY_BEGIN) + rb"|\Z)"
        for second, thirds in sorted(seconds.items())
        if second not in _BEGINS
    ]
    return rb"|".join([*follow, rb"[" + _ANY_BEGIN + rb"]", rb"\Z"])


def _spelled_starts(firsts: AbstractSet[int]) -> Iterator[bytes]:
    """Patterns of the offsets at which a word may begin with an escaped letter."""
    escaped = {each for each in firsts if not bytes([each]).isalnum()}
    escaped |= {letter for letter, byte in _NAMED.items() if byte in firsts}
    hexes = {f"{each:02x}".encode() for each in firsts} | {b"25", b"26", b"5c"}
    # Each escape with what must follow it, unless a word begins with that very letter.
    spelled = {
        "\\": _one_of(escaped, rb"\\uUx0-3%&") + rb"|\Z",
        "%": rb"(?i:" + b"|".join(sorted(hexes)) + rb"|u)|[0-9a-fA-F]?\Z",
        "&": rb"#|%23|[A-Za-z][A-Za-z0-9]{0,31}(?:;|%|\Z)|\Z",
        "'": rb"\$|\Z",
    }
    for letter, following in spelled.items():
        plain = _one_of({ord(letter)})
        yield plain if ord(letter) in firsts else plain + rb"(?=" + following + rb")"
    for letter, meant in {'"': b'"', "+": b"+ ", "\r": b"\r\n"}.items():
        if firsts & set(meant):
            yield _one_of({ord(letter)})


def _one_of(letters: set[int], more: bytes = b"") -> bytes:
    return rb"[" + b"".join(rb"\x%02x" % each for each in sorted(letters)) + more + rb"]"
