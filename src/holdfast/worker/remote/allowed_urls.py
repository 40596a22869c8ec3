"""Addresses: which URLs lie below one that was allowed, however a server may read them."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

import httpx

from holdfast.errors import InvalidInput

MOST_DECODINGS = 5
PORTS = {"http": 80, "https": 443}
_SEPARATORS = re.compile(r"[/\\]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
# As some servers of old read it beside the other escapes.
_UNICODE_ESCAPE = re.compile("%[uU][0-9A-Fa-f]{4}")
# Where some servers end a part before they look at it, once it is decoded.
_PART_ENDS = re.compile("[;?#]")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class AmbiguousUrl(ValueError):
    """A URL that one server may read otherwise than another."""


class AllowedUrl:
    """A scheme, a host, a port, and the first parts of a path."""

    def __init__(self, text: str) -> None:
        try:
            url = parse_url(text)
            self._readings = [_split_path(each) for each in _readings(url)]
        except ValueError as error:
            raise InvalidInput("allow", f"{text!r} is no beginning of a URL: {error}") from error
        if url.query or url.fragment:
            reason = f"{text!r} goes beyond a path; leave out what follows the ? or the #"
            raise InvalidInput("allow", reason)
        self._origin = _origin(url)
        # One that ends in a slash is a folder, and allows what is in it.
        self._is_folder = url.path.endswith("/")

    def allows(self, url: httpx.URL) -> bool:
        """Whether a URL is this one or lies below it, in whichever way its path is read."""
        if _origin(url) != self._origin:
            return False
        last = len(self._readings) - 1
        return all(
            self._is_below(_split_path(each), self._readings[min(number, last)])
            for number, each in enumerate(_readings(url))
        )

    def _is_below(self, given: list[str], leading: list[str]) -> bool:
        own = leading[:-1] if self._is_folder else leading
        return given[: len(own)] == own and (not self._is_folder or len(given) > len(own))


def parse_url(text: str) -> httpx.URL:
    """A URL as it is sent: its dots resolved, and no reading of it leads up; raises ValueError."""
    try:
        url = httpx.URL(text)
        again = httpx.URL(str(url))
    except (httpx.InvalidURL, TypeError) as error:
        raise AmbiguousUrl(str(error)) from error
    if url.scheme not in PORTS or not url.host:
        raise AmbiguousUrl("it begins with http:// or https:// and a host")
    if url.userinfo or (again.raw_path, _origin(again)) != (url.raw_path, _origin(url)):
        raise AmbiguousUrl("it may not hold a name and a password before its host")
    for reading in _readings(url):
        _refuse_ways_up(reading)
    return url


def _origin(url: httpx.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host.lower(), url.port or PORTS.get(url.scheme, 0)


def _readings(url: httpx.URL) -> list[str]:
    """Its path as it stands, and as it is when servers decode it, once or again and again."""
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    found = [_ESCAPE.sub(_normalize_escape, path)]
    while (decoded := _decode(found[-1])) != found[-1]:
        found.append(decoded)
        if len(found) > MOST_DECODINGS:
            raise AmbiguousUrl("its path is encoded again and again")
    return found


def _decode(path: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise AmbiguousUrl("its path holds what is not UTF-8") from error


def _normalize_escape(escape: re.Match[str]) -> str:
    """An escape in its one form: none for what needs none, else in capitals."""
    character = chr(int(escape[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else escape[0].upper()


def _refuse_ways_up(path: str) -> None:
    if not path.isprintable():
        raise AmbiguousUrl("its path holds control characters")
    if _UNICODE_ESCAPE.search(path):
        raise AmbiguousUrl("its path holds escapes that not every server reads alike, as %u002e")
    for part in _SEPARATORS.split(unicodedata.normalize("NFKC", path)):
        # Blanks at the end some servers cut off, too.
        if _PART_ENDS.split(part, maxsplit=1)[0].strip() == "..":
            raise AmbiguousUrl("its path leads up, by two dots")


def _split_path(path: str) -> list[str]:
    return _SEPARATORS.split(path)[1:]
